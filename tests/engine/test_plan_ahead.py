"""Planning ahead: the database's work is done before the instant, and nothing starts before it."""

import asyncio
from collections.abc import Sequence

import pytest

from luciole.limits import MS_US, PLAN_WAIT_US, SECOND_US
from luciole.model.execution import EnqueueRequest, ExecutionState
from luciole.model.instant import to_datetime
from luciole.model.job import Overlap
from luciole.model.plan import DueBatch
from luciole.model.schedule import Policy, Reason, ScheduleState
from luciole.model.trigger import every, once
from luciole.store.memory import MemoryStore
from luciole.store.spi import Store
from tests.engine.scripted import ScriptedExecutor, SmallCluster, crash, linger
from tests.engine.unreliable import Unreliables

FORBID = Policy(overlap=Overlap.FORBID)


async def test_what_is_planned_ahead_is_durable_before_its_instant_and_starts_at_it() -> None:
    # I11: Method: twenty schedules due at one instant, planned two seconds before it.
    cluster = SmallCluster()
    node = await cluster.start(plan_ahead="2s")
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    await executor.join(node)
    at_us = cluster.clock.now_us() + 10 * SECOND_US
    for number in range(20):
        await cluster.schedule(f"s-{number}", once(to_datetime(at_us)).to_spec())
    await cluster.clock.advance(8_500 * MS_US)
    planned = await cluster.executions()
    assert {view.state for view in planned} == {ExecutionState.HELD}
    assert len(planned) == 20
    await cluster.clock.advance(1_500 * MS_US - 1)
    assert executor.starts == []
    await cluster.clock.advance(1)
    assert [at for _, _, at in executor.starts] == [at_us] * 20
    await cluster.clock.advance(1 * SECOND_US)
    states = {view.state for view in await cluster.executions()}
    await cluster.stop()
    assert states == {ExecutionState.SUCCEEDED}


async def test_what_was_withdrawn_after_it_was_planned_never_starts() -> None:
    """Goal: pausing works until the last moment. Method: pause one of two that are planned ahead."""
    cluster = SmallCluster()
    node = await cluster.start(plan_ahead="2s")
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    await executor.join(node)
    paused_id = await cluster.schedule("paused", every("10s").to_spec())
    await cluster.schedule("active", every("10s").to_spec())
    await cluster.clock.advance(9 * SECOND_US)
    view = await cluster.reader.get_schedule("default", "paused")
    assert view is not None
    assert await cluster.reader.set_schedule_state(
        paused_id, ScheduleState.PAUSED, reason=None, fire_us=view.fire_us, due_us=None, revision=view.revision
    )
    await cluster.clock.advance(3 * SECOND_US)
    started = {key.schedule_id for key, _, _ in executor.starts}
    credits_ = node.sessions.by_executor["e" * 16].credits
    await cluster.stop()
    assert len(started) == 1
    assert paused_id not in started
    assert credits_ == executor.slots


async def test_a_crash_before_the_instant_delays_nothing_beyond_the_grace() -> None:
    cluster = SmallCluster()
    first = await cluster.start(2, plan_ahead="5s")
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    for node in cluster.nodes:
        await executor.join(node, credits_=50)
    await cluster.clock.advance(3 * SECOND_US)
    at_us = cluster.clock.now_us() + 6 * SECOND_US
    for number in range(20):
        await cluster.schedule(f"s-{number}", once(to_datetime(at_us)).to_spec())
    await cluster.clock.advance(3 * SECOND_US)
    assert len(await cluster.executions()) == 20
    await crash(first)
    await cluster.clock.advance(12 * SECOND_US)
    views = await cluster.executions()
    cluster.nodes.remove(first)
    await cluster.stop()
    assert {view.state for view in views} == {ExecutionState.SUCCEEDED}
    assert {at_us <= at for _, _, at in executor.starts} == {True}
    assert len({key for key, _, _ in executor.starts}) == 20


async def test_a_burst_that_must_not_overlap_is_planned_ahead_but_for_what_still_runs() -> None:
    """Goal: overlap is decided by what is open at the due time, not by what was open before it.

    Method: forty schedules fire every ten seconds; the first runs of two linger. When the others' second fires have
    been planned ahead, one of the two ends, and the other one does not.
    """
    cluster = SmallCluster()
    node = await cluster.start(plan_ahead="2s", max_due_records_per_tick=20)
    executor = ScriptedExecutor(cluster.clock, "e" * 16, script=linger)
    await executor.join(node)
    every_10s = every("10s").to_spec()
    ids = [await cluster.schedule(f"s-{number}", every_10s, policy=FORBID) for number in range(40)]
    await cluster.clock.advance(11 * SECOND_US)
    assert len(executor.running) == 40
    first = {key.schedule_id: key for key in executor.running}
    for schedule_id in ids[2:]:
        await executor.finish(first[schedule_id])
    await cluster.clock.advance(8 * SECOND_US)
    ahead = {view.key.schedule_id for view in await cluster.executions() if view.state is ExecutionState.HELD}
    assert ahead <= set(ids[2:])
    assert len(ahead) >= 30  # A few that are left over wait for their due time.
    await executor.finish(first[ids[0]])
    await cluster.clock.advance(1 * SECOND_US)
    second = {key.schedule_id for key, _, at_us in executor.starts if at_us == first[ids[0]].fire_us + 10 * SECOND_US}
    skipped = await cluster.reader.list_ledger(ids[1], first[ids[1]].shard, limit=10)
    await cluster.stop()
    assert second == set(ids) - {ids[1]}
    assert [(row.fires, row.reason) for row in skipped] == [(1, Reason.OVERLAP)]


