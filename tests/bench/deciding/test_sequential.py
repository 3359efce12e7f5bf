"""The decision rule, simulated: how often it cries wolf, and how often it sees one."""

from collections.abc import Callable, Iterator
from math import exp, inf, log
from statistics import NormalDist, median

import pytest

from luciole.bench.deciding.sequential import CONFIRMING_PAIRS, LOOKS, Call, Judgement, confirmed, judge, worsening
from luciole.runtime.chance import seeded_chance

NOISE = 0.08
TRIALS = 1_500


def noises(seed: int) -> Iterator[float]:
    """Yield logarithms of what a value is multiplied with by chance."""
    chance, normal = seeded_chance(seed), NormalDist(0, NOISE)
    while True:
        yield normal.inv_cdf(min(max(chance(), 1e-12), 1 - 1e-12))


def pairs(noise: Iterator[float], worse: float, count: int) -> list[float]:
    return [worsening(exp(next(noise)), (1 + worse) * exp(next(noise)), higher_is_better=False) for _ in range(count)]


def looked(differences: list[float]) -> Judgement:
    """Look as a run does: at each look in turn, until one is final."""
    for count, _ in LOOKS:
        found = judge(differences[:count])
        if found.final:
            return found
    raise AssertionError("the last look is final")


def share(trials: int, event: Callable[[], bool]) -> float:
    return sum(event() for _ in range(trials)) / trials


def test_identical_code_is_called_a_regression_in_one_of_a_hundred_runs_at_most() -> None:
    """Goal: the rule may be believed. Before fresh pairs confirm it, for each metric, at 8 % of noise."""
    noise = noises(1)
    alarms = share(TRIALS, lambda: looked(pairs(noise, 0.0, 24)).call is Call.REGRESSED)
    assert alarms <= 0.01


def test_a_confirmed_alarm_on_identical_code_is_far_rarer() -> None:
    noise = noises(2)
    held = share(TRIALS, lambda: confirmed(pairs(noise, 0.0, CONFIRMING_PAIRS)))
    assert held <= 0.2  # Of the alarms above: two in a thousand runs.


def test_medians_of_five_cry_wolf_in_every_fifth_run() -> None:
    """Why `ab` does not just compare medians: the habit is simulated beside the rule."""
    noise = noises(3)

    def alarm() -> bool:
        old, new = ([exp(next(noise)) for _ in range(5)] for _ in range(2))
        return median(new) > median(old) * 1.05

    assert share(4_000, alarm) == pytest.approx(0.21, abs=0.025)


def test_a_regression_of_ten_percent_is_mostly_found_and_confirmed() -> None:
    noise = noises(4)

    def found() -> bool:
        return looked(pairs(noise, 0.10, 24)).call is Call.REGRESSED and confirmed(pairs(noise, 0.10, CONFIRMING_PAIRS))

    assert share(600, found) >= 0.7


def test_a_regression_of_ten_percent_hardly_ever_passes() -> None:
    noise = noises(5)
    assert share(600, lambda: looked(pairs(noise, 0.10, 24)).call is Call.PASSED) <= 0.01


def test_a_regression_of_a_quarter_is_always_found() -> None:
    noise = noises(6)
    assert share(200, lambda: looked(pairs(noise, 0.25, 24)).call is Call.REGRESSED) >= 0.99


def test_quiet_identical_code_passes_at_the_first_look() -> None:
    found = judge([0.002, -0.001, 0.001, -0.002, 0.0005, 0.001, -0.001, 0.002])
    assert (found.call, found.pairs, found.final) == (Call.PASSED, 8, True)
    assert found.bound < 0.05


def test_eight_pairs_that_are_all_worse_are_enough_and_seven_are_not() -> None:
    assert judge([0.1] * 8).call is Call.REGRESSED
    assert judge([0.1] * 7).call is Call.INCONCLUSIVE
    assert judge([0.1] * 7 + [-0.2]).call is Call.INCONCLUSIVE


def test_a_sure_change_below_the_threshold_is_no_regression() -> None:
    assert judge([0.03, 0.031, 0.029, 0.03, 0.032, 0.028, 0.03, 0.03]).call is Call.PASSED


def test_better_is_told_as_surely_as_worse() -> None:
    assert judge([-0.1] * 8).call is Call.IMPROVED


def test_what_stays_open_says_what_it_could_have_seen() -> None:
    found = judge(pairs(noises(9), 0.04, 24))
    assert (found.call, found.final) == (Call.INCONCLUSIVE, True)
    assert 0.05 < found.detectable < 0.15


def test_worse_is_positive_in_either_direction() -> None:
    assert worsening(100, 110, higher_is_better=False) == pytest.approx(log(1.1))
    assert worsening(100, 110, higher_is_better=True) == pytest.approx(-log(1.1))
    assert worsening(0, 0, higher_is_better=True) == 0
    assert worsening(0, 5, higher_is_better=False) == inf
    assert worsening(5, 0, higher_is_better=True) == inf
    assert judge([inf] * 8).call is Call.REGRESSED
