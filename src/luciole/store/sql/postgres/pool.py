"""Connections for one purpose: opened when they are needed, used last first, bounded in number and in patience."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from luciole import limits
from luciole.errors import StoreUnavailable
from luciole.runtime.steps import Steps
from luciole.store.sql.postgres.failures import is_broken
from luciole.store.sql.postgres.link import Link


class Pool:
    """At most so many connections; who finds none free waits in line.

    What is lent for too long has nothing to say any more, and is given up: its user gets the error of a broken line.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[Link]], most: int, *, patience_us: int, steps: Steps | None = None
    ) -> None:
        """Make a pool; `reopen` it before use.

        Args:
            connect: opens a connection.
            most: how many there may be.
            patience_us: after so long a connection that has not come back is given up.
            steps: is told of waits; None: nobody measures.
        """
        self._connect = connect
        self._free = most
        self._line: deque[asyncio.Future[None]] = deque()
        self._steps = steps
        self._idle: deque[Link] = deque()
        self._closed = True
        self._watchdog = _Watchdog(patience_us)
        self.waits = 0  #: how often somebody found none free: a counter

    @property
    def waiting(self) -> int:
        """Who stands in line: a gauge."""
        return len(self._line)

    def borrow_at_once(self) -> Link | None:
        """Lend a connection that is open and idle; None: `borrow` waits for one, or opens it."""
        if not self._idle or self._free <= 0 or self._closed or self._idle[-1].closed:
            return None
        self._free -= 1
        link = self._idle.pop()
        self._watchdog.watch(link)
        return link

    async def borrow(self) -> Link:
        """Lend a connection; whoever has it gives it back."""
        begun_us = 0 if self._steps is None else self._steps.begin()
        await self._be_next()
        if self._steps is not None:
            self._steps.end("wait_connection", begun_us)
        try:
            link = await self._take()
        except BaseException:
            self._release()
            raise
        self._watchdog.watch(link)
        return link

    def give_back(self, link: Link, problem: BaseException | None = None) -> None:
        """Take a connection back; one that broke is closed.

        Args:
            link: what was borrowed.
            problem: how its use ended, when it failed.
        """
        self._watchdog.leave(link)
        if problem is not None and (is_broken(problem) or not isinstance(problem, Exception)):
            self._drop(link)
        self._give(link)
        self._release()

    async def close(self) -> None:
        """Close what is idle; what is lent is closed when it comes back. Safe to repeat."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    def reopen(self) -> None:
        """Let connections be opened again."""
        self._closed = False

    async def _be_next(self) -> None:
        """Take one of the `most`, in the order of coming."""
        if self._free > 0:
            self._free -= 1
            return
        self.waits += 1
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):  # It may have been passed over already.
                    self._line.remove(turn)
            else:
                self._release()  # Its turn had come: it is the next one's.
            raise

    def _release(self) -> None:
        """Let the next in line have what was lent; nobody there: whoever comes."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

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


class _Watchdog:
    """Drops links that are lent for too long, by one timer for all of them: one for each would be felt."""

    def __init__(self, patience_us: int) -> None:
        self._patience_s = patience_us / limits.SECOND_US
        self._since_s: dict[Link, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, link: Link) -> None:
        loop = asyncio.get_running_loop()
        self._since_s[link] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._patience_s, self._look)

    def leave(self, link: Link) -> None:
        del self._since_s[link]

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        for link, since_s in self._since_s.items():
            if loop.time() < (until_s := since_s + self._patience_s):
                self._timer = loop.call_at(until_s, self._look)  # Those behind it came later.
                break
            link.drop()
