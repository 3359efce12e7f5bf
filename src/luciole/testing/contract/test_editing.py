"""Schedules that are edited, paused, resumed, deleted."""

from dataclasses import replace

from luciole.limits import SECOND_US
from luciole.model.execution import EnqueueRequest, ExecutionState
from luciole.model.instant import Instant
from luciole.model.job import Overlap
from luciole.model.outbox import Settled
from luciole.model.plan import LedgerRow
from luciole.model.schedule import Cursor, Overdue, Reason, ScheduleState
from luciole.store.reads import LedgerView
from luciole.store.spi import Store
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    StoreContract,
    cursor_of,
    due,
    execution_of,
    executions,
    fire,
    fire_next,
    lease_all,
    ledger_of,
    open_keys,
    ready_keys,
    register,
    request_id,
    scheduled,
    set_state,
    state_of,
    view_of,
)
from luciole.testing.factories import a_job, a_move, a_plan, a_request, a_schedule, a_settlement

HOUR_US = 3_600 * SECOND_US


async def a_run(store: Store, cursor: Cursor, *, fire_us: Instant | None = None) -> EnqueueRequest:
    """Return a request for one run of a schedule by hand."""
    return a_request(
        await request_id(store), cursor.job_id, cursor.shard, schedule_id=cursor.schedule_id, fire_us=fire_us
    )


async def prune_schedules(store: Store, before_us: Instant, *, limit: int = 10) -> list[int]:
    """Walk the schedules of every shard to its end; return what was deleted."""
    deleted: list[int] = []
    for shard in range(store.shards):
        after: str | None = "0"
        while after is not None:
            page = await store.prune_schedules(shard, before_us, after=int(after), limit=limit)
            assert len(page.rows) <= limit
            deleted += page.rows
            after = page.next
    return deleted


