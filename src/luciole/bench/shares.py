"""Throughputs as shares of their ceilings."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from luciole.bench.profiles import PROFILES, Profile
from luciole.bench.result import Repeat, Result

#: A share over it says that the ceiling was measured badly.
SHARE_MAX = 1.1


def add_shares(profile: Profile, repeats: Sequence[Repeat]) -> None:
    """Give each throughput of each repeat that has a ceiling its share of it."""
    for repeat in repeats:
        for spec in profile.metrics:
            ceiling = repeat.figures.get(spec.ceiling, 0.0)
            if ceiling and spec.name in repeat.figures:
                repeat.figures[spec.share] = repeat.figures[spec.name] / ceiling


class Share(NamedTuple):
    """One throughput of a result beside its ceiling; medians."""

    name: str
    unit: str
    rate: float
    ceiling: str
    ceiling_rate: float
    share: float


def shares_of(result: Result) -> list[Share]:
    """Return the throughputs of a result that have a ceiling; results that are older than a ceiling lack it."""
    profile = PROFILES.get(result.profile)
    known = {metric.name: metric for metric in result.metrics}
    found = []
    for spec in profile.metrics if profile else ():
        rate, ceiling, share = (known.get(name) for name in (spec.name, spec.ceiling, spec.share))
        if rate and ceiling and ceiling.median:
            value = share.median if share else rate.median / ceiling.median
            found.append(Share(spec.name, spec.unit, rate.median, spec.ceiling, ceiling.median, value))
    return found


def impossible_shares(profile: Profile, repeats: Sequence[Repeat]) -> list[str]:
    """Return which throughputs were, in the median, faster than what the server alone can do."""
    found = []
    for spec in profile.metrics:
        shares = [repeat.figures[spec.share] for repeat in repeats if spec.share in repeat.figures]
        if spec.share and shares and median(shares) > SHARE_MAX:
            found.append(f"{spec.name} is {median(shares):.2f} of its ceiling {spec.ceiling}: it was measured badly")
    return found
