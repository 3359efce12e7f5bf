"""Slices alternate so that a machine that drifts favours neither side."""

from itertools import islice

from luciole.bench.ab.order import pairs


def slices(seed: int, count: int) -> list[str]:
    return [arm for pair in islice(pairs(seed), count) for arm in pair]


def test_each_four_slices_are_abba_or_baab_and_both_occur() -> None:
    found = slices(1, 40)
    blocks = {tuple(found[at : at + 4]) for at in range(0, len(found), 4)}
    assert blocks == {("base", "head", "head", "base"), ("head", "base", "base", "head")}


def test_the_seed_repeats_the_order_and_another_one_changes_it() -> None:
    assert slices(7, 24) == slices(7, 24)
    assert slices(7, 24) != slices(8, 24)


def test_a_steady_drift_cancels_out() -> None:
    for seed in range(5):
        at = {"base": 0, "head": 0}
        for position, arm in enumerate(slices(seed, 16)):
            at[arm] += position
        assert at["base"] == at["head"]
