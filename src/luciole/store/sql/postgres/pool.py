"""Connections for one purpose: opened when they are needed, used last first, bounded in number."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

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

    @asynccontextmanager
    async def link(self) -> AsyncIterator[Link]:
        """Lend a connection; it comes back unless it broke."""
        self.waiting += 1
        self.waits += self._free.locked()
        begun_us = 0 if self._steps is None else self._steps.begin()
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        if self._steps is not None:
            self._steps.end("wait_connection", begun_us)
            begun_us = self._steps.begin()
        try:
            link = await self._take()
            try:
                yield link
            except BaseException as problem:
                if is_broken(problem) or not isinstance(problem, Exception):
                    self._drop(link)
                raise
            finally:
                self._give(link)
        finally:
            self._free.release()
            if self._steps is not None:
                self._steps.end("connection", begun_us)

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
