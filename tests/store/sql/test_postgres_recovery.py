"""PostgreSQL goes away and comes back, and the network between is cut: nothing is lost, doubled, or stuck."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import asyncpg
import pytest

from luciole import limits
from luciole.errors import OutcomeUnknown, StoreUnavailable
from luciole.limits import SECOND_US
from luciole.model.outbox import Settled
from luciole.model.plan import Plan
from luciole.runtime.clock import SystemClock
from luciole.store.spi import Store
from luciole.store.sql.dialect import Lane
from luciole.store.sql.postgres import dialect as dialect_module
from luciole.store.sql.postgres.dialect import PostgresDialect
from luciole.store.sql.store import SqlStore
from luciole.testing.contract.steps import due, enqueued, execution_of, job_id_of, lease_all, open_keys, scheduled
from luciole.testing.factories import NODE_A, a_node, a_plan, a_request, a_settlement
from luciole.testing.servers import PostgresServer
from tests.store.postgres_harness import Gate, PostgresHarness
from tests.store.sql.postgres_proxy import Proxy

PATIENCE_S = 30


@pytest.fixture
async def harness(postgres_dsn: str) -> AsyncIterator[PostgresHarness]:
    made = await PostgresHarness.make(postgres_dsn)
    yield made
    await made.close()


@pytest.fixture
async def proxy(harness: PostgresHarness) -> AsyncIterator[Proxy]:
    async with Proxy(harness.dsn) as made:
        yield made


@pytest.fixture
async def cut_off(proxy: Proxy) -> AsyncIterator[SqlStore]:
    """A client whose network can be cut."""
    store = SqlStore(PostgresDialect(proxy.dsn, clock=SystemClock(), chance=lambda: 0.5, clock_can_shift=True))
    await store.open()
    yield store
    await store.close()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():
            pass


async def is_back(store: Store) -> bool:
    try:
        await store.now_us()
        await store.backlog()
    except StoreUnavailable:
        return False
    return True


async def terminate_everybody(admin: "asyncpg.Connection[asyncpg.Record]") -> None:
    await admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


async def test_every_lane_works_again_after_its_connections_were_terminated(harness: PostgresHarness) -> None:
    a, b = harness.clients
    leases = await lease_all(a)
    cursor = await scheduled(a)
    entry = await enqueued(b)
    await terminate_everybody(harness.admin)
    for client in (a, b):
        await until(partial(is_back, client))
    outcome = await a.commit_plan(a_plan(leases, cursor))
    assert outcome.created == 1
    assert await a.settle([a_settlement(outcome.entries[0]), a_settlement(entry)]) == (Settled.SETTLED,) * 2
    assert len(await a.renew_leases(leases, ttl_us=SECOND_US)) == len(leases)
    assert (await enqueued(a)).key != entry.key


async def test_hints_come_again_after_the_listening_connection_was_terminated(harness: PostgresHarness) -> None:
    a, b = harness.clients
    first = asyncio.ensure_future(a.wait_hint(PATIENCE_S * SECOND_US))
    await first  # It has begun to listen.
    again = asyncio.ensure_future(a.wait_hint(PATIENCE_S * SECOND_US))
    await terminate_everybody(harness.admin)
    assert await again == frozenset()  # It listens anew: anything may have changed meanwhile.
    heard = asyncio.ensure_future(a.wait_hint(PATIENCE_S * SECOND_US))
    await until(partial(is_back, b))
    entry = await enqueued(b, 2)
    assert entry.key.shard in await heard


@pytest.mark.slow
async def test_a_restart_of_the_server_is_survived(postgres: PostgresServer, postgres_dsn: str) -> None:
    store = SqlStore(PostgresDialect(postgres_dsn, clock=SystemClock(), chance=lambda: 0.5))
    await store.migrate()
    await store.open()
    leases = await store.acquire_leases(NODE_A, range(store.shards), ttl_us=600 * SECOND_US)
    cursor = await scheduled(store)
    postgres.stop("immediate")
    for verb in (store.now_us(), store.backlog(), store.commit_plan(a_plan(leases, cursor))):
        with pytest.raises(StoreUnavailable):
            await verb
    postgres.start()
    await until(partial(is_back, store))
    outcome = await store.commit_plan(a_plan(leases, cursor))
    await store.close()
    assert (outcome.created, outcome.lost) == (1, ())


class TestCutAfterTheCommit:
    """The commit is sent and the connection lost before the answer: whoever repeats the call changes nothing."""

    async def test_a_plan(self, harness: PostgresHarness, proxy: Proxy, cut_off: SqlStore) -> None:
        leases = await lease_all(harness.clients[0])
        plan: Plan = a_plan(leases, await scheduled(harness.clients[0]))
        proxy.lose_answer_to(b"COMMIT")
        with pytest.raises(OutcomeUnknown):
            await cut_off.commit_plan(plan)
        again = await cut_off.commit_plan(plan)
        assert proxy.lost.is_set()
        assert (again.created, again.lost) == (0, (plan.moves[0].cursor.schedule_id,))
        assert len(await open_keys(cut_off)) == 1

    async def test_an_end(self, harness: PostgresHarness, proxy: Proxy, cut_off: SqlStore) -> None:
        """A plain success is one statement, which commits by itself."""
        await cut_off.settle([a_settlement(await enqueued(harness.clients[0]))])  # It is prepared.
        end = a_settlement(await enqueued(harness.clients[0]))
        proxy.lose_answer_to(b"write_successes_")
        with pytest.raises(OutcomeUnknown):
            await cut_off.settle([end])
        assert await cut_off.settle([end]) == (Settled.CONFIRMED,)

    async def test_a_request_with_a_key(self, harness: PostgresHarness, proxy: Proxy, cut_off: SqlStore) -> None:
        """It is one statement, which commits by itself."""
        request = a_request((await cut_off.take_ids(1)).first, await job_id_of(harness.clients[0]), key="once")
        other = a_request((await cut_off.take_ids(1)).first, request.job_id, key="other")
        await cut_off.enqueue([other])  # It is prepared.
        proxy.lose_answer_to(b"enqueue_named_")
        with pytest.raises(OutcomeUnknown):
            await cut_off.enqueue([request])
        (again,) = await cut_off.enqueue([request])
        assert not again.created
        assert again.key == await harness.clients[1].find_request("default", "once")

    async def test_a_request_for_a_time(self, harness: PostgresHarness, proxy: Proxy, cut_off: SqlStore) -> None:
        """It is one statement, which commits by itself."""
        fire_us = await cut_off.now_us()
        number = (await cut_off.take_ids(1)).first
        request = a_request(number, await job_id_of(harness.clients[0]), fire_us=fire_us)
        await cut_off.enqueue([a_request((await cut_off.take_ids(1)).first, request.job_id)])  # It is prepared.
        proxy.lose_answer_to(b"enqueue_")
        with pytest.raises(OutcomeUnknown):
            await cut_off.enqueue([request])
        (again,) = await cut_off.enqueue([request])
        assert not again.created
        assert (await execution_of(harness.clients[1], again.key)).key.fire_us == fire_us

    async def test_leases(self, harness: PostgresHarness, proxy: Proxy, cut_off: SqlStore) -> None:
        proxy.lose_answer_to(b"COMMIT")
        with pytest.raises(OutcomeUnknown):
            await cut_off.acquire_leases(NODE_A, [1], ttl_us=600 * SECOND_US)
        cluster = await harness.clients[0].beat(a_node(NODE_A), node_ttl_us=SECOND_US)
        assert await cut_off.acquire_leases(NODE_A, [1], ttl_us=600 * SECOND_US) == ()
        assert (cluster.leases[1].holder, cluster.leases[1].fence) == (NODE_A, 1)


async def test_a_connection_cut_before_the_commit_has_written_nothing(
    harness: PostgresHarness, proxy: Proxy, cut_off: SqlStore
) -> None:
    leases = await lease_all(harness.clients[0])
    plan = a_plan(leases, await scheduled(harness.clients[0]))
    proxy.lose_answer_to(b"write_moves_")
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        await cut_off.commit_plan(plan)
    assert await open_keys(harness.clients[0]) == []
    assert (await cut_off.commit_plan(plan)).created == 1


async def test_a_line_that_says_nothing_is_given_up(
    harness: PostgresHarness, proxy: Proxy, cut_off: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a network that swallows everything stops nobody for ever."""
    await cut_off.now_us()
    monkeypatch.setitem(dialect_module.LANES, Lane.LEASE, (1, 50 * limits.MS_US))
    proxy.fall_silent()
    with pytest.raises(StoreUnavailable):
        await cut_off.now_us()
    proxy.cut()
    monkeypatch.undo()
    await until(partial(is_back, cut_off))
    assert abs(await cut_off.now_us() - await harness.clients[0].now_us()) < 60 * SECOND_US


