"""How much figures vary on one machine when nothing changes. Pure."""

from math import log, sqrt
from statistics import NormalDist, stdev

from luciole.bench.deciding.figures import figures_of
from luciole.bench.deciding.kept import Noise
from luciole.bench.result import Result

#: Fewer repeats say nothing about a spread.
REPEATS_MIN = 4

#: One-sided 5 % for an alarm, four of five changes found.
_ALARM_AND_POWER = NormalDist().inv_cdf(0.95) + NormalDist().inv_cdf(0.8)


def noise_of(result: Result) -> Noise:
    """Return the noise that the repeats of one result show: each ran the same code in a process of its own."""
    spread = {
        name: round(stdev(log(value) for value in figure.values), 5)
        for name, figure in figures_of(result).items()
        if len(figure.values) >= REPEATS_MIN and min(figure.values) > 0
    }
    return Noise(
        profile=result.profile,
        backend=str(result.backend.get("name", "none")),
        measured=result.started,
        revision=str(result.product.get("revision")),
        repeats=len(result.repeats),
        requested=result.requested,
        spread=spread,
    )


def detectable(spread: float, old: int, new: int) -> float:
    """Return the share of change that so many values on each side find in four of five tries, at this noise."""
    return _ALARM_AND_POWER * spread * sqrt(1 / old + 1 / new)
