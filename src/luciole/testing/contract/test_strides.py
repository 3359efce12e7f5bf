"""The same step for many cursors at once."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from luciole import limits
from luciole.errors import InvalidValue
from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.model.job import Overlap
from luciole.model.lease import Lease
from luciole.model.outbox import EntryState
from luciole.model.schedule import Reason, ScheduleState, unpack_entry_traits
from luciole.model.stride import DueGroup, Step, Stride, group_of
from luciole.store.spi import Store
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    StoreContract,
    cursor_of,
    due,
    executions,
    fire,
    lease_all,
    ledger_of,
    open_keys,
    raises,
    ready_entry,
    register,
    scheduled,
    shards_of,
    view_of,
)
from luciole.testing.contract.test_manual import manual
from luciole.testing.factories import NODE_B, a_plan, a_schedule, a_settlement

#: From one fire time to the next in these cases.
STEP_US = 3_600 * SECOND_US


def a_step(group: DueGroup, *, is_last: bool = False) -> Step:
    """Return the step of a group; its schedules go on an hour later, or not at all."""
    next_us = None if is_last else group.fire_us + STEP_US
    return Step(group, next_us, next_us, *unpack_entry_traits(group.policy_id))


async def a_stride(store: Store, leases: Sequence[Lease], *, limit: int = 500) -> Stride:
    """Return the stride that takes all that is due now."""
    batch = await store.due_groups(shards_of(store), await store.now_us(), limit=limit)
    held = {share.shard for share in batch.shares}
    return Stride(
        steps=tuple(a_step(group) for group in batch.groups),
        shares=batch.shares,
        leases=tuple(lease for lease in leases if lease.shard in held),
    )


async def crowd(store: Store, size: int = 50) -> dict[int, ExecutionKey]:
    """Register schedules that are due at one instant; return the keys that they will fire, by schedule."""
    now_us = await store.now_us()
    await register(store, *(a_schedule(f"s{n}", fire_us=now_us) for n in range(size)))
    cursors = (await due(store)).values()
    return {c.schedule_id: ExecutionKey(c.shard, c.schedule_id, c.fire_us, 0) for c in cursors}


class TestGroups(StoreContract):
    """What is due, counted by what decides its next step."""

    async def test_groups_count_what_is_due(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        now_us = await a.now_us()
        await register(
            a,
            *(a_schedule(f"now{n}", fire_us=now_us) for n in range(20)),
            *(a_schedule(f"then{n}", fire_us=now_us - SECOND_US) for n in range(10)),
            a_schedule("later", fire_us=now_us + 900 * SECOND_US),
        )
        batch = await b.due_groups(shards_of(b), now_us, limit=500)
        cursors = [*(await b.due_cursors(shards_of(b), now_us, limit=500)).cursors]
        assert sorted(batch.groups.items()) == sorted(
            (group, sum(group_of(cursor) == group for cursor in cursors)) for group in {*map(group_of, cursors)}
        )
        assert [share.shard for share in batch.shares] == sorted({cursor.shard for cursor in cursors})
        assert sum(share.cursors for share in batch.shares) == len(cursors) == 30
        assert not batch.more

    async def test_a_share_ends_where_its_cursors_end(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        await crowd(a, 60)
        now_us = await a.now_us()
        batch = await a.due_groups(shards_of(a), now_us, limit=3)
        everything = await a.due_cursors(shards_of(a), now_us, limit=500)
        assert batch.more
        for share in batch.shares:
            order = [cursor for cursor in everything.cursors if cursor.shard == share.shard][: share.cursors]
            assert len(order) <= 3
            assert (order[-1].due_us, order[-1].schedule_id) == (share.through_us, share.through_id)

    async def test_a_wrong_limit_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for limit in (0, limits.PLAN_BATCH_MAX + 1):
            with raises(InvalidValue):
                await a.due_groups([0], 0, limit=limit)


class TestStrides(StoreContract):
    """One step, many cursors."""

    async def test_a_stride_fires_each_cursor_once_and_moves_it(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        keys = await crowd(a)
        before = await due(a)
        outcome = await a.commit_stride(await a_stride(a, leases))
        # I2: cursor, execution and entry of one fire commit together.
        assert sorted(entry.key for entry in outcome.entries) == sorted(keys.values()) == sorted(await executions(b))
        assert sorted(await open_keys(b)) == sorted(keys.values())
        assert (outcome.created, outcome.left, outcome.refused) == (50, 0, frozenset())
        for schedule_id, cursor in (await due(b)).items():
            assert cursor == before[schedule_id].advance(
                before[schedule_id].fire_us + STEP_US, before[schedule_id].due_us + STEP_US
            )

    async def test_its_entries_are_those_of_a_plan(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        first, second = await scheduled(a, "one"), await scheduled(a, "two")
        planned = await fire(a, leases, first)
        (strode,) = (await a.commit_stride(await a_stride(a, leases))).entries
        key = ExecutionKey(second.shard, second.schedule_id, second.fire_us, 0)
        assert strode == planned._replace(key=key, due_us=second.due_us, job_id=second.job_id)

    async def test_again_it_changes_nothing(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        keys = await crowd(a)
        stride = await a_stride(a, leases)
        await a.commit_stride(stride)
        for store in (a, b):
            again = await store.commit_stride(stride)
            assert (again.created, again.left) == (0, 50)
        assert sorted(await executions(a)) == sorted(keys.values())

    async def test_what_is_no_part_of_it_stays(self, harness: StoreHarness) -> None:
        """Goal: neither cursors behind the share's end nor those of other groups move."""
        a, _ = harness.clients
        leases = await lease_all(a)
        at_us = next(iter((await crowd(a, 60)).values())).fire_us
        await register(a, a_schedule("other", fire_us=at_us - SECOND_US))
        stride = await a_stride(a, leases, limit=2)
        steps = tuple(step for step in stride.steps if step.group.fire_us == at_us)
        outcome = await a.commit_stride(replace(stride, steps=steps))
        other = await cursor_of(a, "other")
        assert other.fire_us == at_us - SECOND_US
        shares = {share.shard: share for share in stride.shares}
        for entry in outcome.entries:
            assert (entry.due_us, entry.key.schedule_id) <= shares[entry.key.shard][2:]
        assert 0 < outcome.created == len(await executions(a)) < 60

    async def test_a_stale_fence_moves_nothing(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        stale = await lease_all(a)
        await crowd(a)
        stride = await a_stride(a, stale)
        await a.release_leases(stale)
        fresh = await lease_all(b, NODE_B)
        outcome = await a.commit_stride(stride)
        # I3: holder and fence are compared together, in the transaction.
        assert (outcome.created, outcome.refused) == (0, frozenset(share.shard for share in stride.shares))
        assert await executions(a) == {}
        assert (await b.commit_stride(replace(stride, leases=fresh))).created == 50

    async def test_one_refused_shard_holds_up_no_other(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        keys = await crowd(a)
        stride = await a_stride(a, leases)
        lost = stride.shares[0].shard
        await a.release_leases([lease for lease in leases if lease.shard == lost])
        outcome = await a.commit_stride(stride)
        assert outcome.refused == {lost}
        assert sorted(await executions(a)) == sorted(key for key in keys.values() if key.shard != lost)

    async def test_an_open_execution_keeps_the_next_one_out(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        first = await fire(a, leases, cursor)
        await harness.advance(SECOND_US)
        await a.reschedule("default", "nightly", await a.now_us())
        again = await cursor_of(a)
        outcome = await a.commit_stride(await a_stride(a, leases))
        assert (outcome.created, [*await executions(a)]) == (0, [first.key])
        # I4: its fire time is still to be planned, or has its outcome.
        skips = [row.reason for row in await ledger_of(a, cursor)]
        assert (await cursor_of(a) == again and not skips) or skips == [Reason.OVERLAP]

    async def test_an_execution_that_exists_brings_no_second_entry(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a))
        await a.settle([a_settlement(entry)])
        await a.reschedule("default", "nightly", entry.key.fire_us)
        outcome = await a.commit_stride(await a_stride(a, leases))
        # I1: at most one execution per (schedule, fire time, part).
        assert (outcome.entries, outcome.created) == ((), 0)
        assert [view.state for view in (await executions(a)).values()] == [ExecutionState.SUCCEEDED]

    async def test_entries_may_stay_ready_in_the_store(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        stride = await a_stride(a, leases)
        outcome = await a.commit_stride(replace(stride, ready=frozenset({cursor.shard})))
        key = ExecutionKey(cursor.shard, cursor.schedule_id, cursor.fire_us, 0)
        assert (outcome.entries, outcome.created) == ((), 1)
        assert (await ready_entry(a, key)).state is EntryState.READY
        assert await open_keys(a) == []

    async def test_an_exhausted_schedule_fires_no_more(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        await scheduled(a)
        stride = await a_stride(a, leases)
        await a.commit_stride(replace(stride, steps=tuple(a_step(step.group, is_last=True) for step in stride.steps)))
        assert (await view_of(a)).state is ScheduleState.EXHAUSTED
        assert await due(a) == {}

    async def test_a_stride_that_no_store_may_write_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        await scheduled(a)
        good = await a_stride(a, leases)
        (step,), (share,) = good.steps, good.shares
        for bad in (
            replace(good, steps=(step, step)),
            replace(good, shares=(share, share)),
            replace(good, steps=(step._replace(next_fire_us=step.group.fire_us),)),
            replace(good, shares=(share._replace(cursors=limits.PLAN_BATCH_MAX + 1),)),
        ):
            with raises(InvalidValue):
                await a.commit_stride(bad)
        assert await executions(a) == {}


class TestStrideRaces(StoreContract):
    """Strides beside others that write."""

    async def test_two_strides_that_race_make_one_execution_each(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        keys = await crowd(a)
        stride = await a_stride(a, leases)
        of_a, of_b = await asyncio.gather(a.commit_stride(stride), b.commit_stride(stride))
        created = [entry.key for entry in (*of_a.entries, *of_b.entries)]
        assert sorted(created) == sorted(keys.values()) == sorted(await executions(a))
        assert of_a.created + of_b.created == 50

    async def test_a_plan_in_flight_wins_against_a_stride(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        stride = await a_stride(a, leases)
        planned, strode = await harness.interleave(a.commit_plan(a_plan(leases, cursor)), b.commit_stride(stride))
        assert (planned.created, strode.created) == (1, 0)
        assert len(await executions(a)) == 1

    async def test_a_manual_run_in_flight_keeps_a_stride_out(self, harness: StoreHarness) -> None:
        """Goal: with overlap forbidden, a manual run and a stride can never both see nothing."""
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        stride = await a_stride(a, leases)
        request = await manual(a, cursor)
        by_hand, strode = await harness.interleave(a.trigger_schedule(request), b.commit_stride(stride))
        assert by_hand is not None
        assert strode.created == 0
        assert [*await executions(a)] == [by_hand.key]

    async def test_a_stride_in_flight_keeps_a_manual_run_out(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        stride = await a_stride(a, leases)
        request = await manual(b, cursor)
        strode, by_hand = await harness.interleave(a.commit_stride(stride), b.trigger_schedule(request))
        assert (strode.created, by_hand) == (1, None)
        assert len(await executions(a)) == 1
