"""The micro layer measures steps that compute what they should."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from luciole.bench.doctor import findings
from luciole.bench.micro import counting
from luciole.bench.micro.appends import main
from luciole.bench.micro.counting import (
    available,
    checked,
    count_instructions,
    count_opcodes,
    perf_count,
    valgrind_count,
)
from luciole.bench.micro.durable import DURABLES, measure_durables
from luciole.bench.micro.measure import counted
from luciole.bench.micro.steps import MICROS, Micro, Step, right
from luciole.bench.profiles.micro import MICRO
from luciole.bench.result import read_result
from luciole.bench.verdict import Usage
from tests.bench.test_cli import call


def test_the_steps_compute_what_they_should() -> None:
    assert right().passed


def test_each_step_does_something_and_says_what_it_guards() -> None:
    assert [micro.name for micro in MICROS if micro.prepare()() <= 0] == []
    assert [micro.name for micro in MICROS if not micro.guards] == []
    assert [durable.prefix for durable in DURABLES if not durable.guards] == []
    names = {metric.name for metric in MICRO.metrics}
    assert {micro.name for micro in MICROS} <= names
    assert {counted(micro.name, counter) for micro in MICROS for counter in ("opcodes", "perf")} <= names
    assert all(metric.text.startswith("guards: ") for metric in MICRO.metrics)


@pytest.mark.parametrize("micro", MICROS, ids=lambda micro: micro.name)
def test_the_same_step_counts_the_same_opcodes_every_time(micro: Micro) -> None:
    assert count_opcodes(micro.prepare()) == pytest.approx(count_opcodes(micro.prepare()), rel=0.01)


def test_a_loop_more_is_seen_in_the_opcodes() -> None:
    def looping(times: int) -> Step:
        def step() -> int:
            for _ in range(times):
                pass
            return 1

        return step

    assert count_opcodes(looping(20)) - count_opcodes(looping(10)) == pytest.approx(10 * 3, abs=10)


def test_a_crowd_shares_its_commits_a_lone_caller_does_not_and_ids_hardly_need_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luciole.bench.micro.durable.durable_folder", lambda: tmp_path)
    found = measure_durables()
    assert found["append_alone_commits"] == pytest.approx(1.0, abs=0.02)
    assert found["append_few_commits"] <= 2 / 8
    assert found["append_crowd_commits"] <= 3 / 64
    assert found["id_take_commits"] == pytest.approx(1 / 1_024, rel=0.3)
    assert list(tmp_path.iterdir()) == []


def test_appends_are_measured_by_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("luciole.bench.micro.durable.durable_folder", lambda: tmp_path)
    main(8, 400)
    found = json.loads(capsys.readouterr().out)
    assert found["callers"] == 8
    assert 0 < found["p50_us"] <= found["p99_us"]
    assert min(found["rate"], found["cpu_us"], found["switches"]) > 0
    assert 1 / 8 <= found["commits"] <= 2 / 8
    assert list(tmp_path.iterdir()) == []


def test_a_counter_that_can_not_be_had_is_refused_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(Usage, match="valgrind is not installed; opcodes are counted anywhere"):
        checked("valgrind")
    assert available("perf") == "perf is not installed"
    checked("opcodes")
    checked("none")


def test_the_step_alone_is_counted_by_the_difference_of_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    starts, each = 50_000_000, 700
    asked: list[tuple[str, int]] = []

    def made_up(counter: str, name: str, rounds: int) -> int:
        asked.append((name, rounds))
        return starts + each * 10 * rounds + (counter == "perf")

    monkeypatch.setattr(counting, "count_process", made_up)
    micro = next(micro for micro in MICROS if micro.name == "retry_delay_us")  # Ten repetitions a step.
    assert count_instructions(micro, "perf") == each
    assert asked == [("retry_delay_us", 200), ("retry_delay_us", 400)]


@pytest.mark.parametrize(
    ("read", "said", "count"),
    [
        (perf_count, "1234567,,instructions:u,1485923,100.00,,", 1_234_567),
        (perf_count, "<not supported>,,instructions:u,0,100.00,,", None),
        (valgrind_count, "==7== \n==7== I   refs:      45,678,901", 45_678_901),
        (valgrind_count, "valgrind: failed to start", None),
    ],
)
def test_what_counters_print_is_read(read: Callable[[str], int | None], said: str, count: int | None) -> None:
    assert read(said) == count


@pytest.mark.slow
def test_the_verb_measures_times_and_counts_of_every_step(tmp_path: Path) -> None:
    code, _ = call("micro", "--size", "smoke", "--out", str(tmp_path))
    result = read_result(tmp_path)
    assert code == 0
    expected = {metric.name for metric in MICRO.metrics if not metric.name.endswith("_instructions")}
    assert {metric.name for metric in result.metrics} == expected
    assert result.requested["counter"] == "opcodes"


def test_the_doctor_names_what_is_missing_and_how_to_get_it() -> None:
    found = {finding.name: finding for finding in findings()}
    assert found["asyncpg"].found
    assert all(finding.text for finding in found.values())
