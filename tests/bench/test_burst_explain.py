"""A planted bottleneck is the one that is named."""

from pathlib import Path

import pytest

from luciole.bench import lock
from luciole.bench.attribution.document import Attribution, Waits
from luciole.bench.result import Result, read_result
from tests.bench.burst_told import explained, told
from tests.bench.test_cli import call


def test_one_commit_a_job_fills_the_log() -> None:
    waits = Waits(samples=20, every_ms=50, sessions={"IO:WalSync": 0.9, "LWLock:WALWrite": 1.6}, log_busy=0.95)
    found = explained(
        told({"commit": 900_000, "statement": 80_000}, {"connection": 3.9, "commit": 3.0}),
        waits=waits,
        commits_per_job=1.0,
    )
    assert (found.verdict, found.now) == ("bottleneck", "the flushes of the log")
    assert found.sentence.startswith(
        "Limit now: the flushes of the log (commits take 90% of the time; 1.00 commits a job; 2.5 sessions waited"
    )


def test_one_commit_a_job_fills_the_writer_of_a_file() -> None:
    found = explained(
        told({"commit": 700_000, "statement": 200_000}, {"commit": 0.7, "statement": 0.2}),
        commits_per_job=1.0,
        embedded=True,
    )
    assert (found.verdict, found.now, found.next) == (
        "bottleneck",
        "the one writer of the file",
        "the flushes of the log",
    )


def test_a_pool_of_one_connection_is_the_limit_while_others_stand_in_line() -> None:
    found = explained(
        told({"statement": 960_000}, {"connection": 0.98, "wait_connection": 2.9, "statement": 0.96}), connections=1
    )
    assert (found.verdict, found.now, found.next) == ("bottleneck", "the 1 connection", "the 2 cores")
    assert "2.9 calls stood in line for one" in found.sentence


def test_connections_that_are_all_held_and_that_nobody_waits_for_are_not_the_limit() -> None:
    found = explained(
        told({"statement": 960_000}, {"connection": 3.9, "statement": 3.8}), cpu_us=1_900_000, run_delay_us=2_000_000
    )
    assert (found.verdict, found.now) == ("bottleneck", "the 2 cores")


def test_a_planner_that_computes_all_the_time_has_filled_its_interpreter() -> None:
    found = explained(told({"decide": 900_000, "statement": 50_000}, {"decide": 0.9}, main_thread_us=950_000))
    assert (found.verdict, found.now) == ("bottleneck", "the interpreter of scheduler 1")


def test_others_on_the_machine_are_no_room_to_grow() -> None:
    found = explained(told({"statement": 900_000}, {"connection": 1.0}), cpu_us=400_000)
    cores = next(one for one in found.resources if "cores" in one.name)
    assert (found.verdict, cores.ceiling_rate) == ("serialised", 5_000)


@pytest.fixture(autouse=True)
def _own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")


def burst(folder: Path, *options: str) -> tuple[Result, Attribution]:
    code, lines = call(
        "run", "burst", "--size", "smoke", "--jobs", "1500", "--ceiling", "none", "--repeats", "1",
        "--out", str(folder), *options,
    )  # fmt: skip
    assert code == 0, lines
    result = read_result(folder)
    return result, result.repeats[0].attribution[0]


@pytest.mark.slow
def test_a_burst_is_explained_and_one_commit_a_job_is_seen(tmp_path: Path) -> None:
    result, drain = burst(tmp_path, "--path", "single")
    assert drain.explained >= 0.95
    assert drain.sentence.endswith("It makes 1.00 commits a job: jobs that share one would share its cost.")
    writer = next(one for one in drain.resources if one.name == "the one writer of the file")
    assert "work" in {sign.kind for sign in writer.signs}
    assert {"planned", "settled", "backlog", "fire lag", "CPU of scheduler 1"} <= {
        line.name for line in result.repeats[0].series
    }
    assert len(result.repeats[0].traces) == 250


@pytest.mark.slow
@pytest.mark.postgres
def test_a_pool_of_one_connection_is_named_on_a_real_server(tmp_path: Path) -> None:
    result, drain = burst(tmp_path, "--backend", "postgres", "--pool", "1", "--sample-waits", "--batch-max", "20")
    assert drain.explained >= 0.95
    # The cores may be full of what others do on this machine at the same time; of all else it comes first.
    limits = [one for one in drain.resources if "cores" not in one.name]
    assert limits[0].name == "the 1 connection", drain.sentence
    assert {sign.kind for sign in limits[0].signs} == {"gauge", "queue"}
    assert drain.waits is not None
    assert result.repeats[0].database["pg_stat_database"]["xact_commit"] > 0
