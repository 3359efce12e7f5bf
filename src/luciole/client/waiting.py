"""Waiting for ends: however many wait, one statement asks for all of them."""

import asyncio
from collections.abc import Sequence
from itertools import islice

from luciole import limits
from luciole.errors import NotFound, Unavailable
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.model.instant import Instant
from luciole.runtime.clock import Clock
from luciole.store.spi import ReadStore

_PAUSE_MIN_US = 2 * limits.MS_US
_PAUSE_MAX_US = 250 * limits.MS_US


class _Wait:
    __slots__ = ("callers", "future", "since_us")

    def __init__(self, future: "asyncio.Future[ExecutionState]", since_us: Instant) -> None:
        self.future = future
        self.since_us = since_us
        self.callers = 0


class EndWatch:
    """Who waits for which execution, on one event loop.

    The pause between two looks grows with the age of the youngest wait, from 2 ms to a quarter of a second, so that
    short work is seen at once and long work costs little.
    """

    def __init__(self, store: ReadStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waits: dict[ExecutionKey, _Wait] = {}
        self._loop: asyncio.Task[None] | None = None
        self._fresh = asyncio.Event()  # A new wait shortens the pause under way.

    async def ended(self, key: ExecutionKey) -> ExecutionState:
        """Wait until an execution is terminal; return its state.

        Raises:
            NotFound: there is no such execution (any more).
        """
        wait = self._waits.get(key)
        if wait is None:
            loop = asyncio.get_running_loop()
            wait = self._waits[key] = _Wait(loop.create_future(), self._clock.monotonic_us())
            self._fresh.set()
            if self._loop is None:
                self._loop = loop.create_task(self._run())
        wait.callers += 1
        try:
            return await asyncio.shield(wait.future)
        finally:
            wait.callers -= 1
            if not wait.callers and self._waits.get(key) is wait:
                del self._waits[key]  # Nobody wants to know any more.

    async def close(self) -> None:
        """Stop looking; who still waits is told that the store is not at hand."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait([self._loop])
        self._give_up(Unavailable("the client was closed while an execution was awaited; it goes on"))

    async def _run(self) -> None:
        try:
            while self._waits:
                await self._look()
                if self._waits:
                    self._fresh.clear()
                    await self._clock.wait(self._fresh, self._pause_us())
        except Exception as problem:  # noqa: BLE001 - whatever it is, who waits has to hear of it
            self._give_up(problem)
        finally:
            self._loop = None

    async def _look(self) -> None:
        keys = list(self._waits)
        for start in range(0, len(keys), limits.PAGE_MAX):
            batch = list(islice(keys, start, start + limits.PAGE_MAX))
            self._settle(batch, await self._store.execution_states(batch))

    def _settle(self, keys: Sequence[ExecutionKey], states: Sequence[ExecutionState | None]) -> None:
        for key, state in zip(keys, states, strict=True):
            if state is not None and not state.terminal:
                continue
            wait = self._waits.pop(key)
            if wait.future.done():
                continue
            if state is None:
                wait.future.set_exception(NotFound(f"execution {key.text()}: there is none; its retention may be over"))
                wait.future.exception()  # Seen, in case its caller has gone.
            else:
                wait.future.set_result(state)

    def _pause_us(self) -> int:
        now_us = self._clock.monotonic_us()
        youngest_us = min(now_us - wait.since_us for wait in self._waits.values())
        return min(max(youngest_us // 4, _PAUSE_MIN_US), _PAUSE_MAX_US)

    def _give_up(self, problem: Exception) -> None:
        for wait in self._waits.values():
            if not wait.future.done():
                wait.future.set_exception(problem)
                wait.future.exception()
        self._waits.clear()
