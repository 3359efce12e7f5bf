"""What a process of the bench observes of itself: steps, stalls of its event loop, pauses of its collector."""

import asyncio
import gc
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from luciole.bench.spans import Span, exclusive_stages, in_flight
from luciole.limits import MS_US, SECOND_US
from luciole.runtime.clock import Clock

#: How often the heart of a loop beats, and how late a beat is a stall.
_BEAT_US = 5 * MS_US
_STALL_US = 10 * MS_US

#: Steps inside calls of the store, the most telling first: whichever is under way has the time.
STEPS = ("commit", "statement", "lock", "wait_connection", "decide", "deliver", "gc")


class Told(msgspec.Struct, kw_only=True):
    """What one process tells of one window; instants are of the monotonic clock that all processes share."""

    begun_us: int
    ended_us: int
    stages_us: dict[str, int]  #: exclusive; they add up to the window
    in_flight: dict[str, float]  #: how many of each step were under way on average
    main_thread_us: int
    gc_pauses: int
    gc_pauses_us: int
    stalls_us: int
    stall_max_us: int
    done: list[tuple[int, int]] = []  #: instants, with the jobs that were done then
    computing: tuple[str, ...] = ()  #: its stages in which it computes; empty: as a scheduler names them


class StepLog:
    """Collects the steps that parts of the product tell of; a lookup of the clock at each end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.steps: list[Span] = []

    def begin(self) -> int:
        """Return the monotonic time, microseconds."""
        return self._clock.monotonic_us()

    def end(self, step: str, begun_us: int) -> None:
        """Note that a step ended now."""
        self.steps.append(Span(step, begun_us, self._clock.monotonic_us(), None))


class Watching:
    """Watches this process while a window is open."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.log = StepLog(clock)
        self._beating: asyncio.Task[None] | None = None
        self._stalls_us: list[int] = []
        self._collecting_us = 0
        self._expected_us = 0

    def begin(self) -> None:
        """Open a window: forget what was, and start to look."""
        self.log.steps = []
        self._stalls_us = []
        self._begun_us = self._clock.monotonic_us()
        self._thread_us = _thread_us()
        if self._beating is None:
            gc.callbacks.append(self._collected)
            self._expected_us = self._begun_us + _BEAT_US
            self._beating = asyncio.get_running_loop().create_task(self._beat(), name="bench-heart")

    async def end(self, spans: Iterable[Span], order: Sequence[str], *, begun_us: int, ended_us: int) -> Told:
        """Close the window; return what it was made of.

        Args:
            spans: calls of the store in it.
            order: their verbs; a step inside a call goes before the call itself.
            begun_us: where the window begins, when that is not where `begin` was called.
            ended_us: where it ends.
        """
        main_thread_us = _thread_us() - self._thread_us
        if self._beating is not None:
            self._note_stall()
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
            self._beating = None
            gc.callbacks.remove(self._collected)
        everything = [*self.log.steps, *spans]
        collections = [step.ended_us - step.begun_us for step in self.log.steps if step.verb == "gc"]
        return Told(
            begun_us=begun_us,
            ended_us=ended_us,
            stages_us=exclusive_stages(everything, (*STEPS, *order), begun_us, ended_us),
            in_flight=in_flight(everything, begun_us, ended_us),
            main_thread_us=main_thread_us,
            gc_pauses=len(collections),
            gc_pauses_us=sum(collections),
            stalls_us=sum(self._stalls_us),
            stall_max_us=max(self._stalls_us, default=0),
        )

    async def _beat(self) -> None:
        while True:
            self._expected_us = self._clock.monotonic_us() + _BEAT_US
            await asyncio.sleep(_BEAT_US / SECOND_US)
            self._note_stall()

    def _note_stall(self) -> None:
        late_us = self._clock.monotonic_us() - self._expected_us
        if late_us >= _STALL_US:
            self._stalls_us.append(late_us)

    def _collected(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_us = self.log.begin()
        else:
            self.log.end("gc", self._collecting_us)


def _thread_us() -> int:
    return time.thread_time_ns() // 1_000
