"""Wake-ups inside one process: who writes tells, who polls waits."""

import asyncio
from collections.abc import Collection

from luciole import limits
from luciole.model.ids import Shard
from luciole.runtime.clock import Clock


class Hints:
    """Shards in which something may have become due sooner.

    Everybody who waits hears of a hint; one that comes while nobody waits is kept for the next who does.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: set[Shard] | None = None
        self._waiting: dict[asyncio.Event, set[Shard]] = {}

    def waited_for(self) -> bool:
        """Return whether anybody waits at this moment."""
        return bool(self._waiting)

    def tell(self, shards: frozenset[Shard]) -> None:
        """Wake everybody; an empty set says that anything may have changed."""
        if not self._waiting:
            self._kept = (self._kept or set()) | shards
        self.wake(shards)

    def wake(self, shards: frozenset[Shard] = frozenset()) -> None:
        """Wake those who wait now, and keep nothing for later."""
        for event, heard in self._waiting.items():
            heard.update(shards)
            event.set()

    async def wait(self, timeout_us: int) -> frozenset[Shard] | None:
        """Wait for a hint; None: the time was over first."""
        if self._kept is not None:
            kept, self._kept = self._kept, None
            return frozenset(kept)
        event, heard = asyncio.Event(), set[Shard]()
        self._waiting[event] = heard
        try:
            await self._clock.wait(event, timeout_us)
            # A hint that comes in the very step in which the time is over is heard, too.
            return frozenset(heard) if event.is_set() else None
        finally:
            del self._waiting[event]


def hint_text(shards: Collection[Shard]) -> str:
    """Return the text by which a hint travels between processes; empty: anything may have changed."""
    text = ",".join(map(str, sorted(shards)))
    return text if len(text) <= limits.HINT_LENGTH_MAX else ""
