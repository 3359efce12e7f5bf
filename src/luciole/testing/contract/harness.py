"""What the contract suite needs of a store: two racing clients, its clock, and a few ways to break things."""

from collections.abc import Awaitable
from copy import deepcopy
from typing import Protocol, TypeVar

from luciole.model.ids import JobId, Shard
from luciole.model.instant import Instant
from luciole.runtime.clock import Clock
from luciole.store.memory import MemoryState, MemoryStore
from luciole.store.spi import Store
from luciole.testing.clock import FakeClock

FirstT = TypeVar("FirstT")
SecondT = TypeVar("SecondT")

#: Shards of the databases that cases run on: few, so that a hundred schedules meet in each.
SHARDS = 4


class StoreHarness(Protocol):
    """One fresh database with `SHARDS` shards, for one case."""

    clients: tuple[Store, Store]  #: open, racing on the database as two processes do

    async def connect(self, *, shards: int | None = None) -> Store:
        """Return one more client, not open yet, that asks for a number of shards; the harness closes it."""
        ...

    async def advance(self, duration_us: int) -> None:
        """Move the store's clock forward; it may run by itself besides, or stand still."""
        ...

    async def stop_clock(self, at_us: Instant) -> None:
        """Let the store's clock stand still at an instant from here on, moved by `advance` alone.

        Only the agreement machine needs it.
        """
        ...

    async def interleave(
        self, first: Awaitable[FirstT], second: Awaitable[SecondT], *, between_us: int = 0
    ) -> tuple[FirstT, SecondT]:
        """Run two verbs as badly interleaved as the store allows; return both answers.

        Where transactions overlap: run `first` (of `clients[0]`) up to just before its commit, move the clock by
        `between_us`, start `second` (of `clients[1]`), and once it waits or is done, let `first` go. Where
        they can't overlap: one after the other, the clock moved in between.
        """
        ...

    async def spoil_job(self, job_id: JobId) -> None:
        """Write options that no version can read into the row of a job."""
        ...

    async def lose_lease_row(self, shard: Shard) -> None:
        """Delete the lease row of a shard, as a partial restore does."""
        ...

    async def close(self) -> None:
        """Close every client and remove the database."""
        ...


class MemoryHarness:
    """The harness of the memory store, whose verbs can't overlap."""

    def __init__(self) -> None:
        self.state = MemoryState()
        self.clock = FakeClock()
        self.clients: tuple[Store, Store] = (self._client(SHARDS), self._client(SHARDS))
        self._more: list[Store] = []

    def _client(self, shards: int | None) -> Store:
        """Return a client; a subclass may put something in front of it."""
        clock: Clock = self.clock
        return MemoryStore(self.state, clock, shards=shards)

    @classmethod
    async def make(cls) -> "MemoryHarness":
        """Return a harness whose clients are open."""
        harness = cls()
        for client in harness.clients:
            await client.open()
        return harness

    async def connect(self, *, shards: int | None = None) -> Store:
        """Return one more client."""
        self._more.append(self._client(shards))
        return self._more[-1]

    async def advance(self, duration_us: int) -> None:
        """Move the clock."""
        await self.clock.advance(duration_us)

    async def stop_clock(self, at_us: Instant) -> None:
        """Set the clock, which stands still anyhow."""
        self.clock.shift_wall(at_us - self.clock.now_us())

    async def interleave(
        self, first: Awaitable[FirstT], second: Awaitable[SecondT], *, between_us: int = 0
    ) -> tuple[FirstT, SecondT]:
        """Run one verb after the other."""
        first_answer = await first
        await self.advance(between_us)
        return first_answer, await second

    async def fork(self) -> "MemoryHarness":
        """Return a harness of its own on a copy of the database, at the same instant."""
        copy = type(self)()
        for table, rows in vars(self.state).items():
            if table not in {"lock", "listeners"}:
                setattr(copy.state, table, deepcopy(rows))
        copy.clock.shift_wall(self.clock.now_us() - copy.clock.now_us())
        for client in copy.clients:
            await client.open()
        return copy

    async def spoil_job(self, job_id: JobId) -> None:
        """Spoil the options of a job."""
        self.state.jobs[job_id].options = '{"retry": "often"}'

    async def lose_lease_row(self, shard: Shard) -> None:
        """Delete a lease row."""
        del self.state.leases[shard]

    async def close(self) -> None:
        """Close every client."""
        for client in (*self.clients, *self._more):
            await client.close()
