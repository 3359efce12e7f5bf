"""The harness of the SQLite store: real files, a clock of the test's own."""

import sqlite3
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from luciole.model.ids import JobId, Shard
from luciole.model.instant import Instant
from luciole.store.spi import Store
from luciole.store.sql.sqlite.connecting import Durability
from luciole.store.sql.sqlite.dialect import SqliteDialect
from luciole.store.sql.store import SqlStore
from luciole.testing.clock import FakeClock
from luciole.testing.contract.harness import SHARDS

FirstT = TypeVar("FirstT")
SecondT = TypeVar("SecondT")


class SqliteHarness:
    """Two clients on one file, as two processes have it; their transactions that write can't overlap."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="luciole-")
        self.path = Path(self._folder.name) / "luciole.db"
        self.clock = FakeClock()
        self.clients: tuple[Store, Store] = (self.client(SHARDS), self.client(SHARDS))
        self._more: list[Store] = []

    def client(self, shards: int | None = None) -> Store:
        """Return a client that is not open; a subclass may put something in front of it."""
        # The contract is about what is written, not about power cuts: no flush makes its cases four times as fast.
        dialect = SqliteDialect(self.path, clock=self.clock, chance=lambda: 0.5, durability=Durability.OFF)
        return SqlStore(dialect, shards=shards)

    @classmethod
    async def make(cls) -> "SqliteHarness":
        """Return a harness whose clients are open."""
        harness = cls()
        for client in harness.clients:
            await client.open()
        return harness

    async def connect(self, *, shards: int | None = None) -> Store:
        """Return one more client."""
        self._more.append(self.client(shards))
        return self._more[-1]

    async def advance(self, duration_us: int) -> None:
        """Move the clock, which is the host's for this store."""
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

    async def spoil_job(self, job_id: JobId) -> None:
        """Spoil the options of a job."""
        self.execute('UPDATE job SET options = \'{"retry": "often"}\' WHERE job_id = ?', job_id)

    async def lose_lease_row(self, shard: Shard) -> None:
        """Delete a lease row."""
        self.execute("DELETE FROM lease WHERE shard = ?", shard)

    def execute(self, command: str, *values: object) -> list[tuple[object, ...]]:
        """Do something to the file behind the store's back."""
        with closing(sqlite3.connect(self.path, timeout=5)) as connection, connection:
            return connection.execute(command, values).fetchall()

    async def close(self) -> None:
        """Close every client and remove the file."""
        for client in (*self.clients, *self._more):
            await client.close()
        self._folder.cleanup()
