"""Lifecycle: parts that start together or not at all, and end in the opposite order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from luciole import limits
from luciole.errors import LucioleError
from luciole.runtime.backoff import Backoff
from luciole.runtime.chance import Chance
from luciole.runtime.clock import Clock
from luciole.runtime.loop import Loop, Tick

_log = logging.getLogger("luciole.lifecycle")


async def _nothing() -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing with a beginning and an end."""

    name: str
    start: Callable[[], Awaitable[None]] = _nothing
    stop: Callable[[], Awaitable[None]] = _nothing


@dataclass(slots=True)
class Lifecycle:
    """Starts parts in order; when one fails, stops those that run, so that nothing is half there."""

    _running: list[Part] = field(default_factory=list)

    async def start(self, parts: Sequence[Part]) -> None:
        """Start all parts, or none.

        Raises:
            Exception: what the part that failed raised; those started before it are stopped again.
        """
        for part in parts:
            try:
                await part.start()
            except BaseException:
                await self.stop()
                raise
            self._running.append(part)

    async def stop(self) -> None:
        """Stop what runs, the last started first; one that fails does not keep the others from it."""
        while self._running:
            part = self._running.pop()
            try:
                await part.stop()
            except LucioleError as error:
                _log.warning("%s did not stop in order: %s", part.name, error)
            except Exception:  # noqa: BLE001 - the others still have to stop
                _log.exception("%s did not stop in order", part.name)


class LoopGroup:
    """Loops that run as tasks of one event loop, known by their names.

    Args:
        clock: the time of all of them.
        chance: spreads the pauses after errors.
    """

    def __init__(self, clock: Clock, chance: Chance) -> None:
        self._clock = clock
        self._chance = chance
        self._loops: dict[str, Loop] = {}
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    def __iter__(self) -> Iterator[Loop]:
        return iter(self._loops.values())

    def __getitem__(self, name: str) -> Loop:
        return self._loops[name]

    def add(
        self, name: str, tick: Tick, *, backoff: Backoff | None = None, pause_max_us: int = limits.IDLE_PAUSE_MAX_US
    ) -> None:
        """Add a loop to a group that has not started."""
        assert name not in self._loops
        self._loops[name] = Loop(
            name=name,
            tick=tick,
            clock=self._clock,
            chance=self._chance,
            backoff=backoff or Backoff(),
            pause_max_us=pause_max_us,
        )

    def poke(self, name: str) -> None:
        """Wake a loop by its name."""
        self._loops[name].poke()

    async def start(self) -> None:
        """Start a task for each loop."""
        self._tasks = tuple(asyncio.create_task(loop.run(), name=f"luciole-{loop.name}") for loop in self)

    async def stop(self, *, grace_us: int) -> None:
        """Let each loop end its tick; after the grace, cancel those that did not."""
        for loop in self:
            loop.stop()
        tasks, self._tasks = self._tasks, ()
        ended = asyncio.Event()
        waiter = asyncio.ensure_future(_all_ended(tasks, ended))
        if not await self._clock.wait(ended, grace_us):
            for task in tasks:
                task.cancel()
        await waiter


async def _all_ended(tasks: Sequence[asyncio.Task[None]], ended: asyncio.Event) -> None:
    if tasks:
        await asyncio.wait(tasks)
    ended.set()