async def test_a_caller_that_is_cancelled_leaves_no_half_command(harness: PostgresHarness) -> None:
    """Goal: what was sent is finished, and the next command of that connection reads its own answer."""
    a, b = harness.clients
    leases = await lease_all(a)
    cursor = await scheduled(a)
    harness.gate.close()
    caller = asyncio.create_task(a.commit_plan(a_plan(leases, cursor)))
    await harness.gate.reached.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert await open_keys(b) == []
    harness.gate.open()
    await a.close()  # It waits for what is under way.
    assert len(await open_keys(b)) == 1
    assert cursor.schedule_id not in {c.schedule_id for c in (await due(b, within_us=0)).values()}


async def test_a_stopped_client_does_not_sit_on_its_transaction(harness: PostgresHarness) -> None:
    """Goal: a process stopped in the middle of a plan holds its rows for no longer than the server lets it.

    Method: the first client stops before its commit; the second, once it may have the lease, plans the same.
    """
    a, b = harness.clients
    leases = await lease_all(a)
    cursor = await scheduled(a)
    harness.gate.close()
    stopped = asyncio.create_task(a.commit_plan(a_plan(leases, cursor)))
    await harness.gate.reached.wait()

    async def is_ended() -> bool:
        return not await harness.admin.fetchval(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE state = 'idle in transaction'"
            " AND datname = current_database())"
        )

    await until(is_ended)
    outcome = await b.commit_plan(a_plan(leases, cursor))
    harness.gate.open()
    with pytest.raises((StoreUnavailable, OutcomeUnknown)):
        await stopped
    assert outcome.created == 1
    assert len(await open_keys(b)) == 1


