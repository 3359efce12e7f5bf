"""Executions by request, and their end."""

import asyncio
from dataclasses import replace
from typing import Any

from luciole import limits
from luciole.errors import InvalidValue, LucioleError, PayloadTooLarge
from luciole.limits import SECOND_US
from luciole.model.execution import Enqueued, ExecutionState, Origin
from luciole.model.ids import ExecutionKey, parse_execution_key
from luciole.model.job import EntryFlag, Overlap
from luciole.model.outbox import Delivery, Settled
from luciole.model.routing import ROUTE_MASK, labels_mark, route_of
from luciole.store.reads import TROUBLED_STATES, ExecutionFilter
from luciole.store.spi import Store
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    StoreContract,
    cancel_keys,
    cursor_of,
    enqueued,
    execution_of,
    executions,
    fire,
    fire_next,
    job_id_of,
    lease_all,
    open_keys,
    raises,
    ready_entry,
    ready_keys,
    request_id,
    scheduled,
    shards_of,
    state_of,
)
from luciole.testing.factories import EXECUTOR_A, a_job, a_request, a_settlement


class TestEnqueue(StoreContract):
    """Requests."""

    async def test_a_request_becomes_an_execution_with_a_ready_entry(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        job_id = await job_id_of(a, a_job(payload=b"job's", content_type="job/type", priority=3))
        number = await request_id(a)
        before_us = await a.now_us()
        parent = ExecutionKey(0, 1, 2, -3)
        request = a_request(
            number,
            job_id,
            2,
            payload=b"own",
            content_type="own/type",
            priority=8,
            flags=int(EntryFlag.AT_MOST_ONCE),
            labels=(("gpu", "a\u20ac"),),
            deadline_us=before_us + 900 * SECOND_US,
            origin=Origin.BACKFILL,
            parent=parent,
        )
        (answer,) = await a.enqueue([request])
        after_us = await a.now_us()
        key = answer.key
        assert (answer.created, key.shard, key.schedule_id, key.part) == (True, 2, 0, -number)
        assert before_us <= key.fire_us <= after_us
        view = await execution_of(b, key)
        assert (view.state, view.attempt, view.origin, view.parent) == (
            ExecutionState.READY,
            1,
            Origin.BACKFILL,
            parent,
        )
        assert (view.payload, view.content_type, view.priority) == (b"own", "own/type", 8)
        assert (view.labels, view.deadline_us) == (request.labels, request.deadline_us)
        assert (view.handler, view.namespace, view.due_us) == ("report", "default", key.fire_us)
        entry = await ready_entry(b, key)
        assert (entry.payload, entry.content_type, entry.priority) == (b"own", "own/type", 8)
        assert (entry.labels, entry.deadline_us) == (request.labels, request.deadline_us)
        assert (entry.flags, entry.job_id, entry.attempt) == (EntryFlag.AT_MOST_ONCE, job_id, 1)

    async def test_a_request_without_a_payload_uses_the_job_s(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        job_id = await job_id_of(a, a_job(payload=b"job's", content_type="job/type"))
        (answer,) = await a.enqueue([a_request(await request_id(a), job_id)])
        entry, view = await ready_entry(b, answer.key), await execution_of(b, answer.key)
        assert (entry.payload, entry.content_type, entry.labels, entry.deadline_us) == (None, None, None, None)
        assert (view.payload, view.content_type) == (b"job's", "job/type")

    async def test_a_delay_counts_from_the_store_s_clock(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        before_us = await a.now_us()
        entry = await enqueued(a, delay_us=60 * SECOND_US)
        assert before_us <= entry.due_us - 60 * SECOND_US <= await a.now_us()
        assert entry.key.fire_us == entry.due_us
        batch = await a.ready_entries([0], before_us + 59 * SECOND_US, limit=10)
        assert (batch.entries, batch.next_due_us) == ((), entry.due_us)

    async def test_a_fire_time_in_the_past_is_due_now(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        now_us = await a.now_us()
        late, early = await enqueued(a, fire_us=now_us - 9), await enqueued(a, fire_us=now_us + 900 * SECOND_US)
        assert (late.key.fire_us, early.key.fire_us) == (now_us - 9, now_us + 900 * SECOND_US)
        assert now_us <= late.due_us <= await a.now_us()
        assert early.due_us == early.key.fire_us

    async def test_a_request_key_names_one_execution(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        job_id = await job_id_of(a)
        first = a_request(await request_id(a), job_id, key="order-42")
        (answer,) = await a.enqueue([first])
        again = a_request(await request_id(a), job_id, key="order-42", payload=b"other")
        elsewhere = a_request(await request_id(a), job_id, key="order-42", namespace="other")
        known, other = await b.enqueue([again, elsewhere])
        assert known == Enqueued(key=answer.key, created=False)
        assert other.created
        assert await b.find_request("default", "order-42") == answer.key
        assert await b.find_request("other", "order-42") == other.key
        assert await b.find_request("other", "order-43") is None
        assert (await execution_of(b, answer.key)).request_key == "order-42"
        assert len(await executions(b)) == 2

    async def test_a_request_key_outlives_the_end_of_its_execution(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry = await enqueued(a, key="k")
        await a.settle([a_settlement(entry)])
        (again,) = await a.enqueue([a_request(await request_id(a), entry.job_id, key="k")])
        assert again == Enqueued(key=entry.key, created=False)
        assert await ready_keys(a) == []

    async def test_a_request_key_that_comes_twice_in_a_batch_is_one_execution(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        job_id = await job_id_of(a)
        segment = await a.take_ids(3)
        keys = ("k", None, "k")
        answers = await a.enqueue([a_request(segment.first + n, job_id, key=key) for n, key in enumerate(keys)])
        assert [answer.created for answer in answers] == [True, True, False]
        assert answers[2].key == answers[0].key != answers[1].key
        assert len(await executions(a)) == 2

    async def test_two_clients_that_race_for_a_request_key_agree(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        job_id = await job_id_of(a)
        segment = await a.take_ids(20)
        requests = [a_request(segment.first + n, job_id, key=f"k{n % 10}") for n in range(20)]
        of_a, of_b = await asyncio.gather(a.enqueue(requests[:10]), b.enqueue([*reversed(requests[10:])]))
        pairs = [*zip(of_a, reversed(of_b), strict=True)]
        assert all(one.key == two.key for one, two in pairs)
        assert all(one.created != two.created for one, two in pairs)
        assert len(await executions(a)) == 10

    async def test_interleaved_requests_of_one_key_agree(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        job_id = await job_id_of(a)
        first, second = [a_request(await request_id(a), job_id, key="k") for _ in range(2)]
        (one,), (two,) = await harness.interleave(a.enqueue([first]), b.enqueue([second]))
        assert (one.created, two) == (True, Enqueued(key=one.key, created=False))

    async def test_the_same_request_at_the_same_time_is_the_same_execution(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        request = a_request(await request_id(a), await job_id_of(a), fire_us=await a.now_us())
        (answer,) = await a.enqueue([request])
        assert await b.enqueue([request, request]) == (Enqueued(key=answer.key, created=False),) * 2
        await a.settle([a_settlement(answer.key)])
        assert await b.enqueue([request]) == (Enqueued(key=answer.key, created=False),)
        assert len(await executions(a)) == 1

    async def test_requests_over_their_bounds_are_refused_as_a_whole(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        good = a_request(await request_id(a), await job_id_of(a))
        bad: list[tuple[dict[str, Any], type[LucioleError]]] = [
            ({"payload": b"\x00" * (limits.PAYLOAD_BYTES_MAX + 1)}, PayloadTooLarge),
            ({"key": "k" * (limits.KEY_LENGTH_MAX + 1)}, InvalidValue),
            ({"key": "nul\x00"}, InvalidValue),
            ({"key": "half \ud800"}, InvalidValue),
            ({"priority": limits.PRIORITY_MAX + 1}, InvalidValue),
            ({"labels": (("a", "b"),) * (limits.LABELS_MAX + 1)}, InvalidValue),
            ({"shard": a.shards}, InvalidValue),
            ({"request_id": 0}, InvalidValue),
            ({"delay_us": -1}, InvalidValue),
            ({"route": -1}, InvalidValue),
            ({"route": ROUTE_MASK + 1}, InvalidValue),
        ]
        for fields, error in bad:
            request = a_request(**{"request_id": good.request_id + 1, "job_id": good.job_id, **fields})
            with raises(error):
                await a.enqueue([good, request])
        with raises(InvalidValue):
            await a.enqueue([good] * (limits.ENQUEUE_BATCH_MAX + 1))
        assert await executions(a) == {}

    async def test_a_request_that_tells_its_route_is_stored_like_any_other(self, harness: StoreHarness) -> None:
        """Goal: whether the caller or the store looks at the job can't be seen afterwards (nor which way is taken)."""
        a, b = harness.clients
        no_key = ExecutionKey(0, 0, 0, 0)
        job = a_job(priority=3)
        job_id = await job_id_of(a, job)
        await harness.stop_clock(await a.now_us())
        for labels in ((), (("gpu", "yes"),)):
            alike = []
            for route in (0, route_of(job.route_id(), labels_mark(labels))):
                segment = await a.take_ids(3)
                one, *more = [
                    a_request(segment.first + n, job_id, payload=b"{}", delay_us=SECOND_US, labels=labels, route=route)
                    for n in range(3)
                ]
                for answer in (*await a.enqueue([one]), *await a.enqueue(more)):
                    entry, view = await ready_entry(b, answer.key), await execution_of(b, answer.key)
                    alike.append((entry._replace(key=no_key), replace(view, key=no_key)))
            assert alike == [alike[0]] * 6

    async def test_of_a_batch_only_what_is_not_there_is_made(self, harness: StoreHarness) -> None:
        """Goal: requests that are taken to be new, and of which some are not, come to one execution each (I1)."""
        a, b = harness.clients
        job = a_job()
        job_id, segment = await job_id_of(a, job), await a.take_ids(4)
        one, two, three, four = [
            a_request(segment.first + n, job_id, n % 2, payload=b"{}", route=job.route_id()) for n in range(4)
        ]
        await harness.stop_clock(await a.now_us())
        first = await a.enqueue([two, three])
        again = await b.enqueue([one, two, three, four])
        twice = await a.enqueue([four, four])
        assert [answer.created for answer in (*first, *again, *twice)] == [True] * 3 + [
            False,
            False,
            True,
            False,
            False,
        ]
        assert (again[1].key, again[2].key) == (first[0].key, first[1].key)
        assert twice[0].key == twice[1].key == again[3].key
        assert len(await ready_keys(a)) == len(await executions(a)) == 4

    async def test_a_full_batch_answers_in_order(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        most = limits.ENQUEUE_BATCH_MAX
        job_id, segment = await job_id_of(a), await a.take_ids(most)
        payload = b"\x00" * 1_000
        answers = await a.enqueue(
            [a_request(segment.first + n, job_id, n % a.shards, payload=payload) for n in range(most)]
        )
        assert [-answer.key.part - segment.first for answer in answers] == [*range(most)]
        assert len(await ready_keys(a)) == most

    async def test_public_ids_lead_back_to_executions(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entry = await enqueued(a, 3)
        assert (await execution_of(b, parse_execution_key(entry.key.text()))).key == entry.key


class TestCancel(StoreContract):
    """Requests to end."""

    async def test_an_open_execution_is_marked_and_goes_on(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        held, ready = await fire(a, leases, await scheduled(a)), await enqueued(a)
        for _ in range(2):
            states = await b.request_cancel([held.key, ready.key])
            assert states == (ExecutionState.HELD, ExecutionState.READY)
        assert sorted(await cancel_keys(a)) == sorted([held.key, ready.key])
        assert (await execution_of(a, held.key)).cancel_requested
        cancelled = a_settlement(held, ExecutionState.CANCELLED, started_us=None)
        assert await a.settle([cancelled]) == (Settled.SETTLED,)
        assert await cancel_keys(a) == [ready.key]

    async def test_a_cancelled_execution_is_not_delivered(self, harness: StoreHarness) -> None:
        """Goal: cancel, restart, and it still does not run."""
        a, b = harness.clients
        leases = await lease_all(a)
        entry = await enqueued(a)
        await b.request_cancel([entry.key])
        assert await ready_keys(a) == []
        delivery = Delivery(entry.key, 1, EXECUTOR_A, await a.now_us())
        assert await a.record_deliveries(leases, [delivery]) == ()

    async def test_waiting_and_parked_executions_end_at_once(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        await fire_next(a, leases)
        waiting = first.key._replace(fire_us=first.key.fire_us + 60 * SECOND_US)
        parked = await enqueued(a)
        await a.settle([a_settlement(parked, ExecutionState.PARKED)])
        before_us = await a.now_us()
        for _ in range(2):
            assert await b.request_cancel([waiting, parked.key]) == (ExecutionState.CANCELLED,) * 2
        view = await execution_of(a, waiting)
        assert view.finished_us is not None
        assert before_us <= view.finished_us <= await a.now_us()
        assert (view.cancel_requested, view.attempts) == (False, ())
        assert await cancel_keys(a) == []
        assert await a.settle([a_settlement(first, releases=True)]) == (Settled.SETTLED,)
        assert (await ready_keys(a), await open_keys(a)) == ([], [])

    async def test_what_is_not_due_yet_ends_at_once(self, harness: StoreHarness) -> None:
        """Goal: a cancel takes effect in its own transaction, whoever asks, while nobody can be running it.

        Method: one by request, one that waits for its second attempt, one that is planned ahead; each beside one that
        may be under way.
        """
        a, b = harness.clients
        leases = await lease_all(a)
        ahead = await fire(a, leases, await scheduled(a, in_us=60 * SECOND_US))
        later = await enqueued(a, delay_us=3_600 * SECOND_US)
        tried, soon = await enqueued(a), await enqueued(a, delay_us=limits.CANCEL_MARGIN_US // 2)
        retry_us = await a.now_us() + 60 * SECOND_US
        await a.settle([a_settlement(tried, ExecutionState.RETRY_WAIT, due_us=retry_us)])
        known = await enqueued(a, delay_us=60 * SECOND_US)
        await a.record_deliveries(leases, [Delivery(known.key, 1, EXECUTOR_A, await a.now_us())])
        before_us = await a.now_us()
        keys = [ahead.key, later.key, tried.key, soon.key, known.key]
        ended = (ExecutionState.CANCELLED,) * 3
        for _ in range(2):
            assert await b.request_cancel(keys) == (*ended, ExecutionState.READY, ExecutionState.READY)
        for key in keys[:3]:
            view = await execution_of(a, key)
            assert view.finished_us is not None
            assert before_us <= view.finished_us <= await a.now_us()
        # Whoever has it in memory is not allowed to send it.
        deliveries = [Delivery(ahead.key, 1, EXECUTOR_A, before_us), Delivery(tried.key, 2, EXECUTOR_A, before_us)]
        assert await a.record_deliveries(leases, deliveries) == ()
        assert sorted(await cancel_keys(a)) == sorted([soon.key, known.key])
        assert await open_keys(a) == [known.key]

    async def test_the_end_of_what_is_not_due_releases_its_successor(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        await fire_next(a, leases)
        retry_us = await a.now_us() + 60 * SECOND_US
        await a.settle([a_settlement(first, ExecutionState.RETRY_WAIT, due_us=retry_us)])
        revision = (await cursor_of(a)).revision
        assert await a.request_cancel([first.key]) == (ExecutionState.CANCELLED,)
        assert [key.fire_us for key in await ready_keys(a)] == [first.key.fire_us + 60 * SECOND_US]
        # A plan at the same moment can't miss it.
        assert (await cursor_of(a)).revision == revision + 1

    async def test_the_end_of_a_parked_execution_releases_its_successor(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        await fire_next(a, leases)
        await a.settle([a_settlement(first, ExecutionState.PARKED, releases=True)])
        assert await ready_keys(a) == []
        await a.request_cancel([first.key])
        assert [key.fire_us for key in await ready_keys(a)] == [first.key.fire_us + 60 * SECOND_US]

    async def test_ended_and_unknown_executions_answer_their_state(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        done, failed = await enqueued(a), await enqueued(a)
        await a.settle([a_settlement(done), a_settlement(failed, ExecutionState.FAILED)])
        unknown = done.key._replace(fire_us=done.key.fire_us + 1)
        states = await a.request_cancel([done.key, unknown, failed.key, done.key])
        assert states == (ExecutionState.SUCCEEDED, None, ExecutionState.FAILED, ExecutionState.SUCCEEDED)
        # I5: a terminal execution never changes.
        assert await state_of(a, done.key) is ExecutionState.SUCCEEDED

    async def test_a_report_after_the_end_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        parked = await enqueued(a)
        await a.settle([a_settlement(parked, ExecutionState.PARKED)])
        await a.request_cancel([parked.key])
        assert await a.settle([a_settlement(parked, attempt=2)]) == (Settled.REFUSED,)
        assert await state_of(a, parked.key) is ExecutionState.CANCELLED

    async def test_a_batch_over_its_bound_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry = await enqueued(a)
        for verb in (a.request_cancel, a.unpark, a.execution_states):
            with raises(InvalidValue):
                await verb([entry.key] * (limits.PAGE_MAX + 1))
        assert await cancel_keys(a) == []


class TestUnpark(StoreContract):
    """Repair (I7)."""

    async def test_a_parked_execution_is_kept_and_can_be_made_ready(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entry = await enqueued(a, payload=b"\x00")
        await a.settle([a_settlement(entry, ExecutionState.PARKED, error="no handler")])
        view = await execution_of(b, entry.key)
        # I7: what nobody can run is kept, visible, and repairable.
        assert (view.state, view.error, view.payload) == (ExecutionState.PARKED, "no handler", b"\x00")
        await harness.advance(600 * SECOND_US)
        before_us = await b.now_us()
        assert await b.unpark([entry.key, entry.key]) == 1
        assert await b.unpark([entry.key]) == 0
        repaired = await ready_entry(a, entry.key)
        assert (repaired.attempt, repaired.payload, repaired.failures) == (2, b"\x00", 0)
        assert before_us <= repaired.due_us <= await a.now_us()
        assert (await execution_of(a, entry.key)).error is None
        assert await a.settle([a_settlement(repaired)]) == (Settled.SETTLED,)

    async def test_a_parked_execution_may_end_by_a_late_word(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        ends = [ExecutionState.SUCCEEDED, ExecutionState.CANCELLED, ExecutionState.FAILED, ExecutionState.READY]
        entries = [await enqueued(a) for _ in ends]
        await a.settle([a_settlement(entry, ExecutionState.PARKED) for entry in entries])
        late = [a_settlement(entry, state, attempt=2) for entry, state in zip(entries, ends, strict=True)]
        assert await b.settle(late) == (Settled.SETTLED,) * 4
        assert (await a.backlog()).parked == 0
        page = await a.list_executions(ExecutionFilter(states=TROUBLED_STATES))
        assert [view.key for view in page.rows] == [entries[2].key]

    async def test_only_parked_executions_are_unparked(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        held, ready, done = await fire(a, leases, await scheduled(a)), await enqueued(a), await enqueued(a)
        await a.settle([a_settlement(done)])
        unknown = done.key._replace(fire_us=done.key.fire_us + 1)
        assert await a.unpark([held.key, ready.key, done.key, unknown]) == 0
        states = await a.execution_states([held.key, ready.key, done.key])
        assert states == (ExecutionState.HELD, ExecutionState.READY, ExecutionState.SUCCEEDED)


async def prune_all(store: Store, before_us: int, *, limit: int) -> list[ExecutionKey]:
    """Walk every shard to its end; return what was deleted."""
    deleted: list[ExecutionKey] = []
    for shard in shards_of(store):
        after = None
        while True:
            page = await store.prune(shard, before_us, after=after, limit=limit)
            assert len(page.rows) <= limit
            deleted += page.rows
            if page.next is None:
                break
            after = parse_execution_key(page.next)
    return deleted


class TestPrune(StoreContract):
    """Retention."""

    async def test_what_ended_before_an_instant_is_deleted_in_bounded_steps(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        now_us = await a.now_us()
        entries = [await enqueued(a, n % 2, key=f"k{n}") for n in range(20)]
        states = [ExecutionState.SUCCEEDED, ExecutionState.FAILED, ExecutionState.CANCELLED, ExecutionState.LOST]
        await a.settle(
            [a_settlement(e, states[n % 4], finished_us=now_us + n * SECOND_US) for n, e in enumerate(entries)]
        )
        deleted = await prune_all(b, now_us + 15 * SECOND_US, limit=3)
        assert sorted(deleted) == sorted(entry.key for entry in entries[:15])
        assert (await executions(a)).keys() == {entry.key for entry in entries[15:]}
        assert [await a.find_request("default", f"k{n}") for n in (0, 14)] == [None, None]
        assert await a.find_request("default", "k15") == entries[15].key
        assert await prune_all(b, now_us + 15 * SECOND_US, limit=3) == []

    async def test_open_executions_stay_whatever_their_age(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        kept = [await enqueued(a), await enqueued(a), await fire(a, leases, await scheduled(a))]
        await a.settle([a_settlement(kept[0], ExecutionState.PARKED), a_settlement(kept[1], ExecutionState.RETRY_WAIT)])
        await harness.advance(3_600 * SECOND_US)
        assert await prune_all(a, await a.now_us(), limit=10) == []
        assert (await executions(a)).keys() == {entry.key for entry in kept}

    async def test_a_pruned_request_key_is_free_again(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry = await enqueued(a, key="k")
        await a.settle([a_settlement(entry)])
        await prune_all(a, await a.now_us() + 3_600 * SECOND_US, limit=10)
        (again,) = await a.enqueue([a_request(await request_id(a), entry.job_id, key="k")])
        assert again.created

    async def test_a_report_of_a_pruned_execution_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry = await enqueued(a)
        await a.settle([a_settlement(entry, ExecutionState.FAILED)])
        await prune_all(a, await a.now_us() + 3_600 * SECOND_US, limit=10)
        assert await a.settle([a_settlement(entry, ExecutionState.FAILED)]) == (Settled.REFUSED,)
        assert await a.get_execution(entry.key) is None

    async def test_ledger_rows_go_with_the_shard_s_end(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a, overlap=Overlap.FORBID)
        entry = await fire(a, leases, cursor)
        await fire_next(a, leases)
        await a.settle([a_settlement(entry)])
        (entry,) = await fire_next(a, leases)
        await fire_next(a, leases)
        minute_us = 60 * SECOND_US
        await prune_all(a, cursor.fire_us + 3 * minute_us, limit=10)
        rows = await a.list_ledger(cursor.schedule_id, cursor.shard, limit=10)
        assert [row.first_us for row in rows] == [cursor.fire_us + 3 * minute_us]

    async def test_a_step_over_its_bound_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for shard, limit in ((0, 0), (0, limits.PRUNE_BATCH_MAX + 1), (a.shards, 1), (-1, 1)):
            with raises(InvalidValue):
                await a.prune(shard, 0, after=None, limit=limit)
