"""The decision over pairs of slices: looks while they come in, and stops as soon as it may.

A pair gives d, the logarithm of new by old, signed so that worse is positive. The looks spend 1 % together: in no more
runs is identical code called a regression, for each metric, whatever the noise looks like.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import exp, inf, isfinite, log

from luciole.bench.deciding.ranks import detectable_effect, hodges_lehmann, signed_rank_p, upper_bound

#: After how many pairs it looks, and what p may be there at most.
LOOKS: tuple[tuple[int, float], ...] = ((8, 0.004), (16, 0.003), (24, 0.003))

#: Fresh pairs that a regression has to be seen in once more.
CONFIRMING_PAIRS = 8

#: A change below it is none: what one machine can tell from noise in some minutes.
THRESHOLD = 0.05


#: A ratio of one to a million stands for "from or to nothing": rank statistics need no more.
_FAR = log(1e6)


class Call(Enum):
    """What can be said of one metric."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    PASSED = "passed"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the pairs say of one metric; shares are of the old value, worse is positive."""

    call: Call
    pairs: int
    change: float  #: the Hodges-Lehmann estimate
    bound: float  #: above the true change in 97.5 % of cases; infinite: too few pairs
    p: float  #: of "it became worse"
    detectable: float  #: the least change that would have been called a regression in four of five tries
    final: bool  #: no further pair can change it


def worsening(old: float, new: float, *, higher_is_better: bool) -> float:
    """Return d of one pair: the logarithm of new by old, positive when new is worse.

    Two zeros are no change; a zero beside another value is an infinite one.
    """
    if old == new:
        return 0.0
    d = (inf if new > old else -inf) if old <= 0 or new <= 0 else log(new / old)
    return -d if higher_is_better else d


def judge(differences: Sequence[float], *, threshold: float = THRESHOLD) -> Judgement:
    """Judge a metric by the pairs so far, as the last look that they reach does.

    Args:
        differences: d of each pair, in order; those after the last look that they reach are left out.
        threshold: the share that a change must exceed.
    """
    reached = [(pairs, alpha) for pairs, alpha in LOOKS if pairs <= len(differences)]
    pairs, alpha = reached[-1] if reached else (len(differences), 0.0)
    seen = [max(-_FAR, min(_FAR, d)) for d in differences[:pairs]]
    estimate, bound, p = hodges_lehmann(seen), upper_bound(seen), signed_rank_p(seen)
    edge = log(1 + threshold)
    last = pairs == LOOKS[-1][0]
    if reached and p <= alpha and estimate > edge:
        call, final = Call.REGRESSED, True
    elif reached and signed_rank_p([-d for d in seen]) <= alpha and -estimate > edge:
        call, final = Call.IMPROVED, True
    elif reached and bound < edge:
        call, final = Call.PASSED, True
    else:
        call, final = Call.INCONCLUSIVE, last
    return Judgement(
        call=call,
        pairs=pairs,
        change=_share(estimate),
        bound=_share(bound),
        p=p,
        detectable=_share(
            detectable_effect(seen, pairs=LOOKS[-1][0], threshold=edge, alpha=LOOKS[-1][1]) if reached else inf
        ),
        final=final,
    )


def confirmed(differences: Sequence[float], *, threshold: float = THRESHOLD) -> bool:
    """Return whether fresh pairs show a regression once more: their own estimate is over the threshold.

    They are judged alone: what made the first ones look bad may be gone.
    """
    return len(differences) >= CONFIRMING_PAIRS and hodges_lehmann(differences) > log(1 + threshold)


def _share(d: float) -> float:
    return exp(d) - 1 if isfinite(d) else d