async def test_a_client_stopped_in_mid_statement_does_not_sit_on_its_locks(harness: PostgresHarness) -> None:
    """Goal: a process stopped between parsing a statement and executing it holds no shard back, either.

    Method: a session of ours locks the leases, has one more statement parsed, and says nothing after that: the server
    takes it for active, and none of its time-outs strikes. Another client takes the leases.
    """
    b = harness.clients[1]
    stopped = await asyncpg.connect(
        harness.dsn, server_settings={"search_path": "luciole", "application_name": "luciole"}
    )
    await stopped.execute("BEGIN; SELECT FROM lease FOR UPDATE")
    await stopped.prepare("SELECT 2")
    pid = stopped.get_server_pid()
    activity = "SELECT state, wait_event FROM pg_stat_activity WHERE pid = $1"

    async def waits_for_its_client() -> bool:
        return tuple(await harness.admin.fetchrow(activity, pid) or ()) == ("active", "ClientRead")

    await until(waits_for_its_client)

    async def is_leased() -> bool:
        try:
            return bool(await lease_all(b))
        except StoreUnavailable:
            return False

    await until(is_leased)
    assert await harness.admin.fetchrow(activity, pid) is None
    stopped.terminate()


async def test_a_crowd_shares_a_bounded_number_of_connections(harness: PostgresHarness) -> None:
    a, _ = harness.clients
    gate = Gate()
    store = harness.client(gate=gate)
    await store.open()
    gate.close()
    requests = [a_request(number, await job_id_of(a)) for number in range(100, 120)]
    crowd = [asyncio.create_task(store.enqueue([request])) for request in requests]
    await gate.reached.wait()
    held = await harness.admin.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()"
    )
    gate.open()
    answers = await asyncio.gather(*crowd)
    await store.close()
    assert held <= limits.POSTGRES_ENQUEUE_CONNECTIONS_MAX
    assert len({answer.key for (answer,) in answers}) == 20
