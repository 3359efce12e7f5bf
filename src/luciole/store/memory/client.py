"""What every role of the memory store stands on: one client's view of the shared state."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from luciole.errors import StoreUnavailable
from luciole.model.ids import Shard
from luciole.model.instant import Instant
from luciole.runtime.clock import Clock
from luciole.store.memory.state import MemoryState


class MemoryClient:
    """One client; several on one state race as processes on one database do."""

    def __init__(self, state: MemoryState, clock: Clock, *, shards: int | None = None) -> None:
        """Make a client; `open` it before use.

        Args:
            state: the tables, shared by all clients of one database.
            clock: the store's clock.
            shards: the number of shards that a new state gets and an old one must have; None: whatever it is.
        """
        self._state = state
        self._clock = clock
        self._shards_wanted = shards
        self._is_open = False
        self._hinted: set[Shard] = set()
        self._wakers: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @contextmanager
    def _transaction(self) -> Iterator[Instant]:
        """Hold the state from beginning to end of a verb; yields the store's clock."""
        if not self._is_open:
            raise StoreUnavailable("the memory store is not open: call `open` first")
        with self._state.lock:
            yield self._clock.now_us()

    def hear(self, shards: frozenset[Shard]) -> None:
        """Take a hint, and wake who waits for one."""
        self._hinted |= shards
        for loop, event in self._wakers:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)
