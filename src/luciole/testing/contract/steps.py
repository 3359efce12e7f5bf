"""Steps that many cases begin with, each through the verbs of the contract."""

import asyncio
from collections.abc import Awaitable, Sequence

from luciole import limits
from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState, ExecutionView
from luciole.model.ids import ExecutionKey, NodeId, Shard
from luciole.model.instant import Instant
from luciole.model.job import JobSpec, Overlap
from luciole.model.lease import Lease
from luciole.model.outbox import Entry
from luciole.model.plan import Move
from luciole.model.schedule import Cursor, NewSchedule, ScheduleState, ScheduleView
from luciole.runtime.extras import require
from luciole.store.reads import ExecutionFilter, LedgerView
from luciole.store.spi import Store
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.factories import NODE_A, a_job, a_plan, a_request, a_schedule

with require("testing"):
    import pytest

#: Long enough that no lease ends by itself while a case runs.
TTL_US = 600 * SECOND_US
#: Later than any due time of a case.
FAR_US = 366 * limits.DAY_US
#: A case that waits this long has lost a wake-up.
PATIENCE_S = 20


class StoreContract:
    """What all classes of cases share: they are coroutines, whatever mode pytest-asyncio is in."""

    pytestmark = pytest.mark.asyncio


def raises(error: type[Exception]) -> "pytest.RaisesExc[Exception]":
    """Expect an error of the contract."""
    return pytest.raises(error)


def shards_of(store: Store) -> tuple[Shard, ...]:
    """Return all shards of a store."""
    return tuple(range(store.shards))


async def lease_all(store: Store, node_id: NodeId = NODE_A, *, ttl_us: int = TTL_US) -> tuple[Lease, ...]:
    """Take every free shard for a node."""
    return await store.acquire_leases(node_id, shards_of(store), ttl_us=ttl_us)


async def register(store: Store, *schedules: NewSchedule) -> tuple[int | None, ...]:
    """Put schedules with ids of their own."""
    segment = await store.take_ids(max(1, len(schedules)))
    return await store.put_schedules(schedules, first_id=segment.first)


async def due(store: Store, *, within_us: int = FAR_US) -> dict[int, Cursor]:
    """Return every cursor that is due within a time, by schedule."""
    batch = await store.due_cursors(shards_of(store), await store.now_us() + within_us, limit=limits.DUE_MAX)
    return {cursor.schedule_id: cursor for cursor in batch.cursors}


async def cursor_of(store: Store, name: str = "nightly") -> Cursor:
    """Return the cursor of an active schedule."""
    return (await due(store))[(await view_of(store, name)).schedule_id]


async def view_of(store: Store, name: str = "nightly") -> ScheduleView:
    """Return a schedule that there is."""
    view = await store.get_schedule("default", name)
    assert view is not None
    return view


async def scheduled(
    store: Store,
    name: str = "nightly",
    *,
    overlap: Overlap = Overlap.ALLOW,
    in_us: int = 0,
    jitter_us: int = 0,
    job: JobSpec | None = None,
) -> Cursor:
    """Register one schedule that fires after a time, and return its cursor."""
    fire_us = await store.now_us() + in_us
    schedule = a_schedule(name, fire_us=fire_us, due_us=fire_us + jitter_us, overlap=overlap, job=job)
    await register(store, schedule)
    return await cursor_of(store, name)


async def fire(store: Store, leases: Sequence[Lease], move: Move | Cursor) -> Entry:
    """Plan one step that creates one entry in memory, and return it."""
    (entry,) = (await store.commit_plan(a_plan(leases, move))).entries
    return entry


async def fire_next(store: Store, leases: Sequence[Lease], name: str = "nightly") -> tuple[Entry, ...]:
    """Plan the next fire of a schedule, whenever it is due."""
    return (await store.commit_plan(a_plan(leases, await cursor_of(store, name)))).entries


async def job_id_of(store: Store, job: JobSpec | None = None) -> int:
    """Store a job and return its version."""
    (job_id,) = await store.intern_jobs([a_job() if job is None else job])
    return job_id


async def request_id(store: Store) -> int:
    """Take an id."""
    return (await store.take_ids(1)).first


async def enqueued(store: Store, shard: Shard = 0, **fields: object) -> Entry:
    """Enqueue one execution that is due now, and return its entry."""
    request = a_request(await request_id(store), await job_id_of(store), shard, **fields)
    (answer,) = await store.enqueue([request])
    return await ready_entry(store, answer.key)


async def ready_entry(store: Store, key: ExecutionKey) -> Entry:
    """Return an entry that polling finds, whenever it is due."""
    batch = await store.ready_entries([key.shard], await store.now_us() + FAR_US, limit=limits.HELD_MAX)
    (entry,) = (entry for entry in batch.entries if entry.key == key)
    return entry


async def ready_keys(store: Store) -> list[ExecutionKey]:
    """Return the keys of all entries that polling finds, whenever they are due."""
    batch = await store.ready_entries(shards_of(store), await store.now_us() + FAR_US, limit=limits.HELD_MAX)
    return [entry.key for entry in batch.entries]


async def cancel_keys(store: Store) -> list[ExecutionKey]:
    """Return the keys of open entries whose end was asked for."""
    batch = await store.ready_entries(shards_of(store), await store.now_us(), limit=limits.HELD_MAX)
    return [entry.key for entry in batch.cancels]


async def open_keys(store: Store) -> list[ExecutionKey]:
    """Return what a new holder of all shards would load."""
    entries = await store.open_entries(shards_of(store), after=None, limit=limits.HELD_MAX)
    return [entry.key for entry in entries]


async def execution_of(store: Store, key: ExecutionKey) -> ExecutionView:
    """Return an execution that there is."""
    view = await store.get_execution(key)
    assert view is not None
    return view


async def state_of(store: Store, key: ExecutionKey) -> ExecutionState | None:
    """Return the state of an execution."""
    (state,) = await store.execution_states([key])
    return state


async def executions(store: Store, *, schedule_id: int | None = None) -> dict[ExecutionKey, ExecutionView]:
    """Return all executions there are, or those of one schedule."""
    page = await store.list_executions(ExecutionFilter(schedule_id=schedule_id))
    assert page.next is None
    return {view.key: view for view in page.rows}


async def ledger_of(store: Store, cursor: Cursor) -> list[LedgerView]:
    """Return the ledger of a schedule, oldest row first."""
    return [*reversed(await store.list_ledger(cursor.schedule_id, cursor.shard, limit=limits.PAGE_MAX))]


async def set_state(
    store: Store,
    state: ScheduleState,
    name: str = "nightly",
    *,
    reason: str | None = None,
    fire_us: Instant | None = None,
    due_us: Instant | None = None,
) -> bool:
    """Set the state of a schedule as it stands."""
    view = await view_of(store, name)
    return await store.set_schedule_state(
        view.schedule_id, state, reason=reason, fire_us=fire_us, due_us=due_us, revision=view.revision
    )


async def heard(harness: StoreHarness, waiting: Awaitable[frozenset[Shard]]) -> frozenset[Shard]:
    """Return what a client hears while time passes in small steps."""
    task = asyncio.ensure_future(waiting)
    async with asyncio.timeout(PATIENCE_S):
        while not task.done():
            await harness.advance(10 * limits.MS_US)
            await asyncio.sleep(0)
    return task.result()
