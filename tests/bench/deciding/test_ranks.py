"""The rank statistics agree with published tables and with counting all cases."""

from itertools import combinations, product
from math import inf

import pytest

from luciole.bench.deciding.ranks import (
    detectable_effect,
    hodges_lehmann,
    rank_sum_p,
    signed_rank_p,
    upper_bound,
)
from luciole.runtime.chance import seeded_chance

#: Depression scores before and after a tranquilliser (Hollander and Wolfe, table 3.1): p = 0.01953, estimate -0.46.
BEFORE = (1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
AFTER = (0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29)


def test_a_published_example_of_the_signed_rank_test_comes_out_as_printed() -> None:
    differences = [before - after for before, after in zip(BEFORE, AFTER, strict=True)]
    assert signed_rank_p(differences) == pytest.approx(0.01953, abs=1e-5)
    assert hodges_lehmann(differences) == pytest.approx(0.46, abs=1e-9)


@pytest.mark.parametrize(
    ("pairs", "sum_below", "p"),
    # Critical values of the printed table: the greatest sum of negative ranks at one-sided 2.5 % and 0.5 %.
    [(8, 3, 0.025), (10, 8, 0.025), (16, 29, 0.025), (24, 81, 0.025), (10, 3, 0.005), (16, 19, 0.005), (24, 61, 0.005)],
)
def test_critical_values_are_those_of_the_printed_table(pairs: int, sum_below: int, p: float) -> None:
    assert signed_rank_p(with_sum_below(pairs, sum_below)) <= p
    assert signed_rank_p(with_sum_below(pairs, sum_below + 1)) > p


def with_sum_below(pairs: int, total: int) -> list[float]:
    """Return differences 1 to `pairs` of which negative ones have this sum of ranks."""
    below = set()
    for rank in range(pairs, 0, -1):
        if rank <= total:
            below.add(rank)
            total -= rank
    assert total == 0
    return [float(-rank if rank in below else rank) for rank in range(1, pairs + 1)]


@pytest.mark.parametrize("sizes", [(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (1.0, 1.0, 1.0, 2.0, 2.0, 5.0)])
def test_the_signed_rank_test_counts_all_signs_ties_included(sizes: tuple[float, ...]) -> None:
    def positive_ranks(signs: tuple[int, ...]) -> float:
        ordered = sorted(sizes)
        rank = {size: ordered.index(size) + (ordered.count(size) + 1) / 2 for size in sizes}
        return sum(rank[size] for size, sign in zip(sizes, signs, strict=True) if sign > 0)

    every = [positive_ranks(signs) for signs in product((1, -1), repeat=len(sizes))]
    for signs in product((1, -1), repeat=len(sizes)):
        expected = sum(one >= positive_ranks(signs) for one in every) / len(every)
        found = signed_rank_p([size * sign for size, sign in zip(sizes, signs, strict=True)])
        assert found == pytest.approx(expected)


def test_the_approximation_for_many_pairs_meets_the_exact_test() -> None:
    chance = seeded_chance(7)
    differences = [chance() - 0.4 for _ in range(60)]
    assert signed_rank_p(differences, exact_max=59) == pytest.approx(signed_rank_p(differences), abs=0.002)


def test_nothing_but_zeros_says_nothing() -> None:
    assert signed_rank_p([0.0, 0.0]) == 1.0
    assert signed_rank_p([]) == 1.0


@pytest.mark.parametrize(
    ("old", "new"),
    [((1, 2, 3, 4), (5, 6, 7, 8)), ((1, 2, 2, 5), (2, 2, 6)), ((3.0, 1.0), (2.0, 2.0, 2.0)), ((5, 6), (1, 2))],
)
def test_the_rank_test_counts_all_divisions_ties_included(old: tuple[float, ...], new: tuple[float, ...]) -> None:
    pooled = [*old, *new]
    ordered = sorted(pooled)
    ranks = [ordered.index(one) + (ordered.count(one) + 1) / 2 for one in pooled]
    reached = sum(ranks[len(old) :])
    every = [sum(chosen) for chosen in combinations(ranks, len(new))]
    assert rank_sum_p(old, new) == pytest.approx(sum(one >= reached for one in every) / len(every))


def test_four_against_four_can_be_told_apart_and_three_against_three_hardly() -> None:
    assert rank_sum_p((1, 2, 3, 4), (5, 6, 7, 8)) == pytest.approx(1 / 70)
    assert rank_sum_p((1, 2, 3), (5, 6, 7)) == pytest.approx(1 / 20)


def test_the_estimate_is_the_median_of_the_means_of_all_pairs() -> None:
    assert hodges_lehmann([1.0, 2.0, 6.0]) == 2.75  # Of 1, 1.5, 2, 3.5, 4, 6.
    with pytest.raises(ValueError, match="at least one"):
        hodges_lehmann([])


def test_the_bound_is_the_mean_of_a_pair_that_the_table_names() -> None:
    # Eight values: the interval of 95 % goes from the fourth least to the fourth greatest of 36 means.
    values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
    means = sorted((one + other) / 2 for at, one in enumerate(values) for other in values[at:])
    assert upper_bound(values) == means[-4]
    assert upper_bound(values[:5]) == inf


def test_the_bound_lies_above_the_truth_as_often_as_it_says() -> None:
    chance = seeded_chance(11)
    missed = sum(upper_bound([chance() - 0.5 for _ in range(8)]) < 0 for _ in range(2_000))
    assert missed / 2_000 <= 0.025 + 0.008


def test_more_pairs_detect_less_and_never_less_than_the_threshold() -> None:
    chance = seeded_chance(3)
    noisy = [chance() * 0.2 for _ in range(24)]
    few = detectable_effect(noisy, pairs=8, threshold=0.05, alpha=0.004)
    many = detectable_effect(noisy, pairs=24, threshold=0.05, alpha=0.003)
    assert few > many > 0.05
    assert detectable_effect([0.0, 0.0], pairs=8, threshold=0.05, alpha=0.004) == pytest.approx(0.05)
    assert detectable_effect([0.1], pairs=8, threshold=0.05, alpha=0.004) == inf