class TestOver(StoreContract):
    """Schedules that are over go, once nothing of them is left."""

    async def test_what_is_over_for_long_and_left_nothing_is_deleted(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        kept, gone = [], []
        for number in range(6):
            gone.append(await scheduled(a, f"deleted-{number}", in_us=HOUR_US))
            await set_state(a, ScheduleState.DELETED, f"deleted-{number}")
        await register(a, a_schedule("exhausted", fire_us=None))
        exhausted = await view_of(a, "exhausted")
        for name, state in (("paused", ScheduleState.PAUSED), ("parked", ScheduleState.PARKED)):
            kept.append(await scheduled(a, name))
            await set_state(a, state, name)
        kept.append(await scheduled(a, "active", in_us=9 * HOUR_US))
        once = await scheduled(a, "once")
        await fire(a, leases, a_move(once, next_fire_us=None))  # Its execution is still there.
        before_us = await a.now_us()
        assert await prune_schedules(b, before_us - HOUR_US) == []
        await harness.advance(SECOND_US)
        deleted = await prune_schedules(b, before_us + SECOND_US, limit=2)
        assert sorted(deleted) == sorted([exhausted.schedule_id, *(cursor.schedule_id for cursor in gone)])
        assert await prune_schedules(a, before_us + SECOND_US, limit=2) == []
        for name in ("paused", "parked", "active", "once"):
            assert (await view_of(a, name)).spec.name == name

    async def test_what_ran_or_was_left_out_keeps_its_schedule_until_it_is_pruned(self, harness: StoreHarness) -> None:
        """The ledger and the executions are never without the schedule that they belong to."""
        a, _ = harness.clients
        leases = await lease_all(a)
        ran, skipped = await scheduled(a, "ran"), await scheduled(a, "skipped")
        entry = await fire(a, leases, a_move(ran, next_fire_us=None))
        row = LedgerRow(skipped.fire_us, skipped.fire_us, 1, Reason.OVERLAP)
        await a.commit_plan(a_plan(leases, a_move(skipped, fires=(), ledger=[row], next_fire_us=None)))
        await harness.advance(HOUR_US)
        assert await prune_schedules(a, await a.now_us()) == []
        await a.settle([a_settlement(entry)])
        assert await prune_schedules(a, await a.now_us() + HOUR_US) == []
        for shard in range(a.shards):
            await a.prune(shard, await a.now_us() + HOUR_US, after=None, limit=100)
        found = await prune_schedules(a, await a.now_us() + HOUR_US)
        assert sorted(found) == sorted([ran.schedule_id, skipped.schedule_id])

    async def test_a_name_that_is_declared_again_is_a_schedule_of_its_own(self, harness: StoreHarness) -> None:
        """I1: no fire time of the one that is gone can come again."""
        a, b = harness.clients
        before = await scheduled(a, in_us=HOUR_US)
        await set_state(a, ScheduleState.DELETED)
        await harness.advance(SECOND_US)
        assert await prune_schedules(b, await a.now_us() + SECOND_US) == [before.schedule_id]
        again = await scheduled(b, in_us=2 * HOUR_US)
        assert again.schedule_id > before.schedule_id
        assert (await view_of(a)).version == 1
        assert list((await due(a)).values()) == [again]

    async def test_one_that_came_back_is_not_over(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        before = await scheduled(a, in_us=HOUR_US)
        await set_state(a, ScheduleState.DELETED)
        await register(a, a_schedule(fire_us=before.fire_us))
        assert await prune_schedules(b, before.fire_us) == []
        assert (await cursor_of(b)).schedule_id == before.schedule_id


class TestEdits(StoreContract):
    """A changed definition under the same name."""

    async def test_a_changed_trigger_starts_from_the_new_fire_time(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        before = await scheduled(a, in_us=HOUR_US)
        new_us = before.fire_us + HOUR_US
        await harness.advance(5 * SECOND_US)
        ids = await register(b, a_schedule(fire_us=new_us, due_us=new_us + 2, trigger="every 5s"))
        view = await view_of(a)
        assert ids == (before.schedule_id,)
        assert (view.version, view.state, view.spec.trigger) == (2, ScheduleState.ACTIVE, "every 5s")
        assert (view.fire_us, view.due_us) == (new_us, new_us + 2)
        assert view.updated_us > view.created_us
        assert view.revision > before.revision
        assert await ledger_of(a, before) == []

    async def test_a_plan_of_the_old_definition_loses(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        stale = await scheduled(a)
        await register(b, a_schedule(fire_us=stale.fire_us, job=a_job("other")))
        assert (await a.commit_plan(a_plan(leases, stale))).lost == (stale.schedule_id,)
        entry = await fire(a, leases, await cursor_of(a))
        assert (await execution_of(a, entry.key)).handler == "other"

    async def test_a_changed_payload_loses_no_overdue_fire(self, harness: StoreHarness) -> None:
        """Goal: a deployment after an outage does not swallow what fell due in between."""
        a, b = harness.clients
        before = await scheduled(a, jitter_us=2)
        await harness.advance(HOUR_US)
        await register(b, a_schedule(fire_us=before.fire_us + 2 * HOUR_US, job=a_job(payload=b"new")))
        after = await cursor_of(a)
        assert (after.fire_us, after.due_us) == (before.fire_us, before.due_us)
        assert after.job_id != before.job_id
        assert (await view_of(a)).version == 2

    async def test_a_fire_that_was_due_under_the_old_trigger_has_an_outcome(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        before = await scheduled(a)
        await harness.advance(SECOND_US)
        await register(b, a_schedule(fire_us=before.fire_us + HOUR_US, trigger="every 5s"))
        # I4: nobody plans it any more, so the edit itself says what became of it.
        row = LedgerView(first_us=before.fire_us, last_us=before.fire_us, fires=1, reason=Reason.DISABLED)
        assert await ledger_of(a, before) == [row]
        assert (await cursor_of(a)).fire_us == before.fire_us + HOUR_US

    async def test_each_fire_that_was_due_under_the_old_trigger_is_counted(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        for name, state in (("active", None), ("paused", ScheduleState.PAUSED), ("parked", ScheduleState.PARKED)):
            before = await scheduled(a, name)
            if state:
                await set_state(a, state, name)
            await harness.advance(2 * SECOND_US)
            overdue = Overdue(before.fire_us, before.fire_us + 2 * SECOND_US, 3)
            new_us = before.fire_us + HOUR_US
            await register(b, replace(a_schedule(name, fire_us=new_us, trigger="every 5s"), overdue=overdue))
            # I4: three fire times, one range, and the edit's own reason unless they had another.
            reason = Reason.PAUSED if state is ScheduleState.PAUSED else Reason.DISABLED
            row = LedgerView(first_us=overdue.first_us, last_us=overdue.last_us, fires=3, reason=reason)
            assert await ledger_of(a, before) == [row]
            assert (await view_of(a, name)).fire_us == new_us

    async def test_what_was_planned_since_it_was_counted_has_its_outcome_already(self, harness: StoreHarness) -> None:
        """I4: not a second one."""
        a, b = harness.clients
        leases = await lease_all(a)
        before = await scheduled(a)
        overdue = Overdue(before.fire_us, before.fire_us, 1)
        await fire(a, leases, a_move(before, next_fire_us=before.fire_us + HOUR_US))
        await register(b, replace(a_schedule(fire_us=before.fire_us + 7, trigger="every 5s"), overdue=overdue))
        assert await ledger_of(a, before) == []
        assert [key.fire_us for key in await executions(a)] == [before.fire_us]

    async def test_a_fire_time_of_both_triggers_gets_one_outcome(self, harness: StoreHarness) -> None:
        """Goal: what falls due while an edit is under way belongs to the new definition, if that has it too (I4)."""
        a, b = harness.clients
        leases = await lease_all(a)
        before = await scheduled(a, in_us=SECOND_US)
        await harness.advance(2 * SECOND_US)
        await register(b, a_schedule(fire_us=before.fire_us, trigger="every 5s"))
        entry = await fire(a, leases, await cursor_of(a))
        assert entry.key.fire_us == before.fire_us
        assert await ledger_of(a, before) == []

    async def test_an_edit_withdraws_what_was_planned_ahead(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, in_us=HOUR_US, jitter_us=7)
        entry = await fire(a, leases, cursor)
        await register(b, a_schedule(fire_us=cursor.fire_us, job=a_job("other")))
        after = await cursor_of(a)
        assert await a.get_execution(entry.key) is None
        assert await open_keys(a) == []
        # The withdrawn fire time is planned anew, with the jitter that it has.
        assert (after.fire_us, after.due_us) == (cursor.fire_us, cursor.due_us)
        assert await a.settle([a_settlement(entry)]) == (Settled.REFUSED,)
        again = await fire(a, leases, after)
        assert (again.key, again.job_id) == (entry.key, after.job_id)
        assert again.job_id != entry.job_id

    async def test_an_edit_leaves_what_is_due_or_was_tried(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        at_us = (await scheduled(a)).fire_us
        move = a_move(await cursor_of(a), fires=[at_us, at_us + HOUR_US, at_us + 2 * HOUR_US])
        due_now, tried, ahead = (await a.commit_plan(a_plan(leases, move))).entries
        await a.settle([a_settlement(tried, ExecutionState.RETRY_WAIT, due_us=at_us + HOUR_US)])
        cursor = await cursor_of(a)
        by_hand = await a.trigger_schedule(await a_run(a, cursor, fire_us=at_us + HOUR_US))
        assert by_hand is not None
        await register(b, a_schedule(fire_us=at_us + HOUR_US, trigger="every 5s"))
        states = await a.execution_states([due_now.key, tried.key, ahead.key])
        assert states == (ExecutionState.HELD, ExecutionState.RETRY_WAIT, None)
        assert (await executions(a)).keys() == {due_now.key, tried.key, by_hand.key}

    async def test_an_edit_never_fires_twice_for_one_instant(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a))
        await a.settle([a_settlement(entry)])
        await register(b, a_schedule(fire_us=entry.key.fire_us, trigger="every 5s"))
        outcome = await a.commit_plan(a_plan(leases, await cursor_of(a)))
        # I1: an instant that has an execution never gets a second one.
        assert (outcome.entries, outcome.created) == ((), 0)
        assert (await executions(a)).keys() == {entry.key}

    async def test_a_paused_schedule_stays_paused(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        cursor = await scheduled(a, in_us=HOUR_US)
        await set_state(a, ScheduleState.PAUSED, reason="holidays")
        await register(b, a_schedule(fire_us=cursor.fire_us + HOUR_US, trigger="every 5s"))
        view = await view_of(a)
        assert (view.state, view.reason, view.version) == (ScheduleState.PAUSED, "holidays", 2)
        assert (view.fire_us, view.due_us) == (cursor.fire_us + HOUR_US, None)
        assert await due(a) == {}

    async def test_a_parked_schedule_is_repaired_by_an_edit(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        one, two = await scheduled(a, "one"), await scheduled(a, "two")
        for cursor in (one, two):
            await a.park_schedules(leases, [(cursor.schedule_id, cursor.shard, "unreadable")])
        new_us = one.fire_us + HOUR_US
        await register(b, a_schedule("one", fire_us=new_us, trigger="every 5s"))
        await register(b, a_schedule("two", fire_us=new_us, job=a_job("other")))
        views = [await view_of(a, name) for name in ("one", "two")]
        assert [(view.state, view.reason) for view in views] == [(ScheduleState.ACTIVE, None)] * 2
        # What fell due meanwhile is left to the misfire policy where the trigger is the same.
        assert [(view.fire_us, view.due_us) for view in views] == [(new_us, new_us), (two.fire_us, two.fire_us)]

    async def test_an_exhausted_schedule_goes_on_with_a_new_trigger(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        entry = await fire(a, leases, a_move(cursor, next_fire_us=None))
        await register(b, a_schedule(fire_us=cursor.fire_us + HOUR_US, trigger="every 5s"))
        view = await view_of(a)
        assert (view.state, view.fire_us) == (ScheduleState.ACTIVE, cursor.fire_us + HOUR_US)
        assert await ledger_of(a, cursor) == []
        await register(b, a_schedule(fire_us=None, trigger="never"))
        assert (await view_of(a)).state is ScheduleState.EXHAUSTED
        assert await state_of(a, entry.key) is ExecutionState.HELD

    async def test_a_withdrawn_execution_releases_its_successor(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, in_us=HOUR_US, overlap=Overlap.QUEUE_ONE)
        await fire(a, leases, cursor)
        answer = await b.trigger_schedule(await a_run(b, cursor))
        assert answer is not None
        assert await state_of(a, answer.key) is ExecutionState.QUEUED
        await register(b, a_schedule(fire_us=cursor.fire_us, overlap=Overlap.QUEUE_ONE, job=a_job("other")))
        assert await ready_keys(a) == [answer.key]
        assert (await executions(a)).keys() == {answer.key}


class TestStates(StoreContract):
    """Pause, resume, delete."""

    async def test_a_pause_stops_the_cursor_where_it_stands(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        assert await set_state(b, ScheduleState.PAUSED, reason="holidays\x00")
        view = await view_of(a)
        assert (view.state, view.reason) == (ScheduleState.PAUSED, "holidays\ufffd")
        assert (view.fire_us, view.due_us, view.version) == (cursor.fire_us, None, 1)
        assert await due(a) == {}
        assert (await a.commit_plan(a_plan(leases, cursor))).lost == (cursor.schedule_id,)

    async def test_a_resume_brings_the_outcome_of_the_pause(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        cursor = await scheduled(a)
        await set_state(a, ScheduleState.PAUSED, reason="holidays")
        view = await view_of(b)
        next_us = cursor.fire_us + 600 * SECOND_US
        paused = LedgerRow(cursor.fire_us, next_us - 60 * SECOND_US, 10, Reason.PAUSED)
        assert await b.set_schedule_state(
            view.schedule_id,
            ScheduleState.ACTIVE,
            reason=None,
            fire_us=next_us,
            due_us=next_us + 3,
            revision=view.revision,
            ledger=[paused],
        )
        view = await view_of(a)
        assert (view.state, view.reason, view.fire_us, view.due_us) == (
            ScheduleState.ACTIVE,
            None,
            next_us,
            next_us + 3,
        )
        # I4: each fire time of the pause has its outcome.
        assert await ledger_of(a, cursor) == [
            LedgerView(first_us=paused.first_us, last_us=paused.last_us, fires=10, reason=Reason.PAUSED)
        ]

    async def test_a_paused_schedule_gets_its_outcomes_before_its_trigger_changes(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        cursor = await scheduled(a)
        await set_state(a, ScheduleState.PAUSED)
        view = await view_of(b)
        next_us = cursor.fire_us + 600 * SECOND_US
        assert await b.set_schedule_state(
            view.schedule_id,
            ScheduleState.PAUSED,
            reason="holidays",
            fire_us=next_us,
            due_us=None,
            revision=view.revision,
            ledger=[LedgerRow(cursor.fire_us, next_us - 60 * SECOND_US, 10, Reason.PAUSED)],
        )
        view = await view_of(a)
        assert (view.state, view.fire_us, view.due_us) == (ScheduleState.PAUSED, next_us, None)
        # I4: each of them once.
        assert [row.fires for row in await ledger_of(a, cursor)] == [10]

    async def test_a_state_is_set_only_while_the_cursor_has_not_moved(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        await scheduled(a)
        stale = await view_of(b)
        await fire(a, leases, await cursor_of(a))
        row = LedgerRow(1, 1, 1, Reason.PAUSED)
        for revision in (stale.revision, stale.revision - 1):
            assert not await b.set_schedule_state(
                stale.schedule_id,
                ScheduleState.PAUSED,
                reason="no",
                fire_us=None,
                due_us=None,
                revision=revision,
                ledger=[row],
            )
        assert (await view_of(a)).state is ScheduleState.ACTIVE
        assert await ledger_of(a, await cursor_of(a)) == []

    async def test_what_a_schedule_left_behind_when_it_was_ended_gets_no_outcome_by_an_edit(
        self, harness: StoreHarness
    ) -> None:
        a, b = harness.clients
        cursor = await scheduled(a)
        await set_state(a, ScheduleState.EXHAUSTED)
        await harness.advance(60 * SECOND_US)
        await register(b, a_schedule(trigger="another", fire_us=await b.now_us()))
        assert await ledger_of(a, cursor) == []
        assert (await view_of(a)).state is ScheduleState.ACTIVE

    async def test_a_pause_and_a_plan_at_one_moment_do_not_both_happen(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        view = await view_of(a)
        outcome, was_paused = await harness.interleave(
            a.commit_plan(a_plan(leases, cursor)),
            b.set_schedule_state(
                view.schedule_id, ScheduleState.PAUSED, reason=None, fire_us=None, due_us=None, revision=view.revision
            ),
        )
        assert (outcome.created, was_paused) == (1, False)
        assert (await view_of(a)).state is ScheduleState.ACTIVE

    async def test_a_plan_at_the_moment_of_a_pause_loses(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        was_paused, outcome = await harness.interleave(
            set_state(a, ScheduleState.PAUSED), b.commit_plan(a_plan(leases, cursor))
        )
        assert was_paused
        assert (outcome.created, outcome.lost) == (0, (cursor.schedule_id,))
        assert await executions(a) == {}

    async def test_pausing_and_deleting_withdraw_what_was_planned_ahead(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        for name, state in (("paused", ScheduleState.PAUSED), ("deleted", ScheduleState.DELETED)):
            cursor = await scheduled(a, name)
            at_us = [cursor.fire_us, cursor.fire_us + HOUR_US]
            move = a_move(cursor, fires=at_us)
            due_now, ahead = (await a.commit_plan(a_plan(leases, move))).entries
            assert await set_state(b, state, name)
            # What is due stays; what is not yet due was never there.
            assert await a.execution_states([due_now.key, ahead.key]) == (ExecutionState.HELD, None)
            assert due_now.key in await open_keys(a)
            assert ahead.key not in await open_keys(a)

    async def test_a_pause_steps_back_to_what_it_withdrew(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, in_us=HOUR_US)
        at_us = [cursor.fire_us, cursor.fire_us + HOUR_US]
        await a.commit_plan(a_plan(leases, a_move(cursor, fires=at_us)))
        await set_state(b, ScheduleState.PAUSED)
        # I4: the resume counts from there, so that each fire time of the pause gets its outcome.
        assert (await view_of(a)).fire_us == cursor.fire_us
        assert await executions(a) == {}

    async def test_a_resumed_schedule_without_a_fire_time_is_exhausted(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        await scheduled(a)
        await set_state(a, ScheduleState.PAUSED)
        assert await set_state(a, ScheduleState.ACTIVE)
        view = await view_of(a)
        assert (view.state, view.fire_us, view.due_us) == (ScheduleState.EXHAUSTED, None, None)

    async def test_a_pause_after_the_last_fire_names_none_that_fired(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        await fire(a, leases, a_move(cursor, next_fire_us=None))
        await set_state(a, ScheduleState.PAUSED)
        view = await view_of(a)
        assert view.fire_us == cursor.fire_us + 1

    async def test_a_deleted_schedule_is_gone_and_its_history_stays(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a))
        view = await view_of(a)
        assert await set_state(b, ScheduleState.DELETED)
        assert await a.get_schedule("default", "nightly") is None
        assert await due(a) == {}
        assert (await execution_of(a, entry.key)).handler == "report"
        assert await a.settle([a_settlement(entry)]) == (Settled.SETTLED,)
        assert not await b.set_schedule_state(
            view.schedule_id, ScheduleState.ACTIVE, reason=None, fire_us=1, due_us=1, revision=view.revision + 1
        )

    async def test_a_deleted_name_is_free_again_and_fires_no_instant_twice(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a))
        await set_state(a, ScheduleState.DELETED)
        segment = await b.take_ids(1)
        again = a_schedule(fire_us=entry.key.fire_us, owner="other")
        ids = await b.put_schedules([again], first_id=segment.first, replace=False)
        assert ids == (entry.key.schedule_id,)
        view = await view_of(b)
        assert (view.state, view.spec.owner, view.fire_us) == (ScheduleState.ACTIVE, "other", entry.key.fire_us)
        # I1: an instant that has an execution never gets a second one.
        assert await fire_next(a, leases) == ()
        assert (await executions(a)).keys() == {entry.key}

    async def test_an_unknown_schedule_has_no_state_to_set(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        assert not await a.set_schedule_state(
            4_711, ScheduleState.PAUSED, reason=None, fire_us=None, due_us=None, revision=0
        )
