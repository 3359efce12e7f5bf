"""Who makes requests while schedules fire: a process that has the store's address and nothing else.

Run as `python -m luciole.bench.mixed.requests`. Requests arrive as a Poisson process: each at an instant of its own,
whether those before it were answered or not.
"""

import asyncio
from collections.abc import Awaitable, Callable
from math import log

from luciole import limits
from luciole.bench.loops import run_here
from luciole.bench.percentiles import Distribution
from luciole.bench.processes import Message, answer_lines
from luciole.bench.steady import subject
from luciole.runtime.chance import Chance, seeded_chance
from luciole.runtime.clock import SystemClock

#: Of the requests, so many fail once and are retried, and so many are cancelled before they are due.
RETRIED_SHARE = 0.2
CANCELLED_SHARE = 0.1

#: What is cancelled would have become due long after the run.
_FAR = "1h"

_HANDLER_MS = 20


class Requests:
    """What the coordinator's verbs do here."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._made = {"plain": 0, "retried": 0, "cancelled": 0}
        self._late, self._taken = Distribution(), Distribution()

    async def make(self, rate: int, start_us: int, end_us: int, seed: int) -> Message:
        """Make requests at a rate from an instant to another."""
        chance = seeded_chance(seed)
        at_us = float(start_us)
        async with asyncio.TaskGroup() as group:
            while (at_us := at_us - log(1 - chance()) * limits.SECOND_US / rate) < end_us:
                # No sleep for what is due: a loop that can't keep up falls behind, and says so.
                while (left_us := round(at_us) - self._clock.now_us()) > 0:
                    await self._clock.sleep(left_us)
                self._late.add(self._clock.now_us() - round(at_us))
                kind, one = self._choose(chance)
                self._made[kind] += 1
                group.create_task(self._timed(one, round(at_us)))
        await subject.app.close()
        return {**self._made, "late": self._late.percentiles(), "taken": self._taken.percentiles()}

    async def _timed(self, one: Callable[[], Awaitable[object]], at_us: int) -> None:
        await one()
        self._taken.add(self._clock.now_us() - at_us)

    def _choose(self, chance: Chance) -> tuple[str, Callable[[], Awaitable[object]]]:
        draw = chance()
        if draw < CANCELLED_SHARE:
            return "cancelled", _cancelled
        if draw < CANCELLED_SHARE + RETRIED_SHARE:
            return "retried", _retried
        return "plain", _plain


async def _plain() -> None:
    await subject.sleep.enqueue(_HANDLER_MS)


async def _retried() -> None:
    await subject.second_time.enqueue(_HANDLER_MS)


async def _cancelled() -> None:
    handle = await subject.sleep.options(delay=_FAR).enqueue(_HANDLER_MS)
    await handle.cancel()


if __name__ == "__main__":
    run_here(answer_lines({"make": Requests().make}))
