"""Open entries: found, taken over, delivered, marked as running."""

from luciole import limits
from luciole.errors import InvalidValue
from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.job import Overlap
from luciole.model.outbox import Delivery, Running
from luciole.model.schedule import ScheduleState
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    TTL_US,
    StoreContract,
    enqueued,
    execution_of,
    fire,
    fire_next,
    job_id_of,
    lease_all,
    open_keys,
    raises,
    ready_entry,
    ready_keys,
    register,
    scheduled,
    set_state,
    shards_of,
    state_of,
)
from luciole.testing.factories import (
    EXECUTOR_A,
    EXECUTOR_B,
    NODE_A,
    NODE_B,
    a_job,
    a_request,
    a_schedule,
    a_settlement,
)


class TestReadyEntries(StoreContract):
    """What polling finds."""

    async def test_top_priority_comes_first_then_the_due_time(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        now_us = await a.now_us()
        segment = await a.take_ids(60)
        job_id = await job_id_of(a)
        requests = [
            a_request(segment.first + n, job_id, n % 2, priority=n % 10, fire_us=now_us - n * 37 % 50)
            for n in range(60)
        ]
        await a.enqueue(requests)
        batch = await b.ready_entries([1, 0], await b.now_us(), limit=100)
        order = [(entry.key.shard, -entry.priority, entry.due_us, entry.key) for entry in batch.entries]
        assert len(order) == 60
        assert order == sorted(order)

    async def test_a_limit_bounds_each_shard_and_keeps_the_top(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for shard in (0, 1):
            for priority in (3, 9, 1, 5):
                await enqueued(a, shard, priority=priority)
        batch = await a.ready_entries([0, 1], await a.now_us(), limit=3)
        assert [(entry.key.shard, entry.priority) for entry in batch.entries] == [
            (0, 9), (0, 5), (0, 3), (1, 9), (1, 5), (1, 3),
        ]  # fmt: skip

    async def test_what_is_not_due_is_announced(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        now_us = await a.now_us()
        await enqueued(a, 0, fire_us=now_us + 900 * SECOND_US)
        await enqueued(a, 0, fire_us=now_us + 700 * SECOND_US)
        await enqueued(a, 1, fire_us=now_us + 500 * SECOND_US)
        batch = await a.ready_entries([0], now_us, limit=10)
        assert (batch.entries, batch.next_due_us) == ((), now_us + 700 * SECOND_US)
        found = await a.ready_entries([0, 1], now_us + 900 * SECOND_US, limit=10)
        assert (len(found.entries), found.next_due_us) == (3, None)

    async def test_entries_in_memory_and_waiting_ones_are_not_found(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        await fire_next(a, leases)
        parked = await enqueued(a, 1)
        await a.settle([a_settlement(parked, ExecutionState.PARKED)])
        assert await ready_keys(a) == []
        assert await open_keys(a) == [entry.key]

    async def test_what_is_asked_to_end_is_told_apart(self, harness: StoreHarness) -> None:
        """Goal: what somebody cancelled is never delivered, and its holder hears of it."""
        a, b = harness.clients
        leases = await lease_all(a)
        held = await fire(a, leases, await scheduled(a))
        ready, other = await enqueued(a, held.key.shard), await enqueued(a, held.key.shard)
        await b.request_cancel([ready.key, held.key])
        batch = await a.ready_entries([held.key.shard], await a.now_us(), limit=10)
        assert batch.entries == (other,)
        assert batch.cancels == tuple(
            entry._replace(cancel=True) for entry in sorted((held, ready), key=lambda entry: entry.key)
        )

    async def test_cancels_are_bounded_by_the_limit(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entries = [await enqueued(a, shard) for shard in (0, 0, 0, 1)]
        keys = sorted(entry.key for entry in entries)
        await a.request_cancel(keys)
        batch = await a.ready_entries([0, 1], await a.now_us(), limit=2)
        assert [entry.key for entry in batch.cancels] == [keys[0], keys[1], keys[3]]

    async def test_a_limit_out_of_bounds_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for shard, limit in ((0, 0), (0, limits.HELD_MAX + 1), (a.shards, 1), (-1, 1)):
            with raises(InvalidValue):
                await a.ready_entries([shard], 0, limit=limit)
            with raises(InvalidValue):
                await a.open_entries([shard], after=None, limit=limit)


class TestOpenEntries(StoreContract):
    """What a new holder loads."""

    async def test_pages_come_in_key_order(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        for n in range(12):
            await fire(a, leases, await scheduled(a, f"s{n}"))
        everything = await open_keys(a)
        pages = []
        after = None
        while page := await b.open_entries(shards_of(b), after=after, limit=5):
            pages.append(len(page))
            after = page[-1].key
        assert pages == [5, 5, 2]
        assert everything == sorted(everything)
        assert len(everything) == 12
        assert await open_keys(b) == everything

    async def test_only_the_shards_asked_for_come_back(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        entries = [await fire(a, leases, await scheduled(a, f"s{n}")) for n in range(12)]
        found = await a.open_entries([2, 0, 2], after=None, limit=100)
        assert list(found) == sorted((entry for entry in entries if entry.key.shard in {0, 2}), key=lambda e: e.key)

    async def test_a_ready_entry_is_open_once_its_delivery_is_recorded(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        entry = await enqueued(a)
        before = await open_keys(b)
        delivery = Delivery(entry.key, 1, EXECUTOR_A, await a.now_us())
        await a.record_deliveries(leases, [delivery])
        assert before == []
        assert await b.open_entries([0], after=None, limit=10) == (entry._replace(delivered=True),)


class TestDeliveries(StoreContract):
    """Deliveries that must be recorded before they are sent."""

    async def test_a_delivery_is_recorded_for_one_executor(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        entry = await enqueued(a)
        now_us = await a.now_us()
        mine, other = (Delivery(entry.key, 1, executor, now_us) for executor in (EXECUTOR_A, EXECUTOR_B))
        assert await a.record_deliveries(leases, [mine]) == (entry.key,)
        assert await a.record_deliveries(leases, [mine, mine, other]) == (entry.key,)
        # I6: one token goes to one session only.
        assert await a.record_deliveries(leases, [other]) == ()
        assert (await ready_entry(b, entry.key)).delivered

    async def test_recording_is_guarded(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entry, kept = await enqueued(a, 0), await enqueued(a, 1)
        stale = await a.acquire_leases(NODE_A, [0], ttl_us=10 * SECOND_US)
        await harness.advance(10 * SECOND_US)
        await b.acquire_leases(NODE_B, [0], ttl_us=TTL_US)
        fresh = await a.acquire_leases(NODE_A, [1], ttl_us=TTL_US)
        now_us = await a.now_us()
        deliveries = [Delivery(key, 1, EXECUTOR_A, now_us) for key in (entry.key, kept.key)]
        # I3: a holder that lost its shard delivers nothing of it.
        assert await a.record_deliveries([*stale, *fresh], deliveries) == (kept.key,)
        assert await a.record_deliveries([], deliveries) == ()
        assert not (await ready_entry(b, entry.key)).delivered

    async def test_only_what_may_run_is_recorded(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cancelled, parked, gone, old = [await enqueued(a) for _ in range(4)]
        waiting_for = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        waiting_us = waiting_for.key.fire_us + 60 * SECOND_US
        await fire_next(a, leases)
        await b.request_cancel([cancelled.key])
        await b.settle(
            [
                a_settlement(parked, ExecutionState.PARKED),
                a_settlement(gone),
                a_settlement(old, ExecutionState.RETRY_WAIT),
            ]
        )
        keys = [cancelled.key, gone.key, old.key, waiting_for.key._replace(fire_us=waiting_us)]
        now_us = await a.now_us()
        deliveries = [Delivery(key, 1, EXECUTOR_A, now_us) for key in keys]
        deliveries.append(Delivery(parked.key, 2, EXECUTOR_A, now_us))
        current = [Delivery(old.key, 2, EXECUTOR_A, now_us), Delivery(waiting_for.key, 1, EXECUTOR_A, now_us)]
        assert await a.record_deliveries(leases, deliveries) == ()
        assert await a.record_deliveries(leases, current) == (old.key, waiting_for.key)

    async def test_a_new_attempt_is_recorded_anew(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        entry = await enqueued(a)
        now_us = await a.now_us()
        await a.record_deliveries(leases, [Delivery(entry.key, 1, EXECUTOR_A, now_us)])
        await a.settle([a_settlement(entry, ExecutionState.READY, counts_loss=True)])
        assert await open_keys(a) == []
        assert await a.record_deliveries(leases, [Delivery(entry.key, 2, EXECUTOR_B, now_us)]) == (entry.key,)

    async def test_a_batch_over_its_bound_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        delivery = Delivery((await enqueued(a)).key, 1, EXECUTOR_A, 0)
        with raises(InvalidValue):
            await a.record_deliveries(leases, [delivery] * (limits.DELIVER_BATCH_MAX + 1))


class TestWithdrawals(StoreContract):
    """What a holder asks before it sends what was planned ahead."""

    async def test_what_is_withdrawn_is_counted_for_its_shard(self, harness: StoreHarness) -> None:
        """Goal: a holder learns by one question that something it planned ahead is gone, whoever withdrew it."""
        a, b = harness.clients
        leases = await lease_all(a)
        names = ("cancelled", "paused", "edited")
        ahead = [await fire(a, leases, await scheduled(a, name, in_us=60 * SECOND_US)) for name in names]
        before = (await a.withdrawals(shards_of(a))).revisions
        expected = dict(before)
        assert set(before) == set(shards_of(a))
        await b.request_cancel([ahead[0].key])
        expected[ahead[0].key.shard] += 1
        assert (await a.withdrawals(shards_of(a))).revisions == expected
        await set_state(b, ScheduleState.PAUSED, "paused")
        expected[ahead[1].key.shard] += 1
        assert (await a.withdrawals(shards_of(a))).revisions == expected
        now_us = await a.now_us()
        await register(b, a_schedule("edited", fire_us=now_us + 120 * SECOND_US, job=a_job(payload=b"new")))
        expected[ahead[2].key.shard] += 1
        assert (await a.withdrawals(shards_of(a))).revisions == expected

    async def test_nothing_else_is_counted(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        due = await fire(a, leases, await scheduled(a))
        later = await enqueued(a, delay_us=60 * SECOND_US)
        before = await a.withdrawals([due.key.shard, later.key.shard])
        await b.request_cancel([due.key, later.key])
        await set_state(b, ScheduleState.PAUSED)
        after = await a.withdrawals([due.key.shard, later.key.shard])
        assert after.revisions == before.revisions
        assert before.now_us <= after.now_us <= await a.now_us()
        with raises(InvalidValue):
            await a.withdrawals([a.shards])


class TestRunning(StoreContract):
    """The batched heartbeat of attempts."""

    async def test_a_heartbeat_marks_attempts_as_running(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        held, ready = await fire(a, leases, await scheduled(a)), await enqueued(a)
        now_us = await a.now_us()
        marks = [Running(held.key, 1, EXECUTOR_A, now_us, "1 of 3 \x00"), Running(ready.key, 1, EXECUTOR_A, now_us)]
        for _ in range(2):
            assert await a.mark_running(marks) == ()
        assert await a.mark_running([marks[0]._replace(progress=None)]) == ()
        view = await execution_of(b, held.key)
        assert (view.state, view.started_us, view.executor_id) == (ExecutionState.RUNNING, now_us, EXECUTOR_A)
        assert (view.progress, (await execution_of(b, ready.key)).progress) == ("1 of 3 \ufffd", None)
        assert await state_of(b, ready.key) is ExecutionState.RUNNING

    async def test_what_was_asked_to_end_is_answered(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entry, other = await enqueued(a), await enqueued(a)
        now_us = await a.now_us()
        await b.request_cancel([entry.key])
        marks = [Running(other.key, 1, EXECUTOR_A, now_us), Running(entry.key, 1, EXECUTOR_A, now_us)]
        assert await a.mark_running(marks) == (entry.key,)
        assert await state_of(a, entry.key) is ExecutionState.RUNNING

    async def test_an_attempt_that_is_not_the_current_one_is_told_to_end(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        retried, ended, fine = [await enqueued(a) for _ in range(3)]
        await a.settle([a_settlement(retried, ExecutionState.RETRY_WAIT), a_settlement(ended)])
        now_us = await a.now_us()
        marks = [Running(entry.key, 1, EXECUTOR_A, now_us) for entry in (retried, ended, fine)]
        unknown = Running(fine.key._replace(fire_us=fine.key.fire_us + 1), 1, EXECUTOR_A, now_us)
        assert await a.mark_running([*marks, unknown, unknown]) == (retried.key, ended.key, unknown.key)
        # I5: neither an old token nor a late word changes anything.
        assert await state_of(a, retried.key) is ExecutionState.RETRY_WAIT
        assert await state_of(a, ended.key) is ExecutionState.SUCCEEDED

    async def test_an_attempt_runs_in_one_executor(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        recorded, marked = await enqueued(a), await enqueued(a)
        now_us = await a.now_us()
        await a.record_deliveries(leases, [Delivery(recorded.key, 1, EXECUTOR_A, now_us)])
        await a.mark_running([Running(marked.key, 1, EXECUTOR_A, now_us)])
        intruders = [Running(entry.key, 1, EXECUTOR_B, now_us) for entry in (recorded, marked)]
        assert await a.mark_running(intruders) == (recorded.key, marked.key)
        assert await a.record_deliveries(leases, [Delivery(marked.key, 1, EXECUTOR_B, now_us)]) == ()
        assert (await execution_of(a, marked.key)).executor_id == EXECUTOR_A
        assert await state_of(a, recorded.key) is ExecutionState.READY

    async def test_a_parked_or_waiting_execution_does_not_run(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        parked = await enqueued(a)
        await a.settle([a_settlement(parked, ExecutionState.PARKED)])
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        await fire_next(a, leases)
        waiting = first.key._replace(fire_us=first.key.fire_us + 60 * SECOND_US)
        marks = [Running(parked.key, 2, EXECUTOR_A, 0), Running(waiting, 1, EXECUTOR_A, 0)]
        assert await a.mark_running(marks) == (parked.key, waiting)
        assert await a.execution_states([parked.key, waiting]) == (ExecutionState.PARKED, ExecutionState.QUEUED)

    async def test_a_batch_over_its_bound_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        mark = Running((await enqueued(a)).key, 1, EXECUTOR_A, 0)
        with raises(InvalidValue):
            await a.mark_running([mark] * (limits.REPORT_BATCH_MAX + 1))
        assert await state_of(a, mark.key) is ExecutionState.READY
