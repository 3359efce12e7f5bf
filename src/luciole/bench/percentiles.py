"""Distributions of durations, kept whole: percentiles are never averaged, histograms are merged."""

from collections.abc import Iterable

from luciole import limits
from luciole.bench.result import Percentiles
from luciole.runtime.extras import require

with require("bench"):
    from hdrh.histogram import HdrHistogram

#: Durations from 1 µs to an hour, each known to three digits.
_HIGHEST_US = limits.HOUR_US
_DIGITS = 3

#: Points of a percentile curve between one nine and the next.
CURVE_STEPS = 16


class Distribution:
    """Collects durations in microseconds; less than 1 counts as 1, more than an hour as an hour."""

    def __init__(self) -> None:
        self._histogram = HdrHistogram(1, _HIGHEST_US, _DIGITS)

    @property
    def count(self) -> int:
        """How many durations it holds."""
        return int(self._histogram.get_total_count())

    def add(self, duration_us: int, times: int = 1) -> None:
        """Count a duration, in microseconds, as often as it happened."""
        self._histogram.record_value(min(max(duration_us, 1), _HIGHEST_US), times)

    def merge(self, encoded: str) -> None:
        """Add all that another histogram holds, given as `percentiles().hdr_v2`."""
        self._histogram.decode_and_add(encoded)

    def value_at(self, percentile: float) -> int:
        """Return the duration that this percentage (0 to 100) of all does not exceed, in microseconds."""
        return int(self._histogram.get_value_at_percentile(percentile))

    def percentiles(self) -> Percentiles:
        """Return the usual points, and the histogram itself."""
        at = self._histogram.get_value_at_percentile
        return Percentiles(
            count=self.count,
            p50=int(at(50)),
            p95=int(at(95)),
            p99=int(at(99)),
            max=int(self._histogram.get_max_value()) if self.count else 0,
            hdr_v2=self._histogram.encode().decode("ascii"),
        )


def merged(parts: Iterable[Percentiles]) -> Percentiles:
    """Return the distribution of all that several hold together."""
    whole = Distribution()
    for part in parts:
        whole.merge(part.hdr_v2)
    return whole.percentiles()


def curve(part: Percentiles) -> list[tuple[float, int]]:
    """Return points of the percentile curve: how many nines (0 to 1 - 10^-nines of all) and the duration there, in us.

    The curve ends where fewer than one duration lies beyond.
    """
    whole = Distribution()
    whole.merge(part.hdr_v2)
    at = whole.value_at
    nines = [step / CURVE_STEPS for step in range(5 * CURVE_STEPS + 1)]
    return [(nine, at(100 * (1 - 10**-nine))) for nine in nines if part.count * 10**-nine >= 1]
