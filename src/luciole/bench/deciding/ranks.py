"""Rank statistics, exact where that matters: no assumption about the shape of the noise, and no library.

Ties share the mean of their ranks; ranks are doubled inside, so that all sums are integers and the distributions under
"nothing changed" are counted, not approximated.
"""

from collections.abc import Sequence
from math import inf, sqrt
from statistics import NormalDist, median, stdev

#: Above so many values the normal approximation is as good, and counting is slow.
_EXACT_MAX = 60

_NORMAL = NormalDist()

#: How much more values a rank test needs than one that knows the noise to be normal (the root of pi / 3).
_RANK_FACTOR = 1.0233


def signed_rank_p(differences: Sequence[float], *, exact_max: int = _EXACT_MAX) -> float:
    """Return the one-sided p of Wilcoxon's signed-rank test for "the differences lie above 0".

    Zeros say nothing and are left out. Exact up to `exact_max` differences, ties included; above, the normal
    approximation with corrections for ties and continuity.
    """
    signed = [one for one in differences if one]
    if not signed:
        return 1.0
    ranks = _doubled_ranks([abs(one) for one in signed])
    above = sum(rank for rank, one in zip(ranks, signed, strict=True) if one > 0)
    if len(signed) > exact_max:
        spread = sqrt(sum(rank * rank for rank in ranks)) / 2
        return 1 - _NORMAL.cdf((above - 1 - sum(ranks) / 2) / spread)
    counts = _subset_sums(ranks)
    return sum(counts[above:]) / (1 << len(ranks))


def rank_sum_p(old: Sequence[float], new: Sequence[float]) -> float:
    """Return the one-sided p of the exact rank test for "the new values lie above the old ones".

    Every division of the pooled values into two sides of these sizes is counted, ties included (the test of Mann and
    Whitney, by permutation).
    """
    ranks = _doubled_ranks([*old, *new])
    reached = sum(ranks[len(old) :])
    counts = _subset_sums_by_size(ranks, len(new))
    return sum(counts[reached:]) / sum(counts)


def hodges_lehmann(differences: Sequence[float]) -> float:
    """Return the Hodges-Lehmann estimate of where differences lie: the median of the means of all pairs.

    Raises:
        ValueError: there are none.
    """
    if not differences:
        raise ValueError("differences: an estimate needs at least one")
    return median(_pair_means(differences))


def upper_bound(differences: Sequence[float], *, level: float = 0.975) -> float:
    """Return the bound that lies above the true location with at least this probability; infinite for too few values.

    It is one of the means of pairs: the one that the signed-rank test would still not refuse.
    """
    means = sorted(_pair_means(differences))
    counts = _subset_sums(list(range(1, len(differences) + 1)))
    refused, tail = 0, 0.0
    for count in counts:  # As many means are beyond the bound as rank sums are together this unlikely.
        tail += count / (1 << len(differences))
        if tail > 1 - level:
            break
        refused += 1
    return means[len(means) - refused] if refused else inf


def detectable_effect(differences: Sequence[float], *, pairs: int, threshold: float, alpha: float) -> float:
    """Return the least true difference that so many pairs would have called a regression in four of five tries.

    Args:
        differences: what was seen; its spread is taken for the noise of the next ones.
        pairs: how many.
        threshold: what the estimate must exceed.
        alpha: what p must not exceed.

    Returns:
        In the unit of the differences; infinite when there are not two of them.
    """
    if len(differences) < 2:  # noqa: PLR2004 - one value has no spread
        return inf
    error = _RANK_FACTOR * stdev(differences) / sqrt(pairs)
    power = _NORMAL.inv_cdf(0.8)
    return max((_NORMAL.inv_cdf(1 - alpha) + power) * error, threshold + power * error)


def _pair_means(values: Sequence[float]) -> list[float]:
    return [(one + other) / 2 for at, one in enumerate(values) for other in values[at:]]


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Return twice the rank of each value, from 2 on; ties have the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for at in order[begin:end]:
            ranks[at] = begin + 1 + end
        begin = end
    return ranks


def _subset_sums(ranks: Sequence[int]) -> list[int]:
    """Return, for each sum, how many subsets of the ranks have it."""
    counts = [1] + [0] * sum(ranks)
    for rank in ranks:
        for total in range(len(counts) - 1, rank - 1, -1):
            counts[total] += counts[total - rank]
    return counts


def _subset_sums_by_size(ranks: Sequence[int], size: int) -> list[int]:
    """Return, for each sum, how many subsets of so many ranks have it."""
    counts = [[0] * (sum(ranks) + 1) for _ in range(size + 1)]
    counts[0][0] = 1
    for rank in ranks:
        for taken in range(size, 0, -1):
            row, less = counts[taken], counts[taken - 1]
            for total in range(len(row) - 1, rank - 1, -1):
                row[total] += less[total - rank]
    return counts[size]
