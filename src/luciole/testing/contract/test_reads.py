"""Read-only pages."""

from typing import Any

from luciole import limits
from luciole.errors import InvalidValue
from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.model.job import Overlap
from luciole.model.outbox import Running
from luciole.model.schedule import ScheduleState
from luciole.store.reads import ExecutionFilter, ScheduleFilter
from luciole.store.spi import Store
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    StoreContract,
    enqueued,
    execution_of,
    executions,
    fire,
    fire_next,
    lease_all,
    raises,
    register,
    scheduled,
    set_state,
)
from luciole.testing.factories import EXECUTOR_A, a_schedule, a_settlement

HOUR_US = 3_600 * SECOND_US


async def walk_schedules(store: Store, *, limit: int, **fields: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - the fields of the filter
    """Return the names on all pages, each page full but the last."""
    names: list[tuple[str, str]] = []
    page = None
    while True:
        query = ScheduleFilter(limit=limit, page=page, **fields)
        rows = await store.list_schedules(query)
        names += ((view.spec.namespace, view.spec.name) for view in rows.rows)
        assert len(rows.rows) == limit or rows.next is None
        if rows.next is None:
            return names
        page = rows.next


async def walk_executions(store: Store, *, limit: int, **fields: Any) -> list[ExecutionKey]:  # noqa: ANN401 - the fields of the filter
    """Return the keys on all pages, each page full but the last."""
    keys: list[ExecutionKey] = []
    page = None
    while True:
        query = ExecutionFilter(limit=limit, page=page, **fields)
        rows = await store.list_executions(query)
        keys += (view.key for view in rows.rows)
        assert len(rows.rows) == limit or rows.next is None
        if rows.next is None:
            return keys
        page = rows.next


class TestScheduleLists(StoreContract):
    """Schedules, a page at a time."""

    async def test_pages_come_in_order_of_names_and_miss_nothing(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        names = ["b", "a", "B", "a\u0301", "\u00e1", "a b", "ab", "a/b", "\U0001f600", "\uffee", "10", "9"]
        await register(a, *(a_schedule(name, fire_us=1_000) for name in names))
        await register(a, a_schedule("z", fire_us=1_000, namespace="a-space"))
        expected = [("a-space", "z"), *(("default", name) for name in sorted(names))]
        for limit in (1, 2, 5, 13, 50):
            assert await walk_schedules(b, limit=limit) == expected

    async def test_filters_choose_by_namespace_prefix_owner_and_state(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        await register(a, *(a_schedule(name, fire_us=1_000) for name in ("a1", "a2", "a%", "b1", "gone")))
        await register(a, a_schedule("a1", fire_us=1_000, namespace="other", owner="you"))
        await set_state(a, ScheduleState.PAUSED, "a2")
        await set_state(a, ScheduleState.DELETED, "gone")
        lists = [
            await walk_schedules(a, limit=2, namespace="default", name_prefix="a"),
            await walk_schedules(a, limit=2, name_prefix="a%"),
            await walk_schedules(a, limit=2, owner="you"),
            await walk_schedules(a, limit=2, states=frozenset({ScheduleState.PAUSED})),
            await walk_schedules(a, limit=2, states=frozenset({ScheduleState.DELETED})),
            await walk_schedules(a, limit=2, name_prefix="A"),
            await walk_schedules(a, limit=2, states=frozenset()),
        ]
        assert [[name for _, name in names] for names in lists] == [
            ["a%", "a1", "a2"], ["a%"], ["a1"], ["a2"], ["gone"], [], [],
        ]  # fmt: skip

    async def test_a_bad_page_or_limit_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for page in ("nonsense", "[1]", '["a"]', '["a", 1]', "{}", '["a", "b", "c"]', "\x00", "9" * 5_000):
            with raises(InvalidValue):
                await a.list_schedules(ScheduleFilter(page=page))
        for limit in (0, limits.PAGE_MAX + 1):
            with raises(InvalidValue):
                await a.list_schedules(ScheduleFilter(limit=limit))


class TestExecutionLists(StoreContract):
    """Executions, a page at a time, in the order that the filter asks for."""

    async def test_a_schedule_s_executions_come_newest_first(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        cursor = await scheduled(a)
        await scheduled(a, "other")
        entries = [await fire(a, leases, cursor)]
        for _ in range(6):
            entries += await fire_next(a, leases)
            await fire_next(a, leases, "other")
        await a.settle([a_settlement(entry) for entry in entries[::2]])
        newest = [entry.key for entry in reversed(entries)]
        for limit in (1, 3, 7, 50):
            assert await walk_executions(b, limit=limit, schedule_id=cursor.schedule_id) == newest
        done = frozenset({ExecutionState.SUCCEEDED})
        assert await walk_executions(b, limit=2, schedule_id=cursor.schedule_id, states=done) == newest[::2]
        assert await walk_executions(b, limit=2, schedule_id=cursor.schedule_id + 1_000) == []

    async def test_executions_of_no_schedule_come_newest_first_over_all_shards(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        now_us = await a.now_us()
        await fire(a, await lease_all(a), await scheduled(a))
        keys = [(await enqueued(a, n % 4, fire_us=now_us - n // 3)).key for n in range(12)]
        expected = sorted(keys, key=lambda key: (key.fire_us, key.shard, key.part), reverse=True)
        for limit in (1, 5, 12, 50):
            assert await walk_executions(b, limit=limit, schedule_id=0) == expected

    async def test_open_executions_come_newest_first(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        now_us = await a.now_us()
        entries = [await enqueued(a, n % 4, fire_us=now_us - n % 5) for n in range(10)]
        entries.append(await fire(a, leases, await scheduled(a)))
        await a.settle([a_settlement(entry) for entry in entries[::3]])
        left = [entry.key for n, entry in enumerate(entries) if n % 3]
        expected = sorted(left, key=lambda key: (key.fire_us, *key[:2], key.part), reverse=True)
        states = frozenset({ExecutionState.READY, ExecutionState.HELD})
        for limit in (1, 4, 50):
            assert await walk_executions(b, limit=limit, states=states) == expected

    async def test_troubled_executions_come_latest_first(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        now_us = await a.now_us()
        entries = [await enqueued(a, n % 4) for n in range(14)]
        states = [
            ExecutionState.FAILED,
            ExecutionState.PARKED,
            ExecutionState.SUCCEEDED,
            ExecutionState.LOST,
            ExecutionState.CANCELLED,
            ExecutionState.QUARANTINED,
            ExecutionState.TIMED_OUT,
        ]
        ends = [a_settlement(entry, states[n % 7], finished_us=now_us + n * 5 % 7) for n, entry in enumerate(entries)]
        await a.settle(ends)
        troubled = frozenset(states) - {ExecutionState.SUCCEEDED, ExecutionState.CANCELLED}
        chosen = [end for end in ends if end.state in troubled]
        expected = [end.key for end in sorted(chosen, key=lambda end: (end.finished_us, end.key), reverse=True)]
        for limit in (1, 4, 50):
            assert await walk_executions(b, limit=limit, states=troubled) == expected
        parked = frozenset({ExecutionState.PARKED})
        assert await walk_executions(b, limit=1, states=parked) == [
            e for e in expected if e in {x.key for x in ends[1::7]}
        ]
        await a.unpark([ends[1].key])
        await a.request_cancel([ends[8].key])
        assert await walk_executions(b, limit=1, states=parked) == []

    async def test_everything_else_comes_in_key_order(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        entries = [await enqueued(a, n % 4) for n in range(10)]
        entries += [await fire(a, leases, await scheduled(a, f"s{n}")) for n in range(6)]
        await a.settle([a_settlement(entry) for entry in entries[::2]])
        everything = sorted(entry.key for entry in entries)
        done = sorted(entry.key for entry in entries[::2])
        for limit in (1, 7, 50):
            assert await walk_executions(b, limit=limit) == everything
            assert await walk_executions(b, limit=limit, states=frozenset({ExecutionState.SUCCEEDED})) == done
        mixed = frozenset({ExecutionState.SUCCEEDED, ExecutionState.HELD, ExecutionState.READY})
        assert await walk_executions(b, limit=3, states=mixed) == everything

    async def test_lists_leave_the_attempts_to_the_single_view(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entry = await enqueued(a)
        await a.settle([a_settlement(entry, ExecutionState.FAILED)])
        single, listed = await execution_of(b, entry.key), (await executions(b))[entry.key]
        assert (len(single.attempts), listed.attempts) == (1, ())
        assert listed.state is single.state

    async def test_a_bad_page_or_limit_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for page in ("nonsense", "[1]", '["a", 1, 2, 3]', "{}", "[1, 2, 3, 4, 5, 6]", "\x00", "1-2-3-4"):
            for query in (ExecutionFilter(page=page), ExecutionFilter(schedule_id=1, page=page)):
                with raises(InvalidValue):
                    await a.list_executions(query)
        for limit in (0, limits.PAGE_MAX + 1):
            with raises(InvalidValue):
                await a.list_executions(ExecutionFilter(limit=limit))


class TestSummaries(StoreContract):
    """Single answers and counts."""

    async def test_states_of_many_come_in_order(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        ready, done, held = await enqueued(a), await enqueued(a), await fire(a, leases, await scheduled(a))
        await a.settle([a_settlement(done)])
        unknown = ready.key._replace(part=ready.key.part - 1_000)
        states = await b.execution_states([held.key, unknown, done.key, ready.key, held.key])
        assert states == (
            ExecutionState.HELD,
            None,
            ExecutionState.SUCCEEDED,
            ExecutionState.READY,
            ExecutionState.HELD,
        )
        assert await b.execution_states([]) == ()
        assert await b.get_execution(unknown) is None

    async def test_the_backlog_counts_what_is_due_and_open(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        empty = await b.backlog()
        now_us = await a.now_us()
        await register(a, *(a_schedule(f"s{n}", fire_us=now_us - n) for n in range(3)))
        await scheduled(a, "later", in_us=HOUR_US)
        await set_state(a, ScheduleState.PAUSED, "s2")
        await fire_next(a, leases, "s0")
        entries = [await enqueued(a, n % 4) for n in range(5)]
        await enqueued(a, delay_us=HOUR_US)
        parked = [entries[3], entries[4]]
        await a.settle([a_settlement(entry, ExecutionState.PARKED) for entry in parked])
        backlog = await b.backlog()
        counts = (empty.due_schedules, empty.open_entries, empty.ready_due, empty.parked)
        assert counts == (0, 0, 0, 0)
        assert (empty.oldest_due_us, empty.oldest_ready_us, empty.keys) == (None, None, ())
        assert (backlog.due_schedules, backlog.oldest_due_us) == (1, now_us - 1)
        assert (backlog.open_entries, backlog.ready_due, backlog.parked) == (7, 3, 2)
        assert backlog.oldest_ready_us == min(entry.due_us for entry in entries[:3])
        assert sorted(backlog.keys) == sorted(entry.key for entry in parked)

    async def test_what_an_executor_runs_does_not_wait_for_one(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        entry = await enqueued(a)
        before = await b.backlog()
        await a.mark_running([Running(entry.key, 1, EXECUTOR_A, await a.now_us())])
        backlog = await b.backlog()
        assert (before.ready_due, before.oldest_ready_us) == (1, entry.due_us)
        assert (backlog.open_entries, backlog.ready_due, backlog.oldest_ready_us) == (1, 0, None)

    async def test_a_waiting_execution_is_open_and_not_ready(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        await fire(a, leases, await scheduled(a, overlap=Overlap.QUEUE_ONE))
        await fire_next(a, leases)
        backlog = await b.backlog()
        assert (backlog.open_entries, backlog.ready_due) == (2, 0)

    async def test_limits_of_summaries_are_bounds(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for limit in (0, limits.PAGE_MAX + 1):
            with raises(InvalidValue):
                await a.list_ledger(1, 0, limit=limit)
            with raises(InvalidValue):
                await a.list_jobs(None, limit=limit)
