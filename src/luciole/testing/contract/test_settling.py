"""The outcomes of attempts: one each, guarded by the attempt token."""

import asyncio

from luciole import limits
from luciole.errors import InvalidValue
from luciole.limits import SECOND_US
from luciole.model.execution import AttemptView, ExecutionState
from luciole.model.job import Overlap
from luciole.model.outbox import AttemptOutcome, Running, Settled
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    StoreContract,
    cursor_of,
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
    request_id,
    scheduled,
    state_of,
)
from luciole.testing.factories import EXECUTOR_A, EXECUTOR_B, a_request, a_settlement

#: What no byte pattern may block (I8).
BYTES = [b"", b"\x00", b"\xff\xfe", bytes(range(256)), b"\\x00", b"'; --", "\u20ac\ud7ff".encode(), b"\x00" * 5_000]

TERMINAL = [state for state in ExecutionState if state.terminal]


class TestEnds(StoreContract):
    """Attempts that end their execution."""

    async def test_a_success_ends_the_execution_and_its_entry(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a))
        end = a_settlement(entry, result=b"42", result_type="application/json", executor_id=EXECUTOR_B)
        assert await b.settle([end]) == (Settled.SETTLED,)
        view = await execution_of(a, entry.key)
        assert (view.state, view.attempt, view.attempts) == (ExecutionState.SUCCEEDED, 1, ())
        assert (view.result, view.result_type, view.error) == (b"42", "application/json", None)
        assert (view.started_us, view.finished_us) == (end.started_us, end.finished_us)
        assert (view.executor_id, view.cancel_requested) == (EXECUTOR_B, False)
        assert (await open_keys(a), await ready_keys(a)) == ([], [])

    async def test_every_other_end_leaves_a_row_of_its_attempt(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for state in TERMINAL:
            entry = await enqueued(a)
            end = a_settlement(entry, state, error="broke")
            assert await a.settle([end]) == (Settled.SETTLED,)
            view = await execution_of(a, entry.key)
            rows = [] if state is ExecutionState.SUCCEEDED else [end]
            assert (view.state, view.error) == (state, "broke")
            assert view.attempts == tuple(
                AttemptView(
                    attempt=1,
                    outcome=row.outcome,
                    error="broke",
                    executor_id=EXECUTOR_A,
                    started_us=row.started_us,
                    finished_us=row.finished_us,
                )
                for row in rows
            )
        assert await ready_keys(a) == []

    async def test_the_same_report_again_is_confirmed(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        for state in TERMINAL:
            end = a_settlement(await enqueued(a), state, error="first")
            await a.settle([end])
            before = await execution_of(a, end.key)
            assert await b.settle([end._replace(error="second")]) == (Settled.CONFIRMED,)
            # I5: a terminal execution never changes.
            assert await execution_of(a, end.key) == before

    async def test_another_report_of_an_ended_attempt_is_refused(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        for state in TERMINAL:
            end = a_settlement(await enqueued(a), state)
            await a.settle([end])
            before = await execution_of(a, end.key)
            other = ExecutionState.FAILED if state is ExecutionState.SUCCEEDED else ExecutionState.SUCCEEDED
            for late in (a_settlement(end.key, other), end._replace(attempt=2), end._replace(attempt=0)):
                assert await b.settle([late]) == (Settled.REFUSED,)
            # I5: a terminal execution never changes.
            assert await execution_of(a, end.key) == before

    async def test_an_unknown_execution_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry = await enqueued(a)
        unknown = entry.key._replace(fire_us=entry.key.fire_us + 1)
        answers = await a.settle([a_settlement(unknown), a_settlement(entry), a_settlement(unknown)])
        assert answers == (Settled.REFUSED, Settled.SETTLED, Settled.REFUSED)

    async def test_each_of_many_successes_is_judged_and_recorded_by_itself(self, harness: StoreHarness) -> None:
        """Goal: however a store sends many reports at once, none gets the token, the times or the result of another.

        Method: so many that batches are sent in every way there is, unsorted, each value different here and equal
        there, some missing; every seventh has an early token.
        """
        a, b = harness.clients
        job_id = await job_id_of(a)
        keys = [
            answer.key
            for number in range(200)
            for answer in await a.enqueue([a_request(await request_id(a), job_id, number % 2)])
        ]
        ends = [
            a_settlement(
                key,
                attempt=2 if number % 7 == 0 else 1,
                result=None if number % 3 == 0 else b"%d" % number,
                result_type=None if number % 3 == 0 else f"type/{number % 2}",
                executor_id=EXECUTOR_A if number % 5 else EXECUTOR_B,
                started_us=None if number % 11 == 0 else key.fire_us + number,
                finished_us=key.fire_us + 10 * number,
            )
            for number, key in enumerate(keys)
        ]
        for batch in (ends[190::-2] + ends[1:190:2], ends[191:193], ends[193:]):
            # I5: the attempt token alone guards the write.
            current = [end.attempt == 1 for end in batch]
            assert await a.settle(batch) == tuple(Settled.SETTLED if yes else Settled.REFUSED for yes in current)
            for end, yes in zip(batch, current, strict=True):
                view = await execution_of(b, end.key)
                said = (view.state, view.result, view.result_type, view.executor_id, view.started_us, view.finished_us)
                recorded = (end.result, end.result_type, end.executor_id, end.started_us, end.finished_us)
                assert said == ((ExecutionState.SUCCEEDED, *recorded) if yes else (ExecutionState.READY, *[None] * 5))
        assert sorted(await ready_keys(a)) == sorted(keys[::7])

    async def test_an_early_token_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry = await enqueued(a)
        assert await a.settle([a_settlement(entry, attempt=2)]) == (Settled.REFUSED,)
        assert await state_of(a, entry.key) is ExecutionState.READY

    async def test_what_waits_for_its_predecessor_has_no_outcome(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        leases = await lease_all(a)
        first = await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        waiting = first.key._replace(fire_us=(await cursor_of(a)).fire_us)
        await fire_next(a, leases)
        for state in (ExecutionState.SUCCEEDED, ExecutionState.CANCELLED, ExecutionState.READY):
            assert await a.settle([a_settlement(waiting, state, releases=True)]) == (Settled.REFUSED,)
        assert await state_of(a, waiting) is ExecutionState.QUEUED

    async def test_two_nodes_that_report_at_one_moment_record_it_once(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entry = await enqueued(a)
        same = a_settlement(entry)
        answers = await asyncio.gather(a.settle([same]), b.settle([same]))
        assert sorted(answers) == [(Settled.SETTLED,), (Settled.CONFIRMED,)]
        assert await state_of(a, entry.key) is ExecutionState.SUCCEEDED

    async def test_two_outcomes_at_one_moment_become_one(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entry = await enqueued(a)
        done, lost = a_settlement(entry), a_settlement(entry, ExecutionState.READY, outcome=AttemptOutcome.LOST)
        answers = await harness.interleave(a.settle([done]), b.settle([lost]))
        # I6: an entry is settled once.
        assert answers == ((Settled.SETTLED,), (Settled.REFUSED,))
        assert await state_of(a, entry.key) is ExecutionState.SUCCEEDED
        assert await ready_keys(a) == []


class TestTries(StoreContract):
    """Attempts after which the execution goes on."""

    async def test_a_failure_with_a_retry_makes_the_next_attempt_due(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        entry = await fire(a, leases, await scheduled(a))
        due_us = await a.now_us() + 60 * SECOND_US
        failed = a_settlement(entry, ExecutionState.RETRY_WAIT, due_us=due_us, error="boom")
        assert await b.settle([failed]) == (Settled.SETTLED,)
        view = await execution_of(a, entry.key)
        assert (view.state, view.attempt, view.due_us) == (ExecutionState.RETRY_WAIT, 2, due_us)
        assert (view.started_us, view.finished_us, view.error) == (None, None, "boom")
        assert [row.attempt for row in view.attempts] == [1]
        retry = await ready_entry(b, entry.key)
        assert (retry.attempt, retry.failures, retry.losses, retry.due_us) == (2, 1, 0, due_us)
        assert retry.key == entry.key
        assert await open_keys(a) == []

    async def test_failures_and_losses_are_counted_apart(self, harness: StoreHarness) -> None:
        """Goal: a drained executor or a lost one does not eat the retries of an innocent."""
        a, _ = harness.clients
        entry = await enqueued(a)
        steps = [
            (AttemptOutcome.FAILED, False),
            (AttemptOutcome.LOST, True),
            (AttemptOutcome.LOST, False),
            (AttemptOutcome.RETURNED, False),
            (AttemptOutcome.TIMED_OUT, False),
        ]
        counts = []
        for outcome, counts_loss in steps:
            entry = await ready_entry(a, entry.key)
            settlement = a_settlement(entry, ExecutionState.READY, outcome=outcome, counts_loss=counts_loss)
            assert await a.settle([settlement]) == (Settled.SETTLED,)
            entry = await ready_entry(a, entry.key)
            counts.append((entry.attempt, entry.failures, entry.losses))
        assert counts == [(2, 1, 0), (3, 1, 1), (4, 1, 1), (5, 1, 1), (6, 2, 1)]
        view = await execution_of(a, entry.key)
        assert [row.outcome for row in view.attempts] == [outcome for outcome, _ in steps]

    async def test_a_report_of_an_earlier_attempt_is_refused(self, harness: StoreHarness) -> None:
        """Goal: an executor that was presumed dead can't finish somebody else's newer attempt."""
        a, b = harness.clients
        entry = await enqueued(a)
        await a.settle([a_settlement(entry, ExecutionState.READY, outcome=AttemptOutcome.LOST, counts_loss=True)])
        # I5: the attempt token alone decides.
        assert await b.settle([a_settlement(entry)]) == (Settled.REFUSED,)
        assert await state_of(a, entry.key) is ExecutionState.READY
        assert await b.settle([a_settlement(entry, attempt=2)]) == (Settled.SETTLED,)
        assert await b.settle([a_settlement(entry)]) == (Settled.REFUSED,)

    async def test_the_same_failure_again_is_confirmed(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entry = await enqueued(a)
        failed = a_settlement(entry, ExecutionState.RETRY_WAIT)
        await a.settle([failed])
        before = await execution_of(a, entry.key), await ready_entry(a, entry.key)
        assert await b.settle([failed]) == (Settled.CONFIRMED,)
        assert (await execution_of(a, entry.key), await ready_entry(a, entry.key)) == before
        await a.settle([a_settlement(entry, attempt=2)])
        assert await b.settle([failed]) == (Settled.CONFIRMED,)

    async def test_a_batch_acts_as_if_its_rows_came_one_by_one(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry, other = await enqueued(a), await enqueued(a)
        answers = await a.settle(
            [
                a_settlement(entry, ExecutionState.RETRY_WAIT),
                a_settlement(other),
                a_settlement(entry, ExecutionState.RETRY_WAIT),
                a_settlement(entry),
                a_settlement(entry, attempt=2),
                a_settlement(other),
                a_settlement(other, ExecutionState.FAILED),
            ]
        )
        assert answers == (
            Settled.SETTLED,
            Settled.SETTLED,
            Settled.CONFIRMED,
            Settled.REFUSED,
            Settled.SETTLED,
            Settled.CONFIRMED,
            Settled.REFUSED,
        )

    async def test_a_running_attempt_that_is_lost_starts_anew(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry = await enqueued(a)
        await a.mark_running([Running(entry.key, 1, EXECUTOR_A, 1, "half")])
        await a.settle([a_settlement(entry, ExecutionState.READY, outcome=AttemptOutcome.LOST)])
        view = await execution_of(a, entry.key)
        assert (view.state, view.executor_id, view.progress) == (ExecutionState.READY, None, None)
        assert await a.mark_running([Running(entry.key, 2, EXECUTOR_B, 2)]) == ()

    async def test_without_a_due_time_the_old_one_stays(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry = await enqueued(a)
        await a.settle([a_settlement(entry, ExecutionState.READY)])
        assert (await ready_entry(a, entry.key)).due_us == entry.due_us

    async def test_a_request_to_end_outlives_the_attempt(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry = await enqueued(a)
        await a.request_cancel([entry.key])
        await a.settle([a_settlement(entry, ExecutionState.RETRY_WAIT)])
        batch = await a.ready_entries([entry.key.shard], await a.now_us(), limit=10)
        assert [(row.key, row.attempt) for row in batch.cancels] == [(entry.key, 2)]
        assert batch.entries == ()

    async def test_a_state_that_no_attempt_ends_in_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry, other = await enqueued(a), await enqueued(a)
        for state in (ExecutionState.HELD, ExecutionState.RUNNING, ExecutionState.QUEUED):
            bad = a_settlement(entry)._replace(state=state)
            with raises(InvalidValue):
                await a.settle([a_settlement(other), bad])
        assert await a.execution_states([entry.key, other.key]) == (ExecutionState.READY, ExecutionState.READY)

    async def test_a_full_batch_is_settled_and_a_longer_one_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        entry = await enqueued(a)
        most = limits.REPORT_BATCH_MAX
        with raises(InvalidValue):
            await a.settle([a_settlement(entry)] * (most + 1))
        assert await state_of(a, entry.key) is ExecutionState.READY
        answers = await a.settle([a_settlement(entry)] * most)
        assert answers == (Settled.SETTLED, *[Settled.CONFIRMED] * (most - 1))


class TestBytes(StoreContract):
    """Nothing that users or handlers write blocks a state change (I8)."""

    async def test_results_come_back_byte_for_byte(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entries = [await enqueued(a) for _ in BYTES]
        ends = [a_settlement(entry, result=result) for entry, result in zip(entries, BYTES, strict=True)]
        assert set(await a.settle(ends)) == {Settled.SETTLED}
        assert [(await execution_of(b, entry.key)).result for entry in entries] == BYTES

    async def test_payloads_come_back_byte_for_byte(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entries = [await enqueued(a, payload=payload) for payload in BYTES]
        assert [(await ready_entry(b, entry.key)).payload for entry in entries] == BYTES
        assert [(await execution_of(b, entry.key)).payload for entry in entries] == BYTES

    async def test_a_result_may_be_as_large_as_its_bound(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entry = await enqueued(a)
        largest = b"\xff" * limits.RESULT_BYTES_MAX
        assert await a.settle([a_settlement(entry, result=largest)]) == (Settled.SETTLED,)
        assert (await execution_of(b, entry.key)).result == largest

    async def test_texts_that_no_database_keeps_are_mended(self, harness: StoreHarness) -> None:
        """Goal: an error message with a NUL or half a character does not leave its run RUNNING for ever."""
        a, b = harness.clients
        long, odd, typed = [await enqueued(a) for _ in range(3)]
        answers = await a.settle(
            [
                a_settlement(long, ExecutionState.FAILED, error="x" * (limits.ERROR_TEXT_LENGTH_MAX + 1)),
                a_settlement(odd, ExecutionState.RETRY_WAIT, error="a\x00b\ud800c\udfff\U0001f600"),
                a_settlement(typed, result=b"", result_type="t\x00"),
            ]
        )
        assert answers == (Settled.SETTLED,) * 3
        assert (await execution_of(b, long.key)).error == "x" * limits.ERROR_TEXT_LENGTH_MAX
        view = await execution_of(b, odd.key)
        assert view.error == view.attempts[0].error == "a\ufffdb\ufffdc\ufffd\U0001f600"
        assert (await execution_of(b, typed.key)).result_type == "t\ufffd"
