"""Ids from segments: a client takes a thousand at once, or what a bulk needs, and numbers its requests by itself."""

import asyncio

from luciole import limits
from luciole.store.spi import CatalogStore


class IdSource:
    """Ids that nobody else has, of one event loop.

    The next segment is taken while half of the last is left, so that a crowd seldom waits for one and a
    request inside a user's transaction (which must not wait for a second connection) never does.
    """

    def __init__(self, store: CatalogStore) -> None:
        self._store = store
        self._segments: list[range] = []
        self._left = 0  #: ids in all of them
        self._refill: asyncio.Task[None] | None = None

    async def fill(self) -> None:
        """Make sure that ids are at hand."""
        if not self._segments:
            await self._refilled()

    def one(self) -> int | None:
        """Return an id that is at hand; None: `take` may wait for one."""
        if not self._segments:
            return None
        segment = self._segments[0]
        if len(segment) == 1:
            del self._segments[0]
        else:
            self._segments[0] = segment[1:]
        self._left -= 1
        if self._left < limits.ID_SEGMENT // 2:
            self._look_ahead()
        return segment[0]

    async def take(self, count: int = 1) -> list[int]:
        """Return so many ids, in rising order.

        Raises:
            StoreUnavailable: no segment was left and none could be taken.
        """
        taken: list[int] = []
        while len(taken) < count:
            if self._segments:
                taken += self._cut(count - len(taken))
            else:
                await self._refilled(count - len(taken))
        self._look_ahead()
        return taken

    def _cut(self, count: int) -> range:
        segment = self._segments[0]
        part = segment[:count]
        self._left -= len(part)
        if len(part) == len(segment):
            del self._segments[0]
        else:
            self._segments[0] = segment[count:]
        return part

    def _look_ahead(self) -> None:
        if self._refill is None and self._left < limits.ID_SEGMENT // 2:
            self._start()

    async def _refilled(self, wanted: int = 1) -> None:
        """Wait for the refill under way, or for one that brings as many as are wanted; waiters get its error."""
        task = self._start(wanted) if self._refill is None else self._refill
        await asyncio.shield(task)

    def _start(self, wanted: int = 1) -> asyncio.Task[None]:
        # A bulk takes its ids in one round trip, whose commit it would wait for once for each thousand.
        count = min(max(wanted, limits.ID_SEGMENT), limits.ID_SEGMENT_MAX)
        task = self._refill = asyncio.get_running_loop().create_task(self._take_segment(count))
        task.add_done_callback(self._done)
        return task

    async def _take_segment(self, count: int) -> None:
        segment = await self._store.take_ids(count)
        self._segments.append(range(segment.first, segment.first + segment.count))
        self._left += segment.count

    def _done(self, task: asyncio.Task[None]) -> None:
        self._refill = None
        if not task.cancelled():
            task.exception()  # Seen: the next one to run out of ids tries again and gets the error.

    async def close(self) -> None:
        """Wait for a refill under way, so that the store can be closed."""
        if self._refill is not None:
            await asyncio.wait([self._refill])
