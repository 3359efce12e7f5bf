"""The self-test tells what was seen from what was not."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from luciole.bench.ab.document import Document, JudgedFigure
from luciole.bench.deciding.comparing import Comparison, Terms, compare
from luciole.bench.faults import SLOW_STEP, Fault
from luciole.bench.result import Check, Result, outcome
from luciole.bench.selftest.cases import CASES
from luciole.bench.selftest.laboratory import BURST, Laboratory, Told
from luciole.bench.selftest.seen import Case, Seen, judged, table
from luciole.bench.verdict import Verdict
from luciole.runtime.clock import SystemClock
from tests.bench.deciding.some_results import a_result, lags


def sound(profile: str) -> Result:
    if profile == "micro":
        return a_result("micro", {SLOW_STEP: [3.0]})
    values = {"drain_rate": [100.0], "drain_us": [50.0], "statements_per_job": [0.01], "commits_per_job": [0.02]}
    return a_result("burst", values, distributions={"fire_lag": [lags(1_000, 2_000)]})


def worse(result: Result, name: str, value: float) -> Result:
    changed = [
        replace(metric, values=[value], median=value, low=value, high=value) if metric.name == name else metric
        for metric in result.metrics
    ]
    return replace(result, metrics=changed)


#: What a bench that sees everything tells of each fault.
SEEN: dict[str, tuple[int, Callable[[Result], Result]]] = {
    "slow-step": (0, lambda result: worse(result, SLOW_STEP, 10_003)),
    "slow-batch": (0, lambda result: worse(result, "drain_us", 1_050)),
    "statement-per-job": (0, lambda result: worse(result, "statements_per_job", 1.01)),
    "commit-per-job": (0, lambda result: worse(result, "commits_per_job", 1.02)),
    "starved-generator": (6, lambda result: result),
    "lost-sampler": (6, lambda result: result),
}

WORDS: dict[str | None, str] = {
    "starved-generator": "a gate opened late",
    "lost-sampler": "the sampler of parts was lost",
}


class MadeUp(Laboratory):
    """A laboratory without processes: it tells what a seeing bench would, or what a blind one would."""

    def __init__(self, *, blind: bool = False, regressed: bool = False) -> None:
        super().__init__(Path(), clock=SystemClock(), progress=lambda _: None, pairs=8)
        self._blind = blind
        self._regressed = regressed

    def run(self, profile: str, options: object, fault: Fault | None = None) -> Told:
        del options
        result = sound(profile)
        if fault is None or self._blind:
            return Told(code=0, words="bench: OK", result=result)
        if fault in SEEN:
            code, change = SEEN[fault]
            return Told(code=code, words=f"bench: INVALID {WORDS.get(fault, '')}", result=change(result))
        result.repeats[0].checks = [Check(name="doubles", source="store", expected="= 0", found=1, passed=False)]
        return Told(code=3, words="bench: INCORRECT", result=result)

    def compare(self, old: Result, new: Result) -> Comparison:
        return compare(old, new, Terms(today=date(2026, 1, 1)))

    def ab(self, fault: Fault | None, *, pairs: int, options: object = ()) -> Document:
        del options
        loud = self._regressed if fault is None else not self._blind
        figure = JudgedFigure(
            name="drain_us", unit="us", direction="lower", kind="time", base=50, head=1_050, pairs=pairs, change=20,
            call="regressed" if loud else "passed", bound=None, p=0.004, detectable=None, confirmed=loud, note="",
            differences=[],
        )  # fmt: skip
        verdict = outcome(Verdict.REGRESSED if loud else Verdict.OK, "made up")
        return Document(
            profile="burst", options=[], verdict=verdict, started="", duration_s=0, author=None, command=[],
            environment={}, base={}, head={}, seed=1, order=[], threshold=0.05, slices=16, invalid=[], figures=[figure],
        )  # fmt: skip

    @staticmethod
    def has_server() -> str | None:
        return None


def plant(lab: Laboratory) -> dict[Case, Seen]:
    return {case: case.plant(lab) for case in CASES}


def test_a_bench_that_sees_passes_every_case() -> None:
    assert [case.fault for case, seen in plant(MadeUp()).items() if seen.caught is not True] == []


def test_a_blind_bench_fails_every_case_that_runs_something() -> None:
    blind = [case for case, seen in plant(MadeUp(blind=True)).items() if seen.caught]
    assert {(case.fault, case.layer) for case in blind} == {
        ("throughput and p99 both up 20 %", "compare"),
        ("a metric removed", "compare"),
        ("a unit changed", "compare"),
        ("none: identical code", "ab"),
    }


def test_identical_code_that_is_called_a_regression_fails() -> None:
    seen = plant(MadeUp(regressed=True))
    assert [case.fault for case, found in seen.items() if not found.caught] == ["none: identical code"]


def test_every_fault_that_can_be_asked_for_is_planted() -> None:
    planted: set[str | None] = set()

    class Noting(MadeUp):
        def run(self, profile: str, options: object, fault: Fault | None = None) -> Told:
            planted.add(fault)
            return super().run(profile, options, fault)

    plant(Noting())
    assert planted - {None} == set(get_args(Fault))


def test_a_fault_that_can_not_be_planted_here_is_named_and_nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MadeUp, "has_server", staticmethod(lambda: "no PostgreSQL here"))
    absent = [case.fault for case, seen in plant(MadeUp()).items() if seen.caught is None]
    assert absent == ["one more statement a job", "one commit a job"]


def test_a_fault_that_nobody_saw_says_that_the_bench_can_not_be_trusted() -> None:
    first = Case(fault="first", layer="checks", expected="3", plant=lambda _: Seen(caught=True, text="code 3"))
    second = Case(fault="second", layer="ab", expected="1", plant=lambda _: Seen(caught=False, text="ok"))
    yes, no, absent = (Seen(caught=caught, text="code 3") for caught in (True, False, None))
    assert judged([(first, yes), (second, yes)]) == (0, "2 cases planted and seen as they must")
    assert judged([(first, yes), (second, absent)])[1].endswith("must, 1 could not be planted here")
    assert judged([(first, yes), (second, no)]) == (6, "not seen: second (ab); the bench can't be trusted")
    assert table([(first, no)]).splitlines()[2] == "| first | checks | 3 | code 3 | **NO** |"


@pytest.mark.slow
def test_a_planted_fault_goes_through_real_processes_to_its_exit_code(tmp_path: Path) -> None:
    """Goal: the way from the variable to the verdict is whole; the command itself plants all of them."""
    lab = Laboratory(tmp_path, clock=SystemClock(), progress=lambda _: None, pairs=8)
    options = [*BURST, "--jobs", "200"]
    assert lab.run("burst", options).code == 0
    told = lab.run("burst", options, "dropped-job")
    assert told.result
    assert told.code == 3
    assert "A fault was injected on purpose: dropped-job." in told.result.limits_of_inference[-1]
