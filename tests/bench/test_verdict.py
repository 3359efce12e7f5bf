"""How runs end."""

from luciole.bench.result import Check, MetricSpec, Repeat, Result, metric, outcome
from luciole.bench.run import judged
from luciole.bench.verdict import BackendUnavailable, InvalidRun, NotReadable, Usage, Verdict, worst


def check(*, passed: bool) -> Check:
    return Check(name="doubles", source="store", expected="= 0", found=0 if passed else 1, passed=passed)


def result(*repeats: Repeat, share: float | None = None) -> Result:
    return Result(
        profile="burst",
        question="?",
        border="?",
        verdict=outcome(Verdict.INVALID, "not measured yet"),
        started="2026-01-01T00:00:00Z",
        duration_s=0,
        product={},
        command=[],
        environment={},
        backend={},
        requested={},
        ceiling_share=share,
        repeats=list(repeats),
    )


def test_the_exit_codes_are_those_of_the_documentation() -> None:
    assert [int(verdict) for verdict in Verdict] == list(range(9))
    assert int(Verdict.INCORRECT) == 3
    assert Verdict.INCORRECT.word == "incorrect"
    assert [error.verdict for error in (Usage, InvalidRun, BackendUnavailable, NotReadable)] == [2, 6, 8, 4]


def test_incorrect_beats_all_other_verdicts() -> None:
    assert worst(list(Verdict)) is Verdict.INCORRECT
    assert worst([Verdict.OK, Verdict.REGRESSED]) is Verdict.REGRESSED
    assert worst([]) is Verdict.OK


def test_a_failed_check_makes_the_figures_void_even_in_an_invalid_run() -> None:
    broken = Repeat(index=0, checks=[check(passed=True), check(passed=False)], invalid=["stolen"])
    verdict, reason = judged(result(broken, share=2.0))
    assert verdict is Verdict.INCORRECT
    assert "doubles is 1, expected = 0" in reason


def test_a_share_over_the_ceiling_says_that_the_ceiling_was_measured_badly() -> None:
    sound = Repeat(index=0, checks=[check(passed=True)])
    assert judged(result(sound, share=1.09))[0] is Verdict.OK
    assert judged(result(sound, share=1.11))[0] is Verdict.INVALID


def test_a_repeat_that_says_why_it_can_not_be_trusted_is_invalid() -> None:
    assert judged(result(Repeat(index=0, checks=[check(passed=True)], invalid=["late"]))) == (Verdict.INVALID, "late")


def test_a_count_that_must_be_zero_and_is_not_misses_the_objective() -> None:
    measured = result(Repeat(index=0, checks=[check(passed=True)]))
    spec = MetricSpec(name="changed_again", unit="schedules", direction="zero", text="?")
    measured.metrics = [metric(spec, [0.0, 0.0])]
    assert judged(measured)[0] is Verdict.OK
    measured.metrics = [metric(spec, [0.0, 1.0])]
    assert judged(measured) == (Verdict.OBJECTIVE_MISSED, "what must be zero is not: changed_again is 1")


def test_what_was_not_checked_is_never_ok() -> None:
    assert judged(result(Repeat(index=0)))[0] is Verdict.INVALID
