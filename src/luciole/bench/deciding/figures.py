"""The figures that a comparison judges, taken out of results: one value a repeat, percentiles apart."""

from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from luciole.bench.result import Direction, Metric, Percentiles, Result

#: A percentile is judged only where so many samples lie beyond it in each repeat.
BEYOND_MIN = 20

#: The percentiles shown, with their share of samples beyond.
_POINTS = (("p50", 0.5), ("p95", 0.05), ("p99", 0.01))


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of one result."""

    name: str  #: of the metric; for a percentile `fire_lag p99`
    metric: str
    unit: str
    direction: Direction
    values: list[float]
    beyond: float | None = None  #: samples beyond the percentile, of the repeat that has least of them

    @property
    def median(self) -> float:
        """The median over the repeats."""
        return median(self.values)

    @property
    def gated(self) -> bool:
        """Whether it is judged at all."""
        return self.direction != "none" and (self.beyond is None or self.beyond >= BEYOND_MIN)


def figures_of(result: Result) -> dict[str, Figure]:
    """Return the figures of a result by name, in their order."""
    return {figure.name: figure for one in result.metrics for figure in _figures(one, result)}


def _figures(one: Metric, result: Result) -> Iterator[Figure]:
    parts = [repeat.distributions[one.name] for repeat in result.repeats if one.name in repeat.distributions]
    if one.distribution is None and not parts:
        yield Figure(name=one.name, metric=one.name, unit=one.unit, direction=one.direction, values=one.values)
        return
    yield from _percentiles(one, parts or [one.distribution] if one.distribution else parts)


def _percentiles(one: Metric, parts: Sequence[Percentiles]) -> Iterator[Figure]:
    for point, share in _POINTS:
        yield Figure(
            name=f"{one.name} {point}",
            metric=one.name,
            unit=one.unit,
            direction=one.direction,
            # The metric's own values are its p99, as every reader of the document sees them.
            values=one.values if point == "p99" else [float(getattr(part, point)) for part in parts],
            beyond=min(part.count for part in parts) * share,
        )
