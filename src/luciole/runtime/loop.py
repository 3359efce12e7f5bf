"""Loops: a bounded tick again and again, with sleeping, waking, errors and stopping in one place."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from luciole import limits
from luciole.errors import Unavailable
from luciole.runtime.backoff import Backoff
from luciole.runtime.chance import Chance
from luciole.runtime.clock import Clock

_log = logging.getLogger("luciole.loop")

#: One bounded pass; returns the pause until the next, in microseconds (0: more is waiting).
Tick = Callable[[], Awaitable[int]]


@dataclass(slots=True, kw_only=True)
class Loop:
    """Runs a tick until it is stopped, whatever the tick raises.

    After an error it comes back with a growing pause that a `poke` does not shorten, so that a store that is down is
    not hammered. It never gives up by itself: `failing` says that its error budget is spent, and liveness asks
    for `stalled_us`.
    """

    name: str
    tick: Tick
    clock: Clock
    chance: Chance
    pause_max_us: int = limits.IDLE_PAUSE_MAX_US
    backoff: Backoff = field(default_factory=Backoff)
    failures_max: int = limits.LOOP_FAILURES_MAX  #: in a row; the error budget
    ticks: int = 0
    errors: int = 0
    failures: int = 0  #: in a row
    last_error: str | None = None
    _progress_us: int = 0
    _pausing: bool = False
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._progress_us = self.clock.monotonic_us()

    @property
    def failing(self) -> bool:
        """Whether more ticks failed in a row than its budget allows."""
        return self.failures > self.failures_max

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self._stop.is_set()

    def stalled_us(self) -> int:
        """Return how long its tick has made no progress, in microseconds; 0 while it pauses."""
        return 0 if self._pausing else self.clock.monotonic_us() - self._progress_us

    def progress(self) -> None:
        """Note that a long tick gets on."""
        self._progress_us = self.clock.monotonic_us()

    def poke(self) -> None:
        """End the pause: there may be something to do."""
        self._wake.set()

    def stop(self) -> None:
        """Ask it to stop after the tick under way."""
        self._stop.set()
        self._wake.set()

    async def run(self) -> None:
        """Tick until stopped."""
        while not self._stop.is_set():
            self._wake.clear()
            try:
                pause_us = await self.tick()
            except Exception as error:  # noqa: BLE001 - a loop survives any surprise; that is what it is for
                await self._recover(error)
                continue
            if self.failures:
                _log.info("%s is back after %d failures", self.name, self.failures)
                self.failures = 0
            self.ticks += 1
            self.progress()
            if self._stop.is_set():
                return
            await self._pause(pause_us)

    async def _pause(self, pause_us: int) -> None:
        self._pausing = True
        if pause_us <= 0:
            await self.clock.sleep(0)  # Others get their turn.
        else:
            await self.clock.wait(self._wake, min(pause_us, self.pause_max_us))
        self._pausing = False
        self.progress()  # Having slept is no stall.

    async def _recover(self, error: Exception) -> None:
        self.errors += 1
        self.failures += 1
        self.last_error = f"{type(error).__name__}: {error}"[: limits.ERROR_TEXT_LENGTH_MAX]
        if self.failures in {1, self.failures_max}:
            surprise = not isinstance(error, Unavailable)
            _log.warning("%s failed (%d in a row): %s", self.name, self.failures, error, exc_info=surprise)
        await self.clock.wait(self._stop, self.backoff.delay_us(self.failures, self.chance()))
