"""Telemetry: counters, gauges and small histograms that are cheap enough for every batch."""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from luciole import limits
from luciole.errors import Unavailable
from luciole.runtime.clock import Clock

ResultT = TypeVar("ResultT")

#: Upper edges of the histogram's cells in microseconds: 100 µs, then each 1.58 times the one before, to 10 min.
_EDGES_US: tuple[int, ...] = tuple(int(100 * 10 ** (step / 5)) for step in range(35))


class Histogram:
    """Durations in 36 fixed cells; percentiles are the upper edge of their cell, so at most 58 % too high."""

    __slots__ = ("cells", "count", "max_us")

    def __init__(self) -> None:
        self.cells = [0] * (len(_EDGES_US) + 1)
        self.count = 0
        self.max_us = 0

    def add(self, duration_us: int, times: int = 1) -> None:
        """Count a duration, in microseconds, as often as it happened."""
        self.cells[bisect_left(_EDGES_US, duration_us)] += times
        self.count += times
        self.max_us = max(self.max_us, duration_us)

    def percentile_us(self, share: float) -> int:
        """Return the duration that this share (0 to 1) of all does not exceed; 0 without any."""
        rank = share * self.count
        seen = 0
        for cell, times in enumerate(self.cells):
            seen += times
            if times and seen >= rank:
                return min(_EDGES_US[cell], self.max_us) if cell < len(_EDGES_US) else self.max_us
        return 0

    def summary(self) -> dict[str, int]:
        """Return count, p50, p99 and maximum, in microseconds."""
        return {
            "count": self.count,
            "p50_us": self.percentile_us(0.5),
            "p99_us": self.percentile_us(0.99),
            "max_us": self.max_us,
        }


class Telemetry:
    """What one node counts; published with its heartbeat.

    Counters only grow. Gauges are asked for when somebody reads. Histograms start anew after each publication
    window, so that they say how it is, not how it was.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._window_us = clock.monotonic_us()
        self.counters: Counter[str] = Counter()
        self._gauges: dict[str, Callable[[], Any]] = {}
        self._present: dict[str, Histogram] = {}
        self._former: dict[str, Histogram] = {}

    def count(self, name: str, times: int = 1) -> None:
        """Count something that happened."""
        self.counters[name] += times

    def gauge(self, name: str, read: Callable[[], Any]) -> None:
        """Offer a value that is read with each snapshot: a number or a small dict of numbers."""
        self._gauges[name] = read

    def note(self, name: str, duration_us: int, times: int = 1) -> None:
        """Add a duration, in microseconds, to a histogram."""
        histogram = self._present.get(name)
        if histogram is None:
            histogram = self._present[name] = Histogram()
        histogram.add(duration_us, times)

    async def timed(self, verb: str, call: Awaitable[ResultT]) -> ResultT:
        """Await a store verb and note its latency under the verb's name; count it when it failed."""
        begun_us = self._clock.monotonic_us()
        try:
            return await call
        except Unavailable:
            self.counters["store_unavailable"] += 1
            raise
        finally:
            self.note(f"store.{verb}", self._clock.monotonic_us() - begun_us)

    def snapshot(self) -> dict[str, Any]:
        """Return counters, gauges and the histograms of the last one to two windows."""
        now_us = self._clock.monotonic_us()
        if now_us - self._window_us >= limits.TELEMETRY_WINDOW_US:
            self._window_us = now_us
            self._former, self._present = self._present, {}
        shown = {**self._former, **self._present}
        return {
            "counters": dict(sorted(self.counters.items())),
            "gauges": {name: read() for name, read in sorted(self._gauges.items())},
            "durations": {name: shown[name].summary() for name in sorted(shown)},
        }

    def text(self) -> str:
        """Return the snapshot as compact JSON text."""
        return json.dumps(self.snapshot(), separators=(",", ":"))