async def test_a_manual_run_beside_what_was_planned_ahead_is_refused() -> None:
    # I1: what is planned ahead is open; both at once would be what `forbid` forbids.
    cluster = SmallCluster()
    node = await cluster.start(plan_ahead="2s", max_due_records_per_tick=20)
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    await executor.join(node)
    ids = [await cluster.schedule(f"s-{n}", every("10s").to_spec(), policy=FORBID) for n in range(40)]
    await cluster.clock.advance(9 * SECOND_US)
    (view, *_) = [view for view in await cluster.executions() if view.key.schedule_id == ids[0]]
    request = EnqueueRequest(
        request_id=cluster.new_ids(), shard=view.key.shard, job_id=view.job_id, payload=None, schedule_id=ids[0]
    )
    refused = await cluster.reader.trigger_schedule(request)
    await cluster.clock.advance(1 * SECOND_US)
    started = [key for key, _, _ in executor.starts if key.schedule_id == ids[0]]
    await cluster.stop()
    assert refused is None
    assert started == [view.key]


async def test_more_than_can_be_read_and_must_wait_is_looked_at_now_and_then() -> None:
    """Goal: a planner that must not plan yet does not spin. Method: what queues is due soon, more than one look."""
    cluster = SmallCluster()
    looks = 0

    class Counting(MemoryStore):
        async def due_cursors(self, shards: Sequence[int], before_us: int, *, limit: int) -> DueBatch:
            nonlocal looks
            looks += 1
            return await super().due_cursors(shards, before_us, limit=limit)

    def counting(_: MemoryStore) -> Store:
        store = Counting(cluster.state, cluster.clock, shards=cluster.shards)
        store._is_open = True  # noqa: SLF001 - as the one that it stands for
        return store

    node = await cluster.start(store=counting, plan_ahead="5s", max_due_records_per_tick=20)
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    await executor.join(node)
    queued = Policy(overlap=Overlap.QUEUE_ONE)
    for number in range(100):
        await cluster.schedule(f"s-{number}", every("10s").to_spec(), policy=queued)
    await cluster.clock.advance(10 * SECOND_US)
    before_the_instant = looks
    await cluster.clock.advance(1 * SECOND_US)
    await cluster.stop()
    assert len(executor.starts) == 100
    assert before_the_instant < 5 * 4 * SECOND_US // PLAN_WAIT_US


@pytest.mark.parametrize("from_us", [-500 * MS_US, -1, 2 * MS_US])
@pytest.mark.parametrize("frozen_ms", [2_000, 2_600, 2_800, 3_100, 3_400, 8_000])
async def test_a_node_that_froze_at_the_instant_and_goes_on_forgets_nothing_of_it(frozen_ms: int, from_us: int) -> None:
    """Goal: whether a delivery was put on record before the lease was lost or refused after it, it is not forgotten.

    Method: the store's answers stop just before the instant, for less and more than a lease; nobody takes over.
    """
    # I3: I6: a refusal by the fence says nothing about the entry, and a record says something about it.
    cluster = SmallCluster()
    unreliable = Unreliables(cluster.clock, seed=frozen_ms, latency_max_us=4 * MS_US)
    starting = asyncio.create_task(cluster.start(store=unreliable.put, plan_ahead="2s"))
    await cluster.clock.advance(50 * MS_US)
    node = await starting
    executors = [ScriptedExecutor(cluster.clock, name * 16) for name in "ef"]
    for executor in executors:
        await executor.join(node, credits_=20)
    at_us = cluster.clock.now_us() + 10 * SECOND_US
    for number in range(30):
        await cluster.schedule(f"s-{number}", once(to_datetime(at_us)).to_spec())
    await cluster.clock.advance(10 * SECOND_US + from_us)
    unreliable.stores[0].frozen = asyncio.Event()
    await cluster.clock.advance(frozen_ms * MS_US)
    unreliable.stores[0].frozen.set()
    unreliable.stores[0].frozen = None
    await cluster.clock.advance(20 * SECOND_US)
    states = [view.state for view in await cluster.executions()]
    started = [(key, attempt) for executor in executors for key, attempt, _ in executor.starts]
    await cluster.stop()
    assert len(started) == len(set(started))
    assert states == [ExecutionState.SUCCEEDED] * 30
