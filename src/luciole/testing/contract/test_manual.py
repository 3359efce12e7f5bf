"""Executions of a schedule by request, which must not overlap with what the planner makes."""

from typing import Any

from luciole.errors import InvalidValue, NotFound
from luciole.limits import SECOND_US
from luciole.model.execution import Enqueued, EnqueueRequest, ExecutionState, Origin
from luciole.model.job import EntryFlag, Overlap
from luciole.model.schedule import Cursor, ScheduleState
from luciole.store.spi import Store
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
    raises,
    ready_entry,
    ready_keys,
    request_id,
    scheduled,
    set_state,
    state_of,
)
from luciole.testing.factories import a_plan, a_request, a_settlement


async def manual(store: Store, cursor: Cursor, **fields: Any) -> EnqueueRequest:  # noqa: ANN401 - of the request
    """Return a request for one run of a schedule by hand."""
    known: dict[str, Any] = {"shard": cursor.shard, "schedule_id": cursor.schedule_id, "origin": Origin.MANUAL}
    return a_request(await request_id(store), cursor.job_id, **{**known, **fields})


async def run_by_hand(store: Store, cursor: Cursor, **fields: object) -> Enqueued | None:
    """Trigger a schedule by hand."""
    return await store.trigger_schedule(await manual(store, cursor, **fields))


