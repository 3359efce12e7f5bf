"""Overlap, decided inside the committing transaction."""

from collections.abc import Sequence

from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.model.instant import Instant
from luciole.model.job import EntryFlag, Overlap
from luciole.model.lease import Lease
from luciole.model.outbox import Settled
from luciole.model.plan import LedgerRow
from luciole.model.schedule import Reason
from luciole.store.reads import LedgerView
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    StoreContract,
    cancel_keys,
    cursor_of,
    execution_of,
    executions,
    fire,
    fire_next,
    lease_all,
    ledger_of,
    open_keys,
    ready_entry,
    ready_keys,
    register,
    scheduled,
    state_of,
)
from luciole.testing.factories import a_move, a_plan, a_schedule, a_settlement


class TestForbidAndAllow(StoreContract):
    """Policies that never wait."""

    async def test_forbid_leaves_out_a_fire_while_one_is_open(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        first = await fire(a, leases, cursor)
        second = await cursor_of(b)
        outcome = await b.commit_plan(a_plan(leases, second))
        assert (outcome.entries, outcome.created, outcome.skipped, outcome.lost) == ((), 0, 1, ())
        # I4: the fire time that did not become an execution has an outcome.
        row = LedgerView(first_us=second.fire_us, last_us=second.fire_us, fires=1, reason=Reason.OVERLAP)
        assert await ledger_of(a, cursor) == [row]
        assert (await executions(a)).keys() == {first.key}
        assert (await cursor_of(a)).fire_us == second.fire_us + 60 * SECOND_US

    async def test_forbid_fires_again_once_the_open_one_has_ended(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a, overlap=Overlap.FORBID))
        assert await fire_next(a, leases) == ()
        await b.settle([a_settlement(entry, ExecutionState.FAILED)])
        assert len(await fire_next(a, leases)) == 1

    async def test_a_retry_that_waits_is_open(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a, overlap=Overlap.FORBID))
        later_us = await a.now_us() + 3_600 * SECOND_US
        await a.settle([a_settlement(entry, ExecutionState.RETRY_WAIT, due_us=later_us)])
        assert await fire_next(a, leases) == ()

    async def test_a_parked_execution_is_open(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a, overlap=Overlap.FORBID))
        await a.settle([a_settlement(entry, ExecutionState.PARKED)])
        assert await fire_next(a, leases) == ()

    async def test_forbid_decides_for_each_fire_of_a_step_in_order(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        at_us = [cursor.fire_us + n * SECOND_US for n in range(3)]
        outcome = await a.commit_plan(a_plan(leases, a_move(cursor, fires=at_us)))
        assert [entry.key.fire_us for entry in outcome.entries] == at_us[:1]
        assert (outcome.created, outcome.skipped) == (1, 2)
        row = LedgerView(first_us=at_us[1], last_us=at_us[2], fires=2, reason=Reason.OVERLAP)
        assert await ledger_of(a, cursor) == [row]

    async def test_forbid_does_not_mind_the_executions_of_others(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        now_us = await a.now_us()
        names = [f"s{n}" for n in range(20)]
        await register(a, *(a_schedule(name, fire_us=now_us, overlap=Overlap.FORBID) for name in names))
        for name in names:
            assert len(await fire_next(a, leases, name)) == 1

    async def test_allow_lets_any_number_be_open(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        await scheduled(a, overlap=Overlap.ALLOW)
        for _ in range(3):
            assert len(await fire_next(a, leases)) == 1
        assert len(await open_keys(a)) == 3


class TestQueueOne(StoreContract):
    """One waits."""

    async def test_one_waits_and_the_next_is_left_out(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.QUEUE_ONE)
        first = await fire(a, leases, cursor)
        second = await cursor_of(a)
        outcome = await a.commit_plan(a_plan(leases, second))
        third = await cursor_of(a)
        left_out = await a.commit_plan(a_plan(leases, third))
        assert first.flags & EntryFlag.RELEASES
        assert (outcome.entries, outcome.created, outcome.skipped) == ((), 1, 0)
        assert (left_out.entries, left_out.created, left_out.skipped) == ((), 0, 1)
        states = {key.fire_us: view.state for key, view in (await executions(b)).items()}
        assert states == {cursor.fire_us: ExecutionState.HELD, second.fire_us: ExecutionState.QUEUED}
        assert [row.first_us for row in await ledger_of(b, cursor)] == [third.fire_us]
        assert (await open_keys(b), await ready_keys(b)) == ([first.key], [])

    async def test_the_end_of_one_releases_the_waiting_one(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        second_us = (await cursor_of(a)).fire_us
        await fire_next(a, leases)
        answers = await b.settle([a_settlement(first, releases=True)])
        second = first.key._replace(fire_us=second_us)
        assert answers == (Settled.SETTLED,)
        assert await state_of(a, second) is ExecutionState.READY
        entry = await ready_entry(a, second)
        assert (entry.attempt, entry.flags & EntryFlag.RELEASES) == (1, EntryFlag.RELEASES)
        await b.settle([a_settlement(entry, releases=True)])
        assert len(await fire_next(a, leases)) == 1

    async def test_a_try_that_goes_on_releases_nothing(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        await fire_next(a, leases)
        await a.settle([a_settlement(first, ExecutionState.RETRY_WAIT, releases=True)])
        assert await ready_keys(a) == [first.key]

    async def test_a_confirmed_report_releases_nothing_more(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        await fire_next(a, leases)
        await a.settle([a_settlement(first, releases=True)])
        (second,) = await ready_keys(a)
        await fire_next(a, leases)
        again = await a.settle([a_settlement(first, releases=True)])
        assert again == (Settled.CONFIRMED,)
        assert await ready_keys(a) == [second]

    async def test_a_plan_that_read_before_the_end_loses(self, harness: StoreHarness) -> None:
        """Goal: no execution waits for one that has ended.

        Method: the planner reads the cursor while one is open, that one ends, then the planner commits.
        """
        a, b = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        stale = await cursor_of(a)
        await b.settle([a_settlement(first, releases=True)])
        assert (await a.commit_plan(a_plan(leases, stale))).lost == (stale.schedule_id,)
        assert len(await fire_next(a, leases)) == 1

    async def test_an_end_and_a_plan_at_one_moment_leave_nobody_waiting(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        cursor = await cursor_of(a)
        await harness.interleave(a.settle([a_settlement(first, releases=True)]), b.commit_plan(a_plan(leases, cursor)))
        await _assert_one_goes_on(harness, leases, cursor.fire_us)

    async def test_a_plan_and_an_end_at_one_moment_leave_nobody_waiting(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        cursor = await cursor_of(a)
        await harness.interleave(a.commit_plan(a_plan(leases, cursor)), b.settle([a_settlement(first, releases=True)]))
        await _assert_one_goes_on(harness, leases, cursor.fire_us)

    async def test_a_step_may_run_one_and_let_one_wait(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.QUEUE_ONE)
        at_us = [cursor.fire_us + n * SECOND_US for n in range(3)]
        outcome = await a.commit_plan(a_plan(leases, a_move(cursor, fires=at_us)))
        assert [entry.key.fire_us for entry in outcome.entries] == at_us[:1]
        assert (outcome.created, outcome.skipped) == (2, 1)
        states = [view.state for view in (await executions(a)).values()]
        assert sorted(states) == [ExecutionState.HELD, ExecutionState.QUEUED]

    async def test_nothing_waits_behind_what_cannot_release_it(self, harness: StoreHarness) -> None:
        """Goal: after an edit of the policy nobody waits for ever.

        Method: an execution of the policy `allow` is open when the schedule becomes `queue_one`.
        """
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.ALLOW)
        first = await fire(a, leases, cursor)
        next_us = (await cursor_of(a)).fire_us
        await register(a, a_schedule(fire_us=next_us, overlap=Overlap.QUEUE_ONE))
        outcome = await a.commit_plan(a_plan(leases, await cursor_of(a)))
        assert (outcome.created, outcome.skipped) == (0, 1)
        await a.settle([a_settlement(first)])
        assert len(await fire_next(a, leases)) == 1


async def _assert_one_goes_on(harness: StoreHarness, leases: Sequence[Lease], fire_us: Instant) -> None:
    """The fire is planned now or after a second look, and its execution can run."""
    a, _ = harness.clients
    cursor = await cursor_of(a)
    if cursor.fire_us == fire_us:
        await a.commit_plan(a_plan(leases, cursor))
    keys = [*await open_keys(a), *await ready_keys(a)]
    assert [key.fire_us for key in keys] == [fire_us]
    assert (await execution_of(a, keys[0])).state in {ExecutionState.HELD, ExecutionState.READY}


class TestReplace(StoreContract):
    """The open one is asked to end."""

    async def test_the_open_one_is_asked_to_end_and_the_new_one_waits(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.REPLACE))
        second = first.key._replace(fire_us=(await cursor_of(a)).fire_us)
        outcome = await a.commit_plan(a_plan(leases, await cursor_of(a)))
        assert (outcome.entries, outcome.created, outcome.skipped) == ((), 1, 0)
        assert (await execution_of(b, first.key)).cancel_requested
        assert (await cancel_keys(b), await state_of(b, second)) == ([first.key], ExecutionState.QUEUED)
        await b.settle([a_settlement(first, ExecutionState.CANCELLED, releases=True)])
        assert await ready_keys(a) == [second]

    async def test_a_waiting_one_is_replaced_at_once(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.REPLACE))
        times = [first.key.fire_us]
        for _ in range(2):
            times.append((await cursor_of(a)).fire_us)
            await fire_next(a, leases)
        states = [await state_of(a, first.key._replace(fire_us=at_us)) for at_us in times]
        assert states == [ExecutionState.HELD, ExecutionState.CANCELLED, ExecutionState.QUEUED]
        await a.settle([a_settlement(first, ExecutionState.CANCELLED, releases=True)])
        assert [key.fire_us for key in await ready_keys(a)] == times[2:]

    async def test_a_parked_one_is_replaced_at_once(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.REPLACE))
        await a.settle([a_settlement(first, ExecutionState.PARKED)])
        (second,) = await fire_next(a, leases)
        assert await state_of(a, first.key) is ExecutionState.CANCELLED
        assert await open_keys(a) == [second.key]

    async def test_one_that_waits_for_another_attempt_is_replaced_at_once(self, harness: StoreHarness) -> None:
        """Nobody will hear of its end: the new one must not wait for it."""
        a, _ = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.REPLACE))
        retry_us = await a.now_us() + 60 * SECOND_US
        await a.settle([a_settlement(first, ExecutionState.RETRY_WAIT, due_us=retry_us)])
        (second,) = await fire_next(a, leases)
        assert await state_of(a, first.key) is ExecutionState.CANCELLED
        assert await open_keys(a) == [second.key]

    async def test_of_fires_planned_ahead_in_one_step_the_last_one_stays(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        for name, ready in (("held", False), ("ready", True)):
            cursor = await scheduled(a, name=name, overlap=Overlap.REPLACE, in_us=60 * SECOND_US)
            times = [cursor.fire_us + n * SECOND_US for n in range(3)]
            await a.commit_plan(a_plan(leases, a_move(cursor, fires=times, ready=ready)))
            states = [await state_of(a, ExecutionKey(cursor.shard, cursor.schedule_id, at_us, 0)) for at_us in times]
            stays = ExecutionState.READY if ready else ExecutionState.HELD
            assert states == [ExecutionState.CANCELLED, ExecutionState.CANCELLED, stays]

    async def test_without_an_open_one_nothing_waits(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a, overlap=Overlap.REPLACE))
        assert entry.flags & EntryFlag.RELEASES
        assert not (await execution_of(a, entry.key)).cancel_requested


class TestLedger(StoreContract):
    """Fire times that did not run: ranges, counts, reasons (I4)."""

    async def test_an_adjacent_skip_extends_its_row(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        await fire(a, leases, cursor)
        for _ in range(5):
            await fire_next(a, leases)
        minute_us = 60 * SECOND_US
        assert await ledger_of(a, cursor) == [
            LedgerView(
                first_us=cursor.fire_us + minute_us,
                last_us=cursor.fire_us + 5 * minute_us,
                fires=5,
                reason=Reason.OVERLAP,
            )
        ]

    async def test_an_execution_in_between_starts_a_new_row(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        entry = await fire(a, leases, cursor)
        for _ in range(2):
            await fire_next(a, leases)
            await a.settle([a_settlement(entry)])
            (entry,) = await fire_next(a, leases)
        await fire_next(a, leases)
        rows = await ledger_of(a, cursor)
        assert [(row.fires, (row.first_us - cursor.fire_us) // SECOND_US) for row in rows] == [
            (1, 60),
            (1, 180),
            (1, 300),
        ]

    async def test_another_reason_starts_a_new_row(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        at_us = [cursor.fire_us + n for n in range(6)]
        steps = [
            (LedgerRow(at_us[0], at_us[1], 2, Reason.MISFIRE), at_us[2]),
            (LedgerRow(at_us[2], at_us[3], 2, Reason.MISFIRE), at_us[4]),
            (LedgerRow(at_us[4], at_us[4], 1, Reason.COALESCED), at_us[5]),
        ]
        for row, next_us in steps:
            await a.commit_plan(
                a_plan(leases, a_move(await cursor_of(a), fires=[], next_fire_us=next_us, ledger=[row]))
            )
        rows = await ledger_of(a, cursor)
        assert [(row.first_us, row.last_us, row.fires, row.reason) for row in rows] == [
            (at_us[0], at_us[3], 4, Reason.MISFIRE),
            (at_us[4], at_us[4], 1, Reason.COALESCED),
        ]

    async def test_rows_come_newest_first_and_no_more_than_asked_for(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        reasons = [Reason.MISFIRE, Reason.COALESCED] * 3
        for reason in reasons:
            at_us = (await cursor_of(a)).fire_us
            row = LedgerRow(at_us, at_us, 1, reason)
            await a.commit_plan(a_plan(leases, a_move(await cursor_of(a), fires=[], ledger=[row])))
        rows = await b.list_ledger(cursor.schedule_id, cursor.shard, limit=4)
        assert [row.reason for row in rows] == reasons[:1:-1]
        assert await b.list_ledger(cursor.schedule_id + 1_000, cursor.shard, limit=4) == ()
