"""A clock that tests own: it stands still until somebody advances it."""

import asyncio
import heapq
from dataclasses import dataclass, field
from itertools import count
from threading import RLock
from typing import Any

from luciole.model.instant import Instant

#: Rounds of the event loop after which tasks that never rest are an error of the test.
ROUNDS_MAX = 100_000
#: Rounds given to a loop that does not show whether it is idle (uvloop).
ROUNDS_BLIND = 200

#: 2026-01-01T00:00:00Z.
START_US: Instant = 1_767_225_600_000_000


@dataclass(order=True, slots=True)
class _Alarm:
    at_us: int
    number: int
    rung: asyncio.Future[None] = field(compare=False)
    loop: asyncio.AbstractEventLoop = field(compare=False)


class FakeClock:
    """A virtual `Clock`.

    Whoever sleeps or waits is woken by `advance`, one after the other in the order of the wake-up times (equal ones
    in the order of their calls), and everything that a wake-up sets off has come to rest before the next.
    """

    def __init__(self, now_us: Instant = START_US) -> None:
        """Stop the time at an instant, in microseconds UTC."""
        self._wall_us = now_us
        self._monotonic_us = 0
        self._alarms: list[_Alarm] = []
        self._numbers = count()
        self._lock = RLock()

    def now_us(self) -> Instant:
        """Return the virtual wall clock, microseconds UTC."""
        return self._wall_us

    def monotonic_us(self) -> int:
        """Return the virtual monotonic clock, microseconds since this clock was made."""
        return self._monotonic_us

    async def sleep(self, duration_us: int) -> None:
        """Wait until the clock was advanced by a duration; 0 or less just lets others run."""
        if duration_us <= 0:
            await asyncio.sleep(0)
            return
        alarm = self._set_alarm(duration_us)
        try:
            await alarm.rung
        finally:
            alarm.rung.cancel()

    async def wait(self, event: asyncio.Event, timeout_us: int) -> bool:
        """Wait until the event is set (True) or the clock was advanced by the timeout (False)."""
        if event.is_set():
            return True
        if timeout_us <= 0:
            await asyncio.sleep(0)
            return event.is_set()
        alarm = self._set_alarm(timeout_us)
        waiter = asyncio.ensure_future(event.wait())
        ends: set[asyncio.Future[Any]] = {waiter, alarm.rung}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
            alarm.rung.cancel()
        return event.is_set()

    async def advance(self, duration_us: int) -> None:
        """Let time pass, with all that happens in it; returns when everything has come to rest again.

        Raises:
            RuntimeError: tasks never come to rest.
        """
        end_us = self._monotonic_us + duration_us
        await self.settle()
        while (alarm := self._next_alarm(end_us)) is not None:
            self.jump(alarm.at_us - self._monotonic_us)
            _ring(alarm)
            await self.settle()
        self.jump(end_us - self._monotonic_us)

    async def settle(self) -> None:
        """Let every task run as far as it can without time passing.

        Raises:
            RuntimeError: tasks never come to rest.
        """
        loop = asyncio.get_running_loop()
        idle_rounds = 0
        for round_number in range(ROUNDS_MAX):
            await asyncio.sleep(0)
            ready = getattr(loop, "_ready", None)
            if ready is None and round_number >= ROUNDS_BLIND:
                return
            # Twice in a row: in between the loop has looked at its sockets and at other threads.
            idle_rounds = idle_rounds + 1 if ready is not None and not ready else 0
            if idle_rounds > 1:
                return
        raise RuntimeError(f"tasks were still busy after {ROUNDS_MAX} rounds; does a loop pause for 0 for ever?")

    def next_alarm_us(self) -> int | None:
        """Return how far away the next wake-up is that somebody waits for; None when nobody waits."""
        with self._lock:
            while self._alarms and self._alarms[0].rung.done():
                heapq.heappop(self._alarms)
            return max(0, self._alarms[0].at_us - self._monotonic_us) if self._alarms else None

    def jump(self, duration_us: int) -> None:
        """Move both clocks and wake nobody, as a machine that was suspended; the next `advance` wakes who is late."""
        assert duration_us >= 0  # A monotonic clock never runs backwards.
        self._monotonic_us += duration_us
        self._wall_us += duration_us

    def shift_wall(self, shift_us: int) -> None:
        """Set the wall clock forward or back, as an administrator does; nothing else notices."""
        self._wall_us += shift_us

    def _set_alarm(self, duration_us: int) -> _Alarm:
        loop = asyncio.get_running_loop()
        with self._lock:
            alarm = _Alarm(self._monotonic_us + duration_us, next(self._numbers), loop.create_future(), loop)
            heapq.heappush(self._alarms, alarm)
        return alarm

    def _next_alarm(self, end_us: int) -> _Alarm | None:
        """Take the next alarm that somebody still waits for, up to a monotonic instant."""
        with self._lock:
            while self._alarms and self._alarms[0].at_us <= end_us:
                alarm = heapq.heappop(self._alarms)
                if not alarm.rung.done():
                    alarm.at_us = max(alarm.at_us, self._monotonic_us)  # It may be late after a jump.
                    return alarm
        return None


def _ring(alarm: _Alarm) -> None:
    def wake() -> None:
        if not alarm.rung.done():
            alarm.rung.set_result(None)

    if alarm.loop is asyncio.get_running_loop():
        wake()
    elif not alarm.loop.is_closed():
        alarm.loop.call_soon_threadsafe(wake)
