"""The life of a client, and hints."""

import asyncio

from luciole import limits
from luciole.errors import StoreCorrupt, StoreUnavailable, Unsupported
from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState
from luciole.store.spi import Store
from luciole.testing.contract.harness import SHARDS, StoreHarness
from luciole.testing.contract.steps import (
    StoreContract,
    enqueued,
    executions,
    fire,
    heard,
    job_id_of,
    lease_all,
    raises,
    request_id,
    scheduled,
)
from luciole.testing.factories import a_request, a_settlement


class TestLife(StoreContract):
    """Open, migrate, close."""

    async def test_a_store_says_what_it_can_do(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        assert isinstance(a, Store)
        assert a.capabilities == b.capabilities
        assert a.shards == b.shards == SHARDS
        assert a.capabilities.name
        assert a.capabilities.plan_connections >= 1
        assert limits.PLAN_BATCH_MIN <= a.capabilities.plan_batch_max <= limits.PLAN_BATCH_MAX

    async def test_one_more_client_finds_what_is_there(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry = await enqueued(a)
        more = await harness.connect()
        await more.open()
        assert more.shards == SHARDS
        assert (await executions(more)).keys() == {entry.key}

    async def test_a_migrated_store_has_nothing_to_migrate(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entry = await enqueued(a)
        more = await harness.connect()
        steps = await asyncio.gather(more.migrate(), more.migrate(shards=SHARDS), b.migrate())
        assert sum(steps) == 0
        assert (await executions(a)).keys() == {entry.key}

    async def test_another_number_of_shards_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for shards in (SHARDS - 1, SHARDS + 1):
            more = await harness.connect(shards=shards)
            with raises(StoreCorrupt):
                await more.open()
            with raises(StoreCorrupt):
                await more.migrate(shards=shards)
        assert len((await a.cluster(node_ttl_us=1)).leases) == SHARDS

    async def test_a_closed_client_is_unavailable_and_leaves_the_others_alone(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        more = await harness.connect()
        await more.open()
        entry = await enqueued(more)
        await more.close()
        await more.close()
        with raises(StoreUnavailable):
            await more.now_us()
        with raises(StoreUnavailable):
            await more.settle([a_settlement(entry)])
        assert (await executions(a)).keys() == {entry.key}

    async def test_a_client_that_is_not_open_is_unavailable(self, harness: StoreHarness) -> None:
        more = await harness.connect()
        with raises(StoreUnavailable):
            await more.now_us()

    async def test_a_transaction_of_an_unknown_kind_is_unsupported(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        with raises(Unsupported):
            a.enqueue_sql("carrier pigeon")

    async def test_a_call_that_is_given_up_does_not_answer_the_next_one(self, harness: StoreHarness) -> None:
        """Goal: whatever moment a call is cancelled at, the following calls read their own answers.

        Method: the same call is cancelled after more and more steps of the event loop.
        """
        a, b = harness.clients
        job_id = await job_id_of(a)
        for steps in range(12):
            request = a_request(await request_id(a), job_id, key=f"k{steps}")
            call = asyncio.ensure_future(a.enqueue([request]))
            for _ in range(steps):
                await asyncio.sleep(0)
            call.cancel()
            assert isinstance(await a.now_us(), int)
            await asyncio.gather(call, return_exceptions=True)
            (answer,) = await a.enqueue([request])
            assert await b.find_request("default", f"k{steps}") == answer.key
        assert len(await executions(b)) == 12


class TestHints(StoreContract):
    """Wake-ups, which may be lost or false, but come where a store promises them."""

    async def test_without_news_the_time_passes(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        await heard(harness, a.wait_hint(1))  # What the making of the database may have left.
        before_us = await a.now_us()
        assert await heard(harness, a.wait_hint(SECOND_US // 5)) == frozenset()
        assert await a.now_us() > before_us

    async def test_a_client_hears_of_its_own_enqueue(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        await heard(harness, a.wait_hint(1))
        waiting = asyncio.ensure_future(a.wait_hint(600 * SECOND_US))
        await asyncio.sleep(0)
        entry = await enqueued(a, 2)
        shards = await heard(harness, waiting)
        assert shards == frozenset() or entry.key.shard in shards

    async def test_what_came_before_the_wait_is_heard_at_once(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        await heard(harness, a.wait_hint(1))
        entry = await enqueued(a, 2)
        shards = await heard(harness, a.wait_hint(600 * SECOND_US))
        assert shards == frozenset() or entry.key.shard in shards

    async def test_another_client_hears_of_an_enqueue(self, harness: StoreHarness) -> None:
        """Where no store carries hints between processes, each client hears of its own."""
        a, b = harness.clients
        speaker = a if b.capabilities.remote_hints else b
        await heard(harness, b.wait_hint(1))
        waiting = asyncio.ensure_future(b.wait_hint(600 * SECOND_US))
        await asyncio.sleep(0)
        entry = await enqueued(speaker, 2)
        shards = await heard(harness, waiting)
        assert shards == frozenset() or entry.key.shard in shards

    async def test_a_retry_is_hinted_at(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a))
        await heard(harness, a.wait_hint(1))
        waiting = asyncio.ensure_future(a.wait_hint(600 * SECOND_US))
        await asyncio.sleep(0)
        await a.settle([a_settlement(entry, ExecutionState.READY)])
        shards = await heard(harness, waiting)
        assert shards == frozenset() or entry.key.shard in shards
