"""The soak profile: the steady load for hours, and what grows meanwhile."""

from collections.abc import Callable, Sequence

from luciole import limits
from luciole.bench.backends import Backend
from luciole.bench.result import Repeat, Result
from luciole.bench.steady.measure import steady_repeat
from luciole.bench.steady.spec import SteadySpec
from luciole.runtime.clock import Clock

_HOUR_S = 3_600

#: Slopes are taken of what comes after: caches fill first.
_SETTLED_SHARE = 0.25

#: Fewer points than this have no slope worth a name.
_POINTS_MIN = 4


class SoakMeasure:
    """Each repeat on a fresh store with fresh processes."""

    def __init__(
        self, load: SteadySpec, backend: Backend, *, repeats: int, clock: Clock, progress: Callable[[str], None]
    ) -> None:
        self._load = load
        self._backend = backend
        self._repeats = repeats
        self._clock = clock
        self._progress = progress

    async def __call__(self, result: Result) -> None:
        """Fill in repeats."""
        for index in range(self._repeats):
            repeat = await steady_repeat(index, self._load, self._backend, self._clock, self._progress)
            repeat.figures |= slopes(repeat)
            result.repeats.append(repeat)


def slopes(repeat: Repeat) -> dict[str, float]:
    """Return how much each gauge of a repeat grew an hour, once it had settled."""
    samples = repeat.actual["samples"]
    samples = samples[int(len(samples) * _SETTLED_SHARE) :]
    if not samples:
        return {}
    figures = {}
    for part in ("node", "executor", "database"):
        names = [name for name in samples[0]["rss_bytes"] if name.partition("_")[0] == part]
        points = [(one["at_us"], sum(one["rss_bytes"][name] for name in names) / 1_048_576) for one in samples]
        if names:
            figures[f"{part}_rss_growth"] = hourly_slope(points)
    for figure, gauge in (("table_growth", "table_bytes"), ("dead_rows_growth", "dead_rows")):
        figures[figure] = hourly_slope([(one["at_us"], one[gauge]) for one in samples])
    figures["dead_rows_max"] = max(one["dead_rows"] for one in samples)
    lags = repeat.actual["lag_p99_by_time"]
    figures["lag_growth"] = hourly_slope([(at_us, p99_us) for at_us, p99_us in lags[int(len(lags) * _SETTLED_SHARE) :]])
    return figures


def hourly_slope(points: Sequence[tuple[int, float]]) -> float:
    """Return the slope of the straight line through points (microseconds, value) that fits best, an hour; 0 for few."""
    if len(points) < _POINTS_MIN:
        return 0.0
    hours = [(at_us - points[0][0]) / limits.SECOND_US / _HOUR_S for at_us, _ in points]
    middle = sum(hours) / len(hours)
    mean = sum(value for _, value in points) / len(points)
    spread = sum((hour - middle) ** 2 for hour in hours)
    if not spread:
        return 0.0
    return sum((hour - middle) * (value - mean) for hour, (_, value) in zip(hours, points, strict=True)) / spread