class TestManualRuns(StoreContract):
    """What a run by hand is."""

    async def test_a_run_by_hand_replaces_what_waits_for_another_attempt_at_once(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.REPLACE))
        retry_us = await a.now_us() + 60 * SECOND_US
        await a.settle([a_settlement(first, ExecutionState.RETRY_WAIT, due_us=retry_us)])
        second = await run_by_hand(a, await cursor_of(a))
        assert second is not None
        assert await state_of(a, first.key) is ExecutionState.CANCELLED
        assert await ready_keys(a) == [second.key]

    async def test_a_run_by_hand_is_an_execution_of_the_schedule(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        cursor = await scheduled(a, in_us=600 * SECOND_US)
        before_us = await a.now_us()
        answer = await run_by_hand(a, cursor, payload=b"\x00own", content_type="x/y", priority=9)
        assert answer is not None
        assert answer.created
        assert answer.key[:2] == (cursor.shard, cursor.schedule_id)
        # I1: only the planner writes parts from 0 on.
        assert answer.key.part < 0
        view = await execution_of(b, answer.key)
        assert (view.state, view.origin, view.priority) == (ExecutionState.READY, Origin.MANUAL, 9)
        assert (view.payload, view.content_type) == (b"\x00own", "x/y")
        assert before_us <= view.due_us <= await b.now_us()
        assert (await ready_entry(b, answer.key)).payload == b"\x00own"
        assert (await cursor_of(b)).fire_us == cursor.fire_us

    async def test_a_replay_keeps_its_nominal_time_and_is_due_now(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        first = await fire(a, leases, cursor)
        await a.settle([a_settlement(first, ExecutionState.FAILED)])
        before_us = await a.now_us()
        answer = await run_by_hand(
            a, cursor, origin=Origin.REPLAY, fire_us=first.key.fire_us - SECOND_US, replay_of=first.key
        )
        assert answer is not None
        view = await execution_of(a, answer.key)
        assert answer.key.fire_us == first.key.fire_us - SECOND_US
        assert (view.origin, view.replay_of) == (Origin.REPLAY, first.key)
        assert view.due_us >= before_us

    async def test_the_same_request_is_the_same_run(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        keyed = await manual(a, cursor, key="k")
        plain = await manual(a, cursor, fire_us=cursor.fire_us)
        answer = await a.trigger_schedule(keyed)
        assert answer is not None
        assert await b.trigger_schedule(keyed) == Enqueued(key=answer.key, created=False)
        await a.settle([a_settlement(answer.key)])
        assert await b.trigger_schedule(keyed) == Enqueued(key=answer.key, created=False)
        first = await a.trigger_schedule(plain)
        assert first is not None
        assert await b.trigger_schedule(plain) == Enqueued(key=first.key, created=False)
        assert len(await executions(a)) == 2

    async def test_a_paused_schedule_runs_by_hand(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        cursor = await scheduled(a)
        await set_state(a, ScheduleState.PAUSED)
        answer = await run_by_hand(a, cursor)
        assert answer is not None
        assert await state_of(a, answer.key) is ExecutionState.READY

    async def test_what_is_not_there_cannot_be_run(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        cursor = await scheduled(a)
        wrong_shard = await manual(a, cursor, shard=(cursor.shard + 1) % a.shards)
        unknown = await manual(a, cursor, schedule_id=cursor.schedule_id + 1_000)
        deleted = await manual(a, cursor)
        await set_state(a, ScheduleState.DELETED)
        for request in (wrong_shard, unknown, deleted):
            with raises(NotFound):
                await a.trigger_schedule(request)
        assert await executions(a) == {}

    async def test_an_enqueue_makes_no_execution_of_a_schedule(self, harness: StoreHarness) -> None:
        """Goal: there is no way around the overlap policy."""
        a, _ = harness.clients
        cursor = await scheduled(a)
        with raises(InvalidValue):
            await a.enqueue([await manual(a, cursor)])
        assert await executions(a) == {}


class TestManualOverlap(StoreContract):
    """Runs by hand beside planned ones."""

    async def test_forbid_refuses_a_run_while_one_is_open(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        entry = await fire(a, leases, cursor)
        assert await run_by_hand(b, cursor) is None
        await a.settle([a_settlement(entry)])
        answer = await run_by_hand(b, cursor)
        assert answer is not None
        assert await run_by_hand(b, cursor) is None
        assert (await executions(a)).keys() == {entry.key, answer.key}

    async def test_forbid_leaves_out_a_fire_while_a_run_by_hand_is_open(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        answer = await run_by_hand(b, cursor)
        assert answer is not None
        assert await fire_next(a, leases) == ()
        assert len(await ledger_of(a, cursor)) == 1
        await a.settle([a_settlement(answer.key)])
        assert len(await fire_next(a, leases)) == 1

    async def test_a_plan_that_read_before_a_run_by_hand_loses(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        assert await run_by_hand(b, cursor) is not None
        assert (await a.commit_plan(a_plan(leases, cursor))).lost == (cursor.schedule_id,)

    async def test_a_run_by_hand_and_then_a_plan_at_one_moment_do_not_overlap(self, harness: StoreHarness) -> None:
        """Goal: the two can never both see nothing."""
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        request = await manual(a, cursor)
        answer, outcome = await harness.interleave(a.trigger_schedule(request), b.commit_plan(a_plan(leases, cursor)))
        assert (answer is not None) + len(outcome.entries) == 1
        assert len(await executions(a)) == 1

    async def test_a_plan_and_then_a_run_by_hand_at_one_moment_do_not_overlap(self, harness: StoreHarness) -> None:
        """Goal: the two can never both see nothing."""
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        request = await manual(a, cursor)
        outcome, answer = await harness.interleave(a.commit_plan(a_plan(leases, cursor)), b.trigger_schedule(request))
        assert (answer is not None) + len(outcome.entries) == 1
        assert len(await executions(a)) == 1

    async def test_two_runs_by_hand_at_one_moment_do_not_overlap(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        first, second = await manual(a, cursor), await manual(b, cursor)
        answers = await harness.interleave(a.trigger_schedule(first), b.trigger_schedule(second))
        assert [answer is not None for answer in answers] == [True, False]
        assert len(await executions(a)) == 1

    async def test_queue_one_lets_a_run_by_hand_wait(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.QUEUE_ONE)
        entry = await fire(a, leases, cursor)
        answer = await run_by_hand(b, cursor)
        assert answer is not None
        assert await state_of(a, answer.key) is ExecutionState.QUEUED
        assert await run_by_hand(b, cursor) is None
        assert await ready_keys(a) == []
        await a.settle([a_settlement(entry, releases=True)])
        assert (await ready_entry(a, answer.key)).flags & EntryFlag.RELEASES

    async def test_replace_asks_the_open_one_to_end_for_a_run_by_hand(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.REPLACE)
        entry = await fire(a, leases, cursor)
        first, second = await run_by_hand(b, cursor), await run_by_hand(b, cursor)
        assert first is not None
        assert second is not None
        states = await a.execution_states([entry.key, first.key, second.key])
        assert states == (ExecutionState.HELD, ExecutionState.CANCELLED, ExecutionState.QUEUED)
        assert await cancel_keys(a) == [entry.key]
        await a.settle([a_settlement(entry, ExecutionState.CANCELLED, releases=True)])
        assert await ready_keys(a) == [second.key]

    async def test_allow_lets_a_run_by_hand_go_beside_planned_ones(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.ALLOW)
        entry = await fire(a, leases, cursor)
        answer = await run_by_hand(b, cursor)
        assert answer is not None
        assert (await open_keys(a), await ready_keys(a)) == ([entry.key], [answer.key])
