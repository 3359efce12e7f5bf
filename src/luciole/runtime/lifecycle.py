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


@dataclass(slots=True, kw_only=True)
class Lifecycle:
    """Starts parts in order; when one fails, stops those that run, so that nothing is half there."""

    clock: Clock
    stop_grace_us: int = limits.PART_STOP_GRACE_US  #: what a part gets to stop in order
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
            stopping = asyncio.ensure_future(_stop(part))
            if not await end_within(self.clock, (stopping,), self.stop_grace_us):
                _log.warning("%s did not stop in time and was cut off", part.name)


class LoopGroup:
    """Loops that run as tasks of one event loop, known by their names.

    Args:
        clock: the time of all of them.
        chance: spreads the pauses after errors.
        owner: whose loops they are; part of the names of their tasks.
    """

    def __init__(self, clock: Clock, chance: Chance, *, owner: str) -> None:
        self.owner = owner
        self._clock = clock
        self._chance = chance
        self._loops: dict[str, Loop] = {}
        self._listening: set[str] = set()
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    def __iter__(self) -> Iterator[Loop]:
        return iter(self._loops.values())

    def __getitem__(self, name: str) -> Loop:
        return self._loops[name]

    def add(
        self,
        name: str,
        tick: Tick,
        *,
        backoff: Backoff | None = None,
        pause_max_us: int = limits.IDLE_PAUSE_MAX_US,
        listens: bool = False,
    ) -> None:
        """Add a loop to a group that has not started; one that only `listens` has nothing to end when it is stopped."""
        assert name not in self._loops
        if listens:
            self._listening.add(name)
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
        self._tasks = tuple(asyncio.create_task(loop.run(), name=f"luciole-{self.owner}-{loop.name}") for loop in self)

    async def stop(self, *, grace_us: int) -> None:
        """Let each loop end its tick, but for those that only listen; after the grace, cancel those that did not."""
        for loop in self:
            loop.stop()
        tasks, self._tasks = self._tasks, ()
        for loop, task in zip(self, tasks, strict=False):  # No tasks when it never started.
            if loop.name in self._listening:
                task.cancel()
        await end_within(self._clock, tasks, grace_us)


async def _stop(part: Part) -> None:
    try:
        await part.stop()
    except LucioleError as error:
        _log.warning("%s did not stop in order: %s", part.name, error)
    except Exception:  # noqa: BLE001 - the others still have to stop
        _log.exception("%s did not stop in order", part.name)


async def end_within(clock: Clock, tasks: Sequence[asyncio.Task[None]], grace_us: int) -> bool:
    """Wait for tasks to end; cancel those that have not after a while, in microseconds. Errors stay with the tasks.

    Returns:
        Whether all of them ended by themselves.
    """
    ended = asyncio.Event()
    waiter = asyncio.ensure_future(_wait_all(tasks, ended))
    in_time = await clock.wait(ended, grace_us)
    for task in () if in_time else tasks:
        task.cancel()
    await waiter
    return in_time


async def _wait_all(tasks: Sequence[asyncio.Task[None]], ended: asyncio.Event) -> None:
    if tasks:
        await asyncio.wait(tasks)
    ended.set()
