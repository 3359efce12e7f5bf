"""Moments to look at attempts again: timeouts, deadlines, and what a cancelled one gets to end."""

import asyncio
import heapq
from collections.abc import Callable
from typing import Final

from luciole import limits
from luciole.executor.attempt import Attempt
from luciole.runtime.clock import Clock

#: What to do with an attempt at its moment.
Action = Callable[[Attempt], None]

_SLACK: Final = 1_000


class Timers:
    """One waiting task for all moments.

    Args:
        clock: the time.
        live: says whether an attempt still matters; a moment of one that does not is dropped.
    """

    def __init__(self, clock: Clock, live: Callable[[Attempt], bool]) -> None:
        self._clock = clock
        self._live = live
        self._heap: list[tuple[int, int, Attempt, Action]] = []
        self._count = 0
        self._compact_at = _SLACK
        self._earlier = asyncio.Event()

    def add(self, at_us: int, attempt: Attempt, action: Action) -> None:
        """Call `action` with the attempt at a moment of the monotonic clock, if it still matters then."""
        self._count += 1
        heapq.heappush(self._heap, (at_us, self._count, attempt, action))
        if self._heap[0][1] == self._count:
            self._earlier.set()
        if len(self._heap) > self._compact_at:
            # Most attempts end long before their timeout.
            self._heap = [entry for entry in self._heap if self._live(entry[2])]
            heapq.heapify(self._heap)
            self._compact_at = 2 * len(self._heap) + _SLACK

    async def run(self) -> None:
        """Serve the moments, until cancelled."""
        while True:
            self._earlier.clear()
            now_us = self._clock.monotonic_us()
            while self._heap and self._heap[0][0] <= now_us:
                _, _, attempt, action = heapq.heappop(self._heap)
                if self._live(attempt):
                    action(attempt)
            pause_us = self._heap[0][0] - now_us if self._heap else limits.REST_US
            await self._clock.wait(self._earlier, pause_us)
