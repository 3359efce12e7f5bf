"""Ids from segments: a client takes a thousand at once and numbers its requests by itself."""

import asyncio

from luciole import limits
from luciole.model.ids import IdSegment
from luciole.store.spi import CatalogStore


class IdSource:
    """Ids that nobody else has, of one event loop.

    The next segment is taken while half of the last is left, so that a crowd seldom waits for one and a
    request inside a user's transaction (which must not wait for a second connection) never does.
    """

    def __init__(self, store: CatalogStore) -> None:
        self._store = store
        self._segments: list[IdSegment] = []
        self._refill: asyncio.Task[None] | None = None

    async def fill(self) -> None:
        """Make sure that ids are at hand."""
        if not self._segments:
            await self._refilled()

    async def take(self, count: int = 1) -> list[int]:
        """Return so many ids, in rising order.

        Raises:
            StoreUnavailable: no segment was left and none could be taken.
        """
        taken: list[int] = []
        while len(taken) < count:
            if not self._segments:
                await self._refilled()
                continue
            taken += self._cut(count - len(taken))
        return taken

    def _cut(self, count: int) -> range:
        segment = self._segments[0]
        part = range(segment.first, segment.first + min(count, segment.count))
        if len(part) == segment.count:
            del self._segments[0]
        else:
            self._segments[0] = IdSegment(first=part.stop, count=segment.count - len(part))
        if self._refill is None and self._left() < limits.ID_SEGMENT // 2:
            self._start()
        return part

    def _left(self) -> int:
        return sum([segment.count for segment in self._segments])

    async def _refilled(self) -> None:
        """Wait for the refill under way; whoever waits for it gets its error."""
        task = self._start() if self._refill is None else self._refill
        await asyncio.shield(task)

    def _start(self) -> asyncio.Task[None]:
        task = self._refill = asyncio.get_running_loop().create_task(self._take_segment())
        task.add_done_callback(self._done)
        return task

    async def _take_segment(self) -> None:
        self._segments.append(await self._store.take_ids(limits.ID_SEGMENT))

    def _done(self, task: asyncio.Task[None]) -> None:
        self._refill = None
        if not task.cancelled():
            task.exception()  # Seen: the next one to run out of ids tries again and gets the error.

    async def close(self) -> None:
        """Wait for a refill under way, so that the store can be closed."""
        if self._refill is not None:
            await asyncio.wait([self._refill])
