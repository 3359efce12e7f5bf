"""Due cursors in, executions and entries out."""

import asyncio
from dataclasses import replace

from luciole import limits
from luciole.errors import InvalidValue
from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState, Origin
from luciole.model.ids import ExecutionKey
from luciole.model.job import EntryFlag
from luciole.model.outbox import Entry, EntryState, Settled
from luciole.model.plan import LedgerRow
from luciole.model.schedule import Reason, ScheduleState
from luciole.store.reads import LedgerView
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    TTL_US,
    StoreContract,
    cursor_of,
    due,
    execution_of,
    executions,
    fire,
    lease_all,
    ledger_of,
    open_keys,
    raises,
    ready_entry,
    register,
    scheduled,
    set_state,
    shards_of,
    view_of,
)
from luciole.testing.factories import NODE_A, NODE_B, a_job, a_move, a_plan, a_schedule, a_settlement


class TestDueCursors(StoreContract):
    """What is due."""

    async def test_due_cursors_come_most_overdue_first_in_each_shard(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        now_us = await a.now_us()
        ages_us = [(n * 7919) % 40 * SECOND_US for n in range(40)]
        ids = await register(a, *(a_schedule(f"s{n}", fire_us=now_us - age_us) for n, age_us in enumerate(ages_us)))
        batch = await b.due_cursors(shards_of(b), now_us, limit=100)
        assert {cursor.schedule_id for cursor in batch.cursors} == set(ids)
        assert batch.next_due_us is None
        for shard in shards_of(b):
            order = [(cursor.due_us, cursor.schedule_id) for cursor in batch.cursors if cursor.shard == shard]
            assert order == sorted(order)

    async def test_what_is_not_due_is_announced(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        now_us = await a.now_us()
        due_id, *_ = await register(
            a,
            a_schedule("due", fire_us=now_us),
            a_schedule("later", fire_us=now_us + 900 * SECOND_US),
            a_schedule("soon", fire_us=now_us + 700 * SECOND_US),
        )
        batch = await a.due_cursors(shards_of(a), now_us, limit=10)
        assert [cursor.schedule_id for cursor in batch.cursors] == [due_id]
        assert batch.next_due_us == now_us + 700 * SECOND_US

    async def test_the_due_time_decides_and_not_the_fire_time(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        cursor = await scheduled(a, jitter_us=5 * SECOND_US)
        early = await a.due_cursors(shards_of(a), cursor.fire_us, limit=10)
        late = await a.due_cursors(shards_of(a), cursor.fire_us + 5 * SECOND_US, limit=10)
        assert (early.cursors, early.next_due_us) == ((), cursor.fire_us + 5 * SECOND_US)
        assert late.cursors == (cursor,)

    async def test_a_limit_starves_no_shard(self, harness: StoreHarness) -> None:
        """Goal: a shard with a long backlog does not hold up the others."""
        a, _ = harness.clients
        now_us = await a.now_us()
        await register(a, *(a_schedule(f"s{n}", fire_us=now_us - (100 - n)) for n in range(100)))
        everything = await a.due_cursors(shards_of(a), now_us, limit=limits.DUE_MAX)
        batch = await a.due_cursors(shards_of(a), now_us, limit=8)
        assert len(batch.cursors) <= 8
        assert {cursor.shard for cursor in batch.cursors} == set(shards_of(a))
        for shard in shards_of(a):
            order = [cursor for cursor in everything.cursors if cursor.shard == shard]
            chosen = [cursor for cursor in batch.cursors if cursor.shard == shard]
            assert chosen == order[: len(chosen)]
        left = set(everything.cursors) - set(batch.cursors)
        assert batch.next_due_us == min(cursor.due_us for cursor in left)

    async def test_a_limit_is_never_exceeded(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        now_us = await a.now_us()
        await register(a, *(a_schedule(f"s{n}", fire_us=now_us) for n in range(40)))
        for limit in (1, 2, 3, 5, 39, 40, 41):
            batch = await a.due_cursors(shards_of(a), now_us, limit=limit)
            assert 0 < len(batch.cursors) <= limit
        whole = await a.due_cursors(shards_of(a), now_us, limit=160)
        assert len(whole.cursors) == 40

    async def test_only_the_shards_asked_for_come_back(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        now_us = await a.now_us()
        await register(a, *(a_schedule(f"s{n}", fire_us=now_us) for n in range(40)))
        batch = await a.due_cursors([2, 1, 2], now_us, limit=100)
        assert {cursor.shard for cursor in batch.cursors} == {1, 2}
        assert len({cursor.schedule_id for cursor in batch.cursors}) == len(batch.cursors)
        assert (await a.due_cursors([], now_us, limit=100)).cursors == ()

    async def test_schedules_that_do_not_fire_are_absent(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        now_us = await a.now_us()
        names = ("paused", "parked", "deleted", "exhausted")
        await register(a, *(a_schedule(name, fire_us=now_us) for name in names), a_schedule("never", fire_us=None))
        await set_state(a, ScheduleState.PAUSED, "paused")
        await set_state(a, ScheduleState.DELETED, "deleted")
        parked = await cursor_of(a, "parked")
        await a.park_schedules(leases, [(parked.schedule_id, parked.shard, "unreadable")])
        await a.commit_plan(a_plan(leases, a_move(await cursor_of(a, "exhausted"), next_fire_us=None)))
        batch = await a.due_cursors(shards_of(a), now_us, limit=100)
        assert (batch.cursors, batch.next_due_us) == ((), None)

    async def test_a_limit_out_of_bounds_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for shard, limit in ((0, 0), (0, -1), (0, limits.DUE_MAX + 1), (a.shards, 1), (-1, 1)):
            with raises(InvalidValue):
                await a.due_cursors([shard], 0, limit=limit)


class TestPlans(StoreContract):
    """One chunk."""

    async def test_a_plan_makes_executions_and_entries_and_moves_cursors(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, jitter_us=3, job=a_job(payload=b"\x00\xff", priority=7, at_most_once=True))
        outcome = await a.commit_plan(a_plan(leases, cursor))
        key = ExecutionKey(cursor.shard, cursor.schedule_id, cursor.fire_us, 0)
        flags = int(EntryFlag.AT_MOST_ONCE)
        entry = Entry(
            key=key, due_us=cursor.fire_us + 3, priority=7, attempt=1, failures=0, job_id=cursor.job_id, flags=flags
        )
        assert (outcome.entries, outcome.created, outcome.skipped) == ((entry,), 1, 0)
        assert (outcome.lost, outcome.refused) == ((), frozenset())
        assert await b.open_entries(shards_of(b), after=None, limit=10) == (entry,)
        view = await execution_of(b, key)
        assert (view.state, view.attempt, view.origin) == (ExecutionState.HELD, 1, Origin.SCHEDULE)
        assert (view.handler, view.payload, view.due_us) == ("report", b"\x00\xff", cursor.fire_us + 3)
        moved = await cursor_of(b)
        assert (moved.fire_us, moved.due_us) == (cursor.fire_us + 60 * SECOND_US, cursor.fire_us + 60 * SECOND_US)
        assert moved.revision > cursor.revision

    async def test_the_same_plan_again_changes_nothing(self, harness: StoreHarness) -> None:
        """Goal: a plan whose commit was cut off is repeated without harm."""
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        plan = a_plan(leases, cursor)
        await a.commit_plan(plan)
        before = await executions(a), await cursor_of(a)
        for store in (a, b):
            again = await store.commit_plan(plan)
            assert (again.entries, again.created, again.lost) == ((), 0, (cursor.schedule_id,))
        assert (await executions(a), await cursor_of(a)) == before

    async def test_a_stale_fence_writes_nothing(self, harness: StoreHarness) -> None:
        """Goal: a node that lost its shard can't plan it again when it wakes up.

        Method: `a` takes the lease and stalls past its end, `b` takes over, then `a` commits.
        """
        a, b = harness.clients
        cursor = await scheduled(a)
        stale = await lease_all(a, NODE_A, ttl_us=10 * SECOND_US)
        await harness.advance(10 * SECOND_US)
        fresh = await lease_all(b, NODE_B)
        outcome = await a.commit_plan(a_plan(stale, cursor))
        # I3: neither does a stale fence under the right name, nor the other way round.
        forged = [replace(stale[cursor.shard], holder=NODE_B), replace(fresh[cursor.shard], holder=NODE_A)]
        for lease in forged:
            assert (await a.commit_plan(a_plan([lease], cursor))).refused == {cursor.shard}
        assert outcome.refused == {cursor.shard}
        assert (outcome.entries, outcome.created) == ((), 0)
        assert await cursor_of(b) == cursor
        assert await executions(b) == {}

    async def test_an_expired_lease_writes_nothing_though_nobody_took_it(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        cursor = await scheduled(a)
        stale = await lease_all(a, ttl_us=10 * SECOND_US)
        await harness.advance(10 * SECOND_US)
        outcome = await a.commit_plan(a_plan(stale, cursor))
        assert outcome.refused == {cursor.shard}
        assert await executions(a) == {}

    async def test_a_shard_without_a_lease_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        cursor = await scheduled(a)
        leases = await lease_all(a)
        others = [lease for lease in leases if lease.shard != cursor.shard]
        assert (await a.commit_plan(a_plan(others, cursor))).refused == {cursor.shard}
        assert await executions(a) == {}

    async def test_a_refused_shard_does_not_hold_up_the_others(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        now_us = await a.now_us()
        await register(a, *(a_schedule(f"s{n}", fire_us=now_us) for n in range(40)))
        leases = await lease_all(a)
        await a.release_leases([leases[1]])
        await b.acquire_leases(NODE_B, [1], ttl_us=TTL_US)
        cursors = (await due(a)).values()
        outcome = await a.commit_plan(a_plan(leases, *cursors))
        expected = [cursor.schedule_id for cursor in cursors if cursor.shard != 1]
        assert outcome.refused == {1}
        assert [entry.key.schedule_id for entry in outcome.entries] == expected
        assert {key.schedule_id for key in await executions(a)} == set(expected)

    async def test_a_cursor_that_moved_does_not_hold_up_the_others(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        lost, kept = await scheduled(a, "lost"), await scheduled(a, "kept")
        gone = await scheduled(a, "gone")
        await fire(a, leases, lost)
        await set_state(a, ScheduleState.DELETED, "gone")
        unknown = kept._replace(schedule_id=kept.schedule_id + 1_000)
        behind = (await scheduled(a, "behind"))._replace(revision=-1)
        outcome = await a.commit_plan(a_plan(leases, lost, kept, gone, unknown, behind))
        assert [entry.key.schedule_id for entry in outcome.entries] == [kept.schedule_id]
        assert set(outcome.lost) == {cursor.schedule_id for cursor in (lost, gone, unknown, behind)}
        assert outcome.created == 1

    async def test_two_planners_that_race_make_one_execution(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        now_us = await a.now_us()
        await register(a, *(a_schedule(f"s{n}", fire_us=now_us) for n in range(50)))
        cursors = [*(await due(a)).values()]
        of_a, of_b = await asyncio.gather(
            a.commit_plan(a_plan(leases, *cursors)), b.commit_plan(a_plan(leases, *reversed(cursors)))
        )
        # I1: at most one execution per (schedule, fire time, part).
        created = [entry.key for entry in (*of_a.entries, *of_b.entries)]
        assert sorted(created) == sorted(await executions(a))
        assert len(created) == len(set(created)) == of_a.created + of_b.created == 50
        assert len(of_a.lost) + len(of_b.lost) == 50

    async def test_interleaved_planners_make_one_execution(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        plan = a_plan(leases, cursor)
        of_a, of_b = await harness.interleave(a.commit_plan(plan), b.commit_plan(plan))
        assert (of_a.created, of_b.created, of_b.lost) == (1, 0, (cursor.schedule_id,))
        assert len(await executions(a)) == 1

    async def test_an_exhausted_schedule_fires_no_more(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        entry = await fire(a, leases, a_move(cursor, next_fire_us=None))
        view = await view_of(a)
        assert entry.key.fire_us == cursor.fire_us
        assert (view.state, view.fire_us, view.due_us) == (ScheduleState.EXHAUSTED, None, None)
        assert await due(a) == {}

    async def test_an_execution_that_exists_brings_no_second_entry(self, harness: StoreHarness) -> None:
        """Goal: an instant that fired never fires again, whatever the cursor says (I1)."""
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        entry = await fire(a, leases, cursor)
        assert await a.settle([a_settlement(entry)]) == (Settled.SETTLED,)
        await a.reschedule("default", "nightly", cursor.fire_us)
        outcome = await a.commit_plan(a_plan(leases, await cursor_of(a)))
        assert (outcome.entries, outcome.created, outcome.skipped, outcome.lost) == ((), 0, 0, ())
        assert (await execution_of(a, entry.key)).state is ExecutionState.SUCCEEDED
        assert (await cursor_of(a)).fire_us > cursor.fire_us


class TestSteps(StoreContract):
    """What one move may hold."""

    async def test_entries_may_stay_ready_in_the_store(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        outcome = await a.commit_plan(a_plan(leases, a_move(cursor, ready=True)))
        key = ExecutionKey(cursor.shard, cursor.schedule_id, cursor.fire_us, 0)
        assert (outcome.entries, outcome.created) == ((), 1)
        assert (await ready_entry(a, key)).state is EntryState.READY
        assert (await execution_of(a, key)).state is ExecutionState.READY
        assert await open_keys(a) == []

    async def test_a_step_may_catch_up_and_leave_out(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        at_us = [cursor.fire_us + n * SECOND_US for n in range(10)]
        skipped = LedgerRow(at_us[0], at_us[6], 7, Reason.MISFIRE)
        move = a_move(cursor, fires=at_us[7:], next_fire_us=at_us[9] + SECOND_US, ledger=[skipped])
        outcome = await a.commit_plan(a_plan(leases, move))
        assert [entry.key.fire_us for entry in outcome.entries] == at_us[7:]
        assert (outcome.created, outcome.skipped) == (3, 0)
        assert [key.fire_us for key in await executions(a)] == at_us[7:]
        assert await ledger_of(a, cursor) == [
            LedgerView(first_us=at_us[0], last_us=at_us[6], fires=7, reason=Reason.MISFIRE)
        ]

    async def test_a_step_may_fire_nothing(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        row = LedgerRow(cursor.fire_us, cursor.fire_us, 1, Reason.MISFIRE)
        move = a_move(cursor, fires=[], next_fire_us=cursor.fire_us + SECOND_US, ledger=[row])
        outcome = await a.commit_plan(a_plan(leases, move))
        assert (outcome.created, outcome.lost) == (0, ())
        assert await executions(a) == {}
        assert len(await ledger_of(a, cursor)) == 1

    async def test_a_step_that_does_not_go_forward_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor, other = await scheduled(a), await scheduled(a, "other")
        fire_us = cursor.fire_us
        for move in (
            a_move(cursor, next_fire_us=fire_us),  # I2: cursors only move forward.
            a_move(cursor, fires=[fire_us - 1]),
            a_move(cursor, fires=[fire_us, fire_us]),
            a_move(cursor, fires=[fire_us + 2, fire_us + 1]),
            a_move(cursor, fires=[fire_us + 2], next_fire_us=fire_us + 2),
        ):
            with raises(InvalidValue):
                await a.commit_plan(a_plan(leases, other, move))
        assert await executions(a) == {}
        assert (await due(a)).keys() == {cursor.schedule_id, other.schedule_id}

    async def test_a_chunk_over_its_bounds_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        most = limits.CATCH_UP_MAX
        twice = [a_move(cursor), a_move(cursor)]
        deep = [a_move(cursor, fires=range(cursor.fire_us, cursor.fire_us + most + 1))]
        long = [a_move(cursor._replace(schedule_id=n + 1_000)) for n in range(limits.PLAN_BATCH_MAX + 1)]
        for moves in (twice, deep, long):
            with raises(InvalidValue):
                await a.commit_plan(a_plan(leases, *moves))
        assert await executions(a) == {}
        assert await cursor_of(a) == cursor

    async def test_a_full_chunk_is_planned_in_its_order(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        now_us = await a.now_us()
        most = a.capabilities.plan_batch_max
        for first in range(0, most, limits.REGISTER_BATCH_MAX):
            names = [f"s{n}" for n in range(first, min(most, first + limits.REGISTER_BATCH_MAX))]
            await register(a, *(a_schedule(name, fire_us=now_us) for name in names))
        cursors = [*(await due(a)).values()]
        outcome = await a.commit_plan(a_plan(leases, *cursors))
        assert len(cursors) == outcome.created == most
        assert [entry.key.schedule_id for entry in outcome.entries] == [cursor.schedule_id for cursor in cursors]
        assert len(await b.open_entries(shards_of(b), after=None, limit=limits.HELD_MAX)) == most

    async def test_an_empty_chunk_changes_nothing(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        outcome = await a.commit_plan(a_plan(leases))
        assert (outcome.entries, outcome.created, outcome.lost, outcome.refused) == ((), 0, (), frozenset())


class TestParking(StoreContract):
    """Schedules and jobs that nobody can read (I7)."""

    async def test_a_parked_schedule_stays_with_its_reason(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor, other = await scheduled(a), await scheduled(a, "other")
        parked = [(cursor.schedule_id, cursor.shard, "no such zone \x00")]
        assert await a.park_schedules(leases, parked) == 1
        assert await a.park_schedules(leases, parked) == 0
        view = await view_of(b)
        assert (view.state, view.reason, view.due_us) == (ScheduleState.PARKED, "no such zone \ufffd", None)
        assert view.fire_us == cursor.fire_us
        # I7: one bad row never blocks the others.
        assert (await due(b)).keys() == {other.schedule_id}
        assert (await a.commit_plan(a_plan(leases, cursor))).lost == (cursor.schedule_id,)

    async def test_parking_is_guarded(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        cursor = await scheduled(a)
        stale = await lease_all(a, ttl_us=10 * SECOND_US)
        await harness.advance(10 * SECOND_US)
        await lease_all(b, NODE_B)
        # I3: guarded as every write of a holder.
        assert await a.park_schedules(stale, [(cursor.schedule_id, cursor.shard, "unreadable")]) == 0
        assert (await view_of(b)).state is ScheduleState.ACTIVE

    async def test_only_active_schedules_are_parked(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        await set_state(a, ScheduleState.PAUSED, reason="holidays")
        wrong_shard = (cursor.shard + 1) % a.shards
        assert await a.park_schedules(leases, [(cursor.schedule_id, cursor.shard, "unreadable")]) == 0
        await set_state(a, ScheduleState.ACTIVE, fire_us=cursor.fire_us, due_us=cursor.due_us)
        assert await a.park_schedules(leases, [(cursor.schedule_id, wrong_shard, "unreadable")]) == 0
        assert await a.park_schedules(leases, [(cursor.schedule_id + 1_000, cursor.shard, "unreadable")]) == 0
        assert (await view_of(a)).state is ScheduleState.ACTIVE

    async def test_a_job_that_cannot_be_read_does_not_hide_the_others(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        jobs = [a_job("one"), a_job("two", payload=b"\x00"), a_job("three")]
        one, two, three = await a.intern_jobs(jobs)
        await harness.spoil_job(two)
        loaded = await b.load_jobs([one, two, three, three + 1_000])
        assert {job_id: version.spec for job_id, version in loaded.items()} == {one: jobs[0], three: jobs[2]}
        assert loaded[one].job_id == one

    async def test_a_job_that_cannot_be_read_does_not_hide_its_schedule(self, harness: StoreHarness) -> None:
        """Goal: what can't be read is still seen by whoever has to repair it."""
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, job=a_job("bad"))
        await scheduled(a, "other")
        entry = await fire(a, leases, cursor)
        await harness.spoil_job(cursor.job_id)
        view = await execution_of(a, entry.key)
        assert (view.handler, view.state) == ("bad", ExecutionState.HELD)
        assert await a.settle([a_settlement(entry)]) == (Settled.SETTLED,)
        assert (await view_of(a)).spec.job.handler == "bad"
        assert (await view_of(a, "other")).spec.job.handler == "report"

    async def test_triggers_are_loaded_by_id(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        now_us = await a.now_us()
        texts = ["every 60s", "cron 30 2 * * * Europe/Berlin", "every 60s"]
        await register(a, *(a_schedule(f"s{n}", fire_us=now_us, trigger=text) for n, text in enumerate(texts)))
        cursors = [await cursor_of(a, f"s{n}") for n in range(3)]
        ids = [cursor.trigger_id for cursor in cursors]
        loaded = await b.load_triggers([*ids, max(ids) + 1_000])
        assert [loaded[number] for number in ids] == texts
        assert loaded.keys() == set(ids)
        assert ids[0] == ids[2] != ids[1]
