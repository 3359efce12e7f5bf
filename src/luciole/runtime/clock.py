"""Clocks: the real one, and what every part that needs time is given."""

import asyncio
import time
from typing import Protocol

from luciole.limits import SECOND_US
from luciole.model.instant import Instant


class Clock(Protocol):
    """Wall time, monotonic time and waiting; injected everywhere, so that tests own all three."""

    def now_us(self) -> Instant:
        """Return the host's wall clock, microseconds UTC."""
        ...

    def monotonic_us(self) -> int:
        """Return microseconds of a clock that never jumps; only differences mean something."""
        ...

    async def sleep(self, duration_us: int) -> None:
        """Wait for a duration in microseconds; 0 or less just lets others run."""
        ...

    async def wait(self, event: asyncio.Event, timeout_us: int) -> bool:
        """Wait until the event is set (True) or the duration is over (False)."""
        ...


class SystemClock:
    """The host's clocks."""

    def now_us(self) -> Instant:
        """Return the host's wall clock, microseconds UTC."""
        return time.time_ns() // 1_000

    def monotonic_us(self) -> int:
        """Return the host's monotonic clock, microseconds."""
        return time.monotonic_ns() // 1_000

    async def sleep(self, duration_us: int) -> None:
        """Wait for a duration in microseconds."""
        await asyncio.sleep(max(0, duration_us) / SECOND_US)

    async def wait(self, event: asyncio.Event, timeout_us: int) -> bool:
        """Wait until the event is set (True) or the duration is over (False)."""
        if event.is_set():
            return True
        try:
            async with asyncio.timeout(max(0, timeout_us) / SECOND_US):
                await event.wait()
        except TimeoutError:
            pass
        return event.is_set()  # Both may happen in one step.
