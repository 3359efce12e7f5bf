"""The harness of the PostgreSQL store: two clients on one database, whose transactions are interleaved by hand."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import asyncpg

from luciole.model.ids import JobId, Shard
from luciole.model.instant import Instant
from luciole.runtime.clock import SystemClock
from luciole.store.spi import Store
from luciole.store.sql.postgres.dialect import PostgresDialect
from luciole.store.sql.store import SqlStore
from luciole.testing.contract.harness import SHARDS

FirstT = TypeVar("FirstT")
SecondT = TypeVar("SecondT")

#: What a case may have written. Emptying them is faster than a database for each case.
_TABLES = (
    "node trigger_spec job schedule cursor execution entry attempt failure ledger request_key".split()  # noqa: SIM905
)
_RESET = (
    *(f"DELETE FROM {table}" for table in _TABLES),
    "DELETE FROM lease",
    f"INSERT INTO lease SELECT n, NULL, 0, 0 FROM generate_series(0, {SHARDS - 1}) AS n",
    "UPDATE id_segment SET next = 1",
    "DELETE FROM meta WHERE key = 'clock_us'",
    "INSERT INTO meta VALUES ('clock_shift_us', '0') ON CONFLICT (key) DO UPDATE SET value = '0'",
)


class Gate:
    """Stops a client before its commit, while it is closed."""

    def __init__(self) -> None:
        self._closed = False
        self._opened = asyncio.Event()
        self.reached = asyncio.Event()

    def close(self) -> None:
        self._closed = True
        self._opened.clear()
        self.reached.clear()

    def open(self) -> None:
        self._closed = False
        self._opened.set()

    async def pass_through(self) -> None:
        if self._closed:
            self.reached.set()
            await self._opened.wait()


class PostgresHarness:
    """Two clients on one database, as two processes have it."""

    def __init__(self, dsn: str, admin: "asyncpg.Connection[asyncpg.Record]") -> None:
        self.dsn = dsn
        self.admin = admin
        self.gate = Gate()
        self.clients: tuple[Store, Store] = (self.client(gate=self.gate), self.client())
        self._more: list[Store] = []

    def client(self, shards: int | None = None, *, gate: Gate | None = None) -> Store:
        """Return a client that is not open; a subclass may put something in front of it."""
        dialect = PostgresDialect(
            self.dsn,
            clock=SystemClock(),
            chance=lambda: 0.5,
            clock_can_shift=True,
            before_commit=gate.pass_through if gate else None,
        )
        return SqlStore(dialect, shards=shards)

    @classmethod
    async def make(cls, dsn: str) -> "PostgresHarness":
        """Return a harness on a database of its own, emptied; its clients are open."""
        admin = await asyncpg.connect(dsn, server_settings={"search_path": "luciole", "synchronous_commit": "off"})
        harness = cls(dsn, admin)
        await harness.clients[0].migrate(shards=SHARDS)
        for command in _RESET:
            await admin.execute(command)
        for client in harness.clients:
            await client.open()
        return harness

    async def connect(self, *, shards: int | None = None) -> Store:
        """Return one more client."""
        self._more.append(self.client(shards))
        return self._more[-1]

    async def advance(self, duration_us: int) -> None:
        """Move the clock of all clients; it is the server's, so it runs by itself besides."""
        await self.admin.execute(
            "UPDATE meta SET value = (value::bigint + $1)::text WHERE key IN ('clock_shift_us', 'clock_us')",
            duration_us,
        )

    async def stop_clock(self, at_us: Instant) -> None:
        """Stop the clock of all clients."""
        await self.admin.execute("INSERT INTO meta VALUES ('clock_us', $1)", str(at_us))

    async def interleave(
        self, first: Awaitable[FirstT], second: Awaitable[SecondT], *, between_us: int = 0
    ) -> tuple[FirstT, SecondT]:
        """Stop the first before its commit until the second waits for it or is done."""
        self.gate.close()
        try:
            leader = asyncio.ensure_future(first)
            await _first_of(leader, asyncio.ensure_future(self.gate.reached.wait()))
            await self.advance(between_us)
            follower = asyncio.ensure_future(second)
            while not follower.done() and not await self.somebody_waits():
                pass
        finally:
            self.gate.open()
        return await leader, await follower

    async def somebody_waits(self) -> bool:
        """Whether a transaction of this database waits for a lock."""
        waiting: bool = await self.admin.fetchval(
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock')"
        )
        return waiting

    async def spoil_job(self, job_id: JobId) -> None:
        """Spoil the options of a job."""
        await self.admin.execute('UPDATE job SET options = \'{"retry": "often"}\' WHERE job_id = $1', job_id)

    async def lose_lease_row(self, shard: Shard) -> None:
        """Delete a lease row."""
        await self.admin.execute("DELETE FROM lease WHERE shard = $1", shard)

    async def close(self) -> None:
        """Close every client."""
        for client in (*self.clients, *self._more):
            await client.close()
        await self.admin.close()


async def _first_of(*tasks: "asyncio.Future[Any]") -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks[1:]:
        task.cancel()
