"""The command line of the bench: exit codes, the last line, and a result whatever happens."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from luciole.bench import lock
from luciole.bench.cli import bench
from luciole.bench.profiles import PROFILES
from luciole.bench.result import read_result, write_result
from tests.bench.deciding.some_results import a_result


def call(*arguments: str) -> tuple[int, list[str]]:
    done: Result = CliRunner().invoke(bench, arguments, standalone_mode=False)
    assert done.exception is None, done.output
    return done.return_value or 0, done.stdout.splitlines()


@pytest.fixture(autouse=True)
def _own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")


def test_the_list_names_each_profile_and_its_question() -> None:
    code, lines = call("list")
    assert code == 0
    assert all(any(profile.question in line for line in lines) for profile in PROFILES.values())


@pytest.mark.parametrize(
    "wrong",
    [
        ("--set", "nonsense"),
        ("--set", "fsync;drop=1"),
        ("--dsn", "postgresql://me:hunter2@host/db"),
        ("--backend", "postgres", "--dsn", "mysql://me:hunter2@host/db"),
        ("--set", "synchronous=never"),
        ("--set", "fsync=off"),
        ("--plan-ahead", "1s"),
        ("--plan-ahead", "soon", "--start", "warm"),
        ("--plan-ahead", "6s", "--start", "warm"),
        ("--topology", "zombie", "--start", "warm"),
        ("--topology", "flap", "--schedulers", "2"),
    ],
)
def test_a_wrong_command_ends_with_the_code_for_usage_and_hides_passwords(wrong: tuple[str, ...]) -> None:
    code, lines = call("run", "burst", *wrong)
    assert code == 2
    assert lines[-1].startswith("bench: USAGE ")
    assert "hunter2" not in "".join(lines)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name one of the commands of `bench`"),
        (("--nope",), "No such option '--nope'"),
        (("nonsense",), "No such command 'nonsense'"),
        (("run",), "name one of the commands of `bench run`"),
        (("run", "nonsense"), "No such command 'nonsense'"),
        (("run", "burst", "--nope"), "No such option '--nope'"),
        (("run", "burst", "--jobs", "0"), "0 is not in the range"),
        (("run", "burst", "--backend", "redis"), "'redis' is not one of"),
        (("run", "register", "--registrars", "0"), "0 is not in the range"),
        (("run", "steady", "--duration", "1.5s"), "whole seconds only"),
        (("run", "steady", "--duration", "never"), "is no duration"),
        (("run", "steady", "--warmup", "-1s"), "is no duration"),
        (("run", "burst", "--slo", "fast"), "--slo: 'fast' is no clause"),
        (("run", "burst", "--size", "smoke", "nonsense"), "No such command 'nonsense'"),
        (("capacity",), "name one of the commands of `bench capacity`"),
        (("capacity", "steady", "--slo", "nope<=1"), "it has no metric 'nope'"),
        (("micro", "--slo", "nope<=1"), "it has no metric 'nope'"),
        (("baseline",), "name one of the commands of `bench baseline`"),
        (("export", "result.json"), "Missing option '--as'"),
        (("trend", "/nowhere"), "'/nowhere' does not exist"),
    ],
)
def test_whatever_is_wrong_with_a_command_its_last_line_says_so(words: tuple[str, ...], said: str) -> None:
    code, lines = call(*words)
    assert code == 2
    assert lines[-1].startswith("bench: USAGE ")
    assert said in lines[-1]


def test_what_nobody_expected_is_no_regression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Path) -> None:
        raise ZeroDivisionError("of postgresql://me:hunter2@host/db")

    monkeypatch.setattr("luciole.bench.cli.report.read_result", broken)
    code, lines = call("report", str(tmp_path))
    assert (code, lines[-1]) == (
        6,
        "bench: INVALID ZeroDivisionError: of postgresql://me:<password>@host/db",
    )


def test_commands_that_only_tell_end_with_a_verdict_too(tmp_path: Path) -> None:
    stored = str(write_result(a_result(), tmp_path))
    for words in (("list",), ("doctor",), ("report", stored), ("repro", stored)):
        code, lines = call(*words)
        assert (code, lines[-1][:10]) == (0, "bench: OK ")


def test_a_driver_that_is_not_installed_makes_the_backend_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    options = ("--backend", "postgres", "--dsn", "postgresql://me@127.0.0.1:1/db", "--out", str(tmp_path))
    code, lines = call("run", "burst", *options)
    assert code == 8
    assert "pip install 'luciole[postgres]'" in lines[-1]


def test_nodes_plan_ahead_by_no_more_than_their_setting_allows() -> None:
    code, lines = call("run", "steady", "--plan-ahead", "6s")
    assert (code, lines[-1]) == (2, "bench: USAGE --plan-ahead: 6s is not between 0s and 5s")


def test_beside_another_bench_the_run_is_invalid_and_says_so_in_its_result(tmp_path: Path) -> None:
    with lock.only_bench():
        code, lines = call("run", "burst", "--size", "smoke", "--out", str(tmp_path))
    assert code == 6
    assert lines[-1].startswith("bench: INVALID another bench runs")
    assert read_result(tmp_path).verdict.word == "invalid"


def test_an_unreachable_backend_has_a_code_of_its_own_and_no_password_in_its_result(tmp_path: Path) -> None:
    dsn = "postgresql://me:hunter2@127.0.0.1:1/db"
    code, lines = call("run", "burst", "--backend", "postgres", "--dsn", dsn, "--out", str(tmp_path))
    assert code == 8
    assert lines[-1].startswith("bench: BACKEND-UNAVAILABLE ")
    assert "hunter2" not in "".join(lines) + (tmp_path / "result.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_small_burst_runs_is_checked_and_leaves_nothing_behind(tmp_path: Path) -> None:
    folder, out = tmp_path / "data", tmp_path / "out"
    folder.mkdir()
    options = ("--jobs", "60", "--ceiling", "none", "--repeats", "1", "--folder", str(folder))
    code, lines = call("run", "burst", *options, "--size", "smoke", "--out", str(out))
    assert (code, lines[-1]) == (0, "bench: OK 30 checks passed in 1 repeats")
    result = read_result(out)
    assert result.requested["jobs"] == 60
    assert result.actual["schedulers"][0]["shards"] == 32
    assert {metric.name for metric in result.metrics} >= {"drain_rate", "fire_lag", "register_rate"}
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_contention_on_one_file_loses_races_and_doubles_nothing(tmp_path: Path) -> None:
    options = ("--jobs", "2000", "--ceiling", "none", "--repeats", "1", "--topology", "contention")
    code, _ = call("run", "burst", *options, "--size", "smoke", "--out", str(tmp_path))
    result = read_result(tmp_path)
    found = {check.name: check for check in result.repeats[0].checks}
    assert found["reported_lost_races"].found > 0
    assert found["doubles"].found == 0
    assert code == 0


@pytest.mark.slow
def test_former_holders_that_keep_writing_are_refused_every_time(tmp_path: Path) -> None:
    # I3: Method: other schedulers take all shards over; the former ones plan on, and never look at a deadline.
    options = ("--jobs", "2000", "--ceiling", "none", "--repeats", "1", "--topology", "zombie")
    code, _ = call("run", "burst", *options, "--size", "smoke", "--out", str(tmp_path))
    found = {check.name: check.found for check in read_result(tmp_path).repeats[0].checks}
    assert found["reported_zombie_plans"] > 0
    assert found["reported_zombie_deliveries"] > 0
    assert found["reported_zombie_accepted"] == 0
    assert code == 0


@pytest.mark.slow
def test_take_overs_and_a_kill_in_the_middle_lose_and_double_nothing(tmp_path: Path) -> None:
    # I1, I3, I4: whatever the killed scheduler had in memory or under way, each fire time has one outcome.
    options = ("--jobs", "5000", "--ceiling", "none", "--repeats", "1", "--topology", "flap")
    code, _ = call("run", "burst", *options, "--size", "smoke", "--out", str(tmp_path))
    found = {check.name: check.found for check in read_result(tmp_path).repeats[0].checks}
    assert found["reported_created_by_the_killed"] > 0
    assert found["executions_of_the_instant"] == found["reported_settled"] == 5_000
    assert found["doubles"] == 0
    assert code == 0


@pytest.mark.slow
def test_what_is_planned_ahead_of_a_burst_is_durable_at_its_instant(tmp_path: Path) -> None:
    options = ("--jobs", "4000", "--ceiling", "none", "--repeats", "1", "--start", "warm", "--plan-ahead", "5s")
    code, lines = call("run", "burst", *options, "--size", "smoke", "--out", str(tmp_path))
    assert (code, lines[-1]) == (0, "bench: OK 30 checks passed in 1 repeats")
    assert read_result(tmp_path).repeats[0].distributions["fire_lag"].p99 == 1


@pytest.mark.slow
def test_a_few_enqueues_are_picked_up_once_each(tmp_path: Path) -> None:
    code, lines = call("run", "pickup", "--size", "smoke", "--jobs", "20", "--out", str(tmp_path))
    assert (code, lines[-1]) == (0, "bench: OK 14 checks passed in 1 repeats")
    assert read_result(tmp_path).repeats[0].distributions["start_lag"].count == 20


def test_nodes_are_not_started_on_somebody_elses_database() -> None:
    code, lines = call("run", "pickup", "--backend", "postgres", "--dsn", "postgresql://me:hunter2@127.0.0.1/db")
    assert (code, lines[-1][:13]) == (2, "bench: USAGE ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("burst", "--jobs", "2000", "--ceiling", "none"), "the sampler of parts was lost"),
        (("steady", "--schedules", "60"), "the sampler was lost"),
    ],
)
def test_a_run_that_lost_a_sampler_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.setenv("LUCIOLE_BENCH_FAULT", "lost-sampler")
    code, lines = call("run", *words, "--size", "smoke", "--out", str(tmp_path))
    assert code == 6
    assert lines[-1].startswith("bench: INVALID ")
    assert said in read_result(tmp_path).verdict.reason


@pytest.mark.slow
def test_several_profiles_run_one_after_the_other_and_the_worst_is_the_end(tmp_path: Path) -> None:
    one, other = tmp_path / "register", tmp_path / "burst"
    first = ("register", "--size", "smoke", "--jobs", "100", "--singles", "6", "--registrars", "3", "--out", str(one))
    asked = ("--slo", "drain_rate>=1000000000", "--author", "A B")
    second = ("burst", "--size", "smoke", "--jobs", "60", "--ceiling", "none", *asked, "--out", str(other))
    code, lines = call("run", *first, *second)
    assert (code, lines[-1]) == (7, "bench: OBJECTIVE-MISSED 1 of 2 profiles are ok")
    assert read_result(one).actual["registrars"] == 3
    missed = read_result(other)
    assert missed.verdict.reason.startswith("drain_rate>=1000000000: it is ")
    assert missed.command == ["bench", "run", *second]


@pytest.mark.slow
def test_registration_and_idleness_are_measured_and_checked(tmp_path: Path) -> None:
    code, lines = call("run", "register", "--size", "smoke", "--jobs", "100", "--singles", "5", "--out", str(tmp_path))
    assert (code, lines[-1]) == (0, "bench: OK 8 checks passed in 1 repeats")
    assert read_result(tmp_path).repeats[0].figures["changed_again"] == 0
    options = ("--size", "smoke", "--jobs", "100", "--duration-s", "4", "--out", str(tmp_path))
    code, lines = call("run", "idle", *options)
    assert (code, lines[-1]) == (0, "bench: OK 8 checks passed in 1 repeats")
    assert read_result(tmp_path).repeats[0].figures["core_share"] > 0
