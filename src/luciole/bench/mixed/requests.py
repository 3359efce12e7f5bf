"""Who makes requests while schedules fire: a process that has the store's address and nothing else.

Run as `python -m luciole.bench.mixed.requests`. Requests arrive as a Poisson process: each at an instant of its own,
whether those before it were answered or not.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec

from luciole import limits
from luciole.bench.arrivals import Arrived, offsets
from luciole.bench.loops import run_here
from luciole.bench.percentiles import Distribution
from luciole.bench.processes import Message, answer_lines
from luciole.bench.steady import subject
from luciole.client.handle import Handle
from luciole.model.execution import ExecutionState
from luciole.runtime.chance import seeded_chance
from luciole.runtime.clock import SystemClock

#: Of the requests, so many fail once and are retried, and so many are cancelled before they are due.
RETRIED_SHARE = 0.2
CANCELLED_SHARE = 0.1

#: What is cancelled would have become due after so long, and did become due where its cancellation had no effect.
_DUE_AFTER_US = 3 * limits.SECOND_US

#: A cancellation is asked for when at least so much is left until then; a later one proves nothing and is left out.
_IN_TIME_US = limits.SECOND_US

_HANDLER_MS = 20


class Requests:
    """What the coordinator's verbs do here."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._made = {"plain": 0, "retried": 0, "cancelled": 0}
        self._late, self._taken, self._cancelling = Distribution(), Distribution(), Distribution()
        self._cancelled_at_once = 0

    async def make(self, rate: int, start_us: int, end_us: int, seed: int) -> Message:
        """Make requests at a rate from an instant to another."""
        chance = seeded_chance(seed)
        arrived = Arrived()
        async with asyncio.TaskGroup() as group:
            for offset_us in map(round, offsets(rate, end_us - start_us, chance)):
                # No sleep for what is due: a loop that can't keep up falls behind, and says so.
                while (left_us := start_us + offset_us - self._clock.now_us()) > 0:
                    await self._clock.sleep(left_us)
                since_us = self._clock.now_us() - start_us
                self._late.add(since_us - offset_us)
                draw = chance()
                arrived.add(offset_us, since_us, draw)
                kind, one = choose(draw)
                group.create_task(self._timed(kind, one, start_us + offset_us))
        await subject.app.close()
        return {
            **self._made,
            "cancelled_at_once": self._cancelled_at_once,
            "arrived": msgspec.to_builtins(arrived),
            "late": self._late.percentiles(),
            "taken": self._taken.percentiles(),
            "cancel_time": self._cancelling.percentiles(),
        }

    async def _timed(self, kind: str, one: Callable[[], Awaitable[Handle[None]]], at_us: int) -> None:
        handle = await one()
        if kind == "cancelled" and not await self._cancel(handle):
            kind = "plain"
        self._made[kind] += 1
        self._taken.add(self._clock.now_us() - at_us)

    async def _cancel(self, handle: Handle[None]) -> bool:
        """Cancel what is not due for a while; return whether that was asked for in time."""
        asked_us = self._clock.now_us()
        if handle.key.fire_us - asked_us < _IN_TIME_US:
            return False
        state = await handle.cancel()  # Before the sum is read: many are under way at once.
        self._cancelled_at_once += state is ExecutionState.CANCELLED
        self._cancelling.add(self._clock.now_us() - asked_us)
        return True


def choose(draw: float) -> tuple[str, Callable[[], Awaitable[Handle[None]]]]:
    """Return the kind that a draw between 0 and 1 makes of a request, and what makes it."""
    if draw < CANCELLED_SHARE:
        return "cancelled", _later
    if draw < CANCELLED_SHARE + RETRIED_SHARE:
        return "retried", _retried
    return "plain", _plain


async def _plain() -> Handle[None]:
    return await subject.sleep.enqueue(_HANDLER_MS)


async def _retried() -> Handle[None]:
    return await subject.second_time.enqueue(_HANDLER_MS)


async def _later() -> Handle[None]:
    return await subject.sleep.options(delay=timedelta(microseconds=_DUE_AFTER_US)).enqueue(_HANDLER_MS)


if __name__ == "__main__":
    run_here(answer_lines({"make": Requests().make}))
