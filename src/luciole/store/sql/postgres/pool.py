"""Connections for one purpose: opened when they are needed, used last first, bounded in number."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from luciole.errors import StoreUnavailable
from luciole.runtime.steps import Steps
from luciole.store.sql.postgres.failures import is_broken
from luciole.store.sql.postgres.link import Link


class Pool:
    """At most so many connections; who finds none free waits in line."""

    def __init__(self, connect: Callable[[], Awaitable[Link]], most: int, steps: Steps | None = None) -> None:
        """Make a pool; `reopen` it before use.

        Args:
            connect: opens a connection.
            most: how many there may be.
            steps: is told of waits; None: nobody measures.
        """
        self._connect = connect
        self._free = asyncio.Semaphore(most)
        self._steps = steps
        self._idle: deque[Link] = deque()
        self._closed = True
        self.waiting = 0  #: who stands in line: a gauge
        self.waits = 0  #: how often somebody found none free: a counter

    @property
    def has_idle(self) -> bool:
        """Whether a connection could be lent at this moment, with nothing to wait for."""
        return bool(self._idle) and not self._closed and not self._idle[-1].closed and not self._free.locked()

    async def borrow(self) -> Link:
        """Lend a connection; whoever has it gives it back."""
        begun_us = 0 if self._steps is None else self._steps.begin()
        if self._free.locked():
            self.waits += 1
            self.waiting += 1
            try:
                await self._free.acquire()
            finally:
                self.waiting -= 1
        else:
            await self._free.acquire()  # At once: a single enqueue counts each step of the loop.
        if self._steps is not None:
            self._steps.end("wait_connection", begun_us)
        try:
            return await self._take()
        except BaseException:
            self._free.release()
            raise

    def give_back(self, link: Link, problem: BaseException | None = None) -> None:
        """Take a connection back; one that broke is closed.

        Args:
            link: what was borrowed.
            problem: how its use ended, when it failed.
        """
        if problem is not None and (is_broken(problem) or not isinstance(problem, Exception)):
            self._drop(link)
        self._give(link)
        self._free.release()

    async def close(self) -> None:
        """Close what is idle; what is lent is closed when it comes back. Safe to repeat."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    def reopen(self) -> None:
        """Let connections be opened again."""
        self._closed = False

    async def _take(self) -> Link:
        if self._closed:
            raise StoreUnavailable("postgresql: the store is not open; call `open` first")
        while self._idle:
            link = self._idle.pop()
            if not link.closed:
                return link
        return await self._connect()

    def _give(self, link: Link) -> None:
        if link.closed:
            return
        if self._closed:
            link.drop()
        else:
            self._idle.append(link)

    def _drop(self, link: Link) -> None:
        """End a broken connection, and the idle ones: what broke one has most likely broken all."""
        link.drop()
        while self._idle:
            self._idle.pop().drop()
