"""A process that is stopped anywhere on the way of a guarded write sends nothing of it once it wakes too late."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import asyncpg
import pytest

from luciole.errors import FenceError
from luciole.limits import SECOND_US
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.outbox import Delivery
from luciole.model.schedule import Cursor
from luciole.runtime.clock import SystemClock
from luciole.store.spi import Store
from luciole.store.sql.postgres.dialect import PostgresDialect
from luciole.store.sql.postgres.link import Link
from luciole.store.sql.postgres.pool import Pool
from luciole.store.sql.store import SqlStore
from luciole.testing.contract.steps import cursor_of, execution_of, fire, lease_all, open_keys, scheduled
from luciole.testing.factories import a_plan
from tests.store.postgres_harness import PostgresHarness

E1 = "e" * 16
MOMENTS_MAX = 30


@dataclass
class Host(SystemClock):
    """A host whose process is stopped at one of the moments at which it waits for something."""

    stopped_us: int = 0
    stop_at: int | None = None  #: the number of the moment
    moments: list[str] = field(default_factory=list)
    sent_after: list[str] = field(default_factory=list)

    def monotonic_us(self) -> int:
        return super().monotonic_us() + self.stopped_us

    def begin(self, stop_at: int) -> None:
        """Watch from here on, and be stopped at the moment of this number."""
        self.moments, self.sent_after, self.stop_at = [], [], stop_at

    def wake(self) -> None:
        """Be an ordinary host again."""
        self.stopped_us, self.stop_at = 0, None

    def waits(self, what: str) -> None:
        """Note that something is sent, or waited for, and be stopped in it when it is its turn."""
        if self.stop_at is None:
            return
        if self.stopped_us:
            self.sent_after.append(what)
        if len(self.moments) == self.stop_at:
            self.stopped_us = 10 * SECOND_US
        self.moments.append(what)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host that sees everything that asyncpg sends, and every wait for a connection."""
    made = Host()

    def watched(owner: Any, name: str, says: Callable[..., str]) -> None:  # noqa: ANN401 - asyncpg's classes
        original = getattr(owner, name)

        async def call(self: Any, *args: Any, **fields: Any) -> Any:  # noqa: ANN401 - same
            made.waits(says(self, *args))
            return await original(self, *args, **fields)

        monkeypatch.setattr(owner, name, call)

    at_hand = Pool.borrow_at_once

    def borrowed(self: Pool) -> Link | None:
        link = at_hand(self)
        if link is not None:
            made.waits("a connection")
        return link

    monkeypatch.setattr(Pool, "borrow_at_once", borrowed)
    watched(Pool, "_take", lambda *_: "a connection")
    watched(asyncpg.Connection, "execute", lambda _, text: str(text))
    watched(asyncpg.Connection, "prepare", lambda *_: "prepare")
    watched(asyncpg.prepared_stmt.PreparedStatement, "fetch", lambda self, *_: str(self.get_name()))
    return made


@pytest.fixture
async def harness(postgres_dsn: str) -> AsyncIterator[PostgresHarness]:
    made = await PostgresHarness.make(postgres_dsn)
    yield made
    await made.close()


@dataclass(frozen=True)
class Work:
    """What a node is about to write."""

    cursor: Cursor
    due_us: Instant
    delivery: Delivery
    leases: tuple[Lease, ...]


Guarded = Callable[[Store, Work], Awaitable[object]]


async def plan(store: Store, work: Work) -> object:
    return await store.commit_plan(a_plan(work.leases, work.cursor))


async def deliver(store: Store, work: Work) -> object:
    return await store.record_deliveries(work.leases, [work.delivery])


async def renew(store: Store, work: Work) -> object:
    return await store.renew_leases(work.leases, ttl_us=600 * SECOND_US)


async def prepared(harness: PostgresHarness) -> Work:
    store, _ = harness.clients
    leases = await lease_all(store)
    entry = await fire(store, leases, await scheduled(store))
    cursor = await cursor_of(store)
    return Work(cursor, entry.due_us, Delivery(entry.key, 1, E1, entry.due_us), leases)


async def written(store: Store, work: Work) -> object:
    execution = await execution_of(store, work.delivery.key)
    opened = await store.open_entries(range(store.shards), after=None, limit=10)
    leases = (await store.cluster(node_ttl_us=SECOND_US)).leases
    return await cursor_of(store), await open_keys(store), execution, opened, leases


@pytest.mark.parametrize("warm", [False, True], ids=["a fresh connection", "all prepared"])
@pytest.mark.parametrize("verb", [plan, deliver, renew])
async def test_a_process_stopped_at_any_wait_of_a_guarded_write_sends_nothing_more_of_it(
    harness: PostgresHarness, host: Host, *, verb: Guarded, warm: bool
) -> None:
    """Goal: no stale write leaves the process, wherever between the look at its leases and the socket it was stopped.

    Method: a clock that jumps past the deadline while the n-th thing is waited for, for each n; the last of them is the
    answer to what makes the write durable, and was sent in time.
    """
    # I3: the check is the last thing before the socket.
    _, reader = harness.clients
    work = await prepared(harness)
    before = await written(reader, work)
    for stop_at in range(MOMENTS_MAX):
        store = SqlStore(PostgresDialect(harness.dsn, clock=host, chance=lambda: 0.5, clock_can_shift=True))
        await store.open()
        if warm:  # The same statements, under leases that nobody has.
            await verb(store, replace(work, leases=tuple(replace(lease, fence=99) for lease in work.leases)))
        until_us = host.monotonic_us() + 5 * SECOND_US
        trusted = tuple(replace(lease, trusted_until_us=until_us) for lease in work.leases)
        host.begin(stop_at)
        try:
            await verb(store, replace(work, leases=trusted))
        except FenceError:
            assert set(host.sent_after) <= {"ROLLBACK"}
            host.wake()
            assert await written(reader, work) == before
        else:
            break
        finally:
            host.wake()
            await store.close()
    moments = host.moments[: stop_at + 1]
    assert moments[0] == "a connection"
    assert moments[-1] in {"COMMIT", "renew_leases_0"}
    assert ("prepare" in moments) is not (warm and verb is renew)
    assert host.sent_after == []
    assert await written(reader, work) != before
