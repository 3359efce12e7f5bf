"""What only the memory store promises: one state, several clients, one loop or several threads."""

import asyncio
import threading

from luciole.model.execution import ExecutionState
from luciole.model.job import JobSpec
from luciole.model.outbox import AttemptOutcome, Settled, Settlement
from luciole.model.plan import Fire, Move, Plan
from luciole.model.schedule import NewSchedule, OverlapCode, ScheduleSpec
from luciole.runtime.clock import SystemClock
from luciole.store.memory import MemoryState, MemoryStore
from luciole.store.spi import Store
from luciole.testing.factories import a_job, a_request


async def test_two_clients_see_one_database() -> None:
    state, clock = MemoryState(), SystemClock()
    first, second = MemoryStore(state, clock), MemoryStore(state, clock)
    await first.open()
    await second.open()
    store: Store = second
    now_us = await store.now_us()
    spec = ScheduleSpec(name="nightly", job=JobSpec(handler="report"), trigger="t")
    (schedule_id,) = await first.put_schedules(
        [NewSchedule(spec=spec, fire_us=now_us, due_us=now_us)], first_id=(await first.take_ids(1)).first
    )
    leases = await second.acquire_leases("a" * 16, range(second.shards), ttl_us=10_000_000)
    due = await second.due_cursors(range(second.shards), now_us, limit=10)
    (cursor,) = due.cursors
    move = Move(
        cursor=cursor,
        fires=(Fire(now_us, now_us),),
        next_fire_us=now_us + 1_000_000,
        next_due_us=now_us + 1_000_000,
        overlap=OverlapCode.FORBID,
        priority=5,
        flags=0,
    )
    outcome = await second.commit_plan(Plan(moves=(move,), leases=leases))
    (entry,) = outcome.entries
    settlement = Settlement(
        key=entry.key,
        attempt=1,
        state=ExecutionState.SUCCEEDED,
        outcome=AttemptOutcome.SUCCEEDED,
        started_us=now_us,
        finished_us=now_us,
        executor_id="e" * 16,
        result=b"\x00\xff",
    )
    assert await first.settle([settlement]) == (Settled.SETTLED,)
    assert await second.settle([settlement]) == (Settled.CONFIRMED,)
    view = await second.get_execution(entry.key)
    assert schedule_id == cursor.schedule_id
    assert view is not None
    assert (view.state, view.result) == (ExecutionState.SUCCEEDED, b"\x00\xff")


async def test_verbs_of_several_threads_do_not_mix() -> None:
    state, clock = MemoryState(), SystemClock()
    numbers = range(1, 201)

    def enqueue_all(thread: int) -> list[bool]:
        async def run() -> list[bool]:
            store = MemoryStore(state, clock)
            await store.open()
            (job_id,) = await store.intern_jobs([a_job()])
            requests = [a_request(thread * 1_000 + number, job_id, key=f"k{number}") for number in numbers]
            return [(await store.enqueue([request]))[0].created for request in requests]

        return asyncio.run(run())

    created = await asyncio.gather(*(asyncio.to_thread(enqueue_all, thread) for thread in range(4)))
    assert [sum(column) for column in zip(*created, strict=True)] == [1] * len(numbers)
    assert len(list(state.all_executions())) == len(numbers)


async def test_a_hint_wakes_who_waits_in_another_thread() -> None:
    state, clock = MemoryState(), SystemClock()
    is_waiting = threading.Event()

    def wait() -> frozenset[int]:
        async def run() -> frozenset[int]:
            store = MemoryStore(state, clock)
            await store.open()
            waiting = asyncio.create_task(store.wait_hint(60_000_000))
            await asyncio.sleep(0)
            is_waiting.set()
            return await waiting

        return asyncio.run(run())

    waiter = asyncio.create_task(asyncio.to_thread(wait))
    await asyncio.to_thread(is_waiting.wait)
    store = MemoryStore(state, clock)
    await store.open()
    (job_id,) = await store.intern_jobs([a_job()])
    await store.enqueue([a_request(1, job_id, 3)])
    assert await waiter == {3}
