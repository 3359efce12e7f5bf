"""Executions: found, cancelled, retried by hand, repaired."""

from collections.abc import Sequence
from dataclasses import dataclass

from luciole import limits
from luciole.errors import IllegalState, NotFound
from luciole.model.execution import Enqueued, EnqueueRequest, ExecutionState, ExecutionView, Origin, request_shard
from luciole.model.ids import NO_SCHEDULE, ExecutionKey
from luciole.model.schedule import ScheduleView
from luciole.service.jobs import entry_flags
from luciole.store.reads import ExecutionFilter, LedgerView, Page
from luciole.store.spi import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleHistory:
    """What became of a schedule's latest fire times."""

    executions: tuple[ExecutionView, ...]  #: newest fire time first
    ledger: tuple[LedgerView, ...]  #: newest first


async def find_execution(store: Store, key: ExecutionKey) -> ExecutionView:
    """Return one execution with its recorded attempts.

    Raises:
        NotFound: there is none; retention may have pruned it.
    """
    view = await store.get_execution(key)
    if view is None:
        raise NotFound(f"execution {key.text()}: there is none; its retention may be over")
    return view


async def list_executions(store: Store, query: ExecutionFilter) -> Page[ExecutionView]:
    """Return a page of executions; the filter says in which order."""
    return await store.list_executions(query)


async def read_history(store: Store, schedule: ScheduleView, *, limit: int) -> ScheduleHistory:
    """Return the latest executions and ledger rows of a schedule."""
    page = await store.list_executions(ExecutionFilter(schedule_id=schedule.schedule_id, limit=limit))
    ledger = await store.list_ledger(schedule.schedule_id, schedule.shard, limit=limit)
    return ScheduleHistory(executions=page.rows, ledger=ledger)


async def cancel(store: Store, keys: Sequence[ExecutionKey]) -> tuple[ExecutionState, ...]:
    """Ask for the end of executions; return the state of each afterwards, in order.

    One that is not due yet, or waits for another, is cancelled at once; one that may run when its executor hears of
    it; one that has ended stays as it is.

    Raises:
        NotFound: one of them does not exist; the others were asked to end all the same.
    """
    states: list[ExecutionState | None] = []
    for start in range(0, len(keys), limits.PAGE_MAX):
        states += await store.request_cancel(keys[start : start + limits.PAGE_MAX])
    missing = [key.text() for key, state in zip(keys, states, strict=True) if state is None]
    if missing:
        raise NotFound(f"execution {', '.join(missing[:5])}: there is none; its retention may be over")
    return tuple(state for state in states if state is not None)


async def retry(store: Store, key: ExecutionKey, *, request_id: int) -> Enqueued:
    """Run what an execution ran once more, as a new execution that names it; of a parked one, unpark it instead.

    Args:
        store: where it lives.
        key: of an execution that has ended, or is parked.
        request_id: from an id segment.

    Raises:
        NotFound: there is none.
        IllegalState: it has not ended yet; or another of its schedule is open, and overlap forbids a second.
    """
    view = await find_execution(store, key)
    if view.state is ExecutionState.PARKED:
        await store.unpark([key])
        return Enqueued(key=key, created=False)
    if not view.state.terminal:
        raise IllegalState(
            f"execution {key.text()}: it is {view.state.name.lower()} and has not ended; cancel it first"
        )
    versions = await store.load_jobs([view.job_id])
    version = versions.get(view.job_id)
    of_schedule = key.schedule_id != NO_SCHEDULE
    request = EnqueueRequest(
        namespace=view.namespace,
        request_id=request_id,
        shard=key.shard if of_schedule else request_shard(view.namespace, None, request_id, store.shards),
        job_id=view.job_id,
        payload=view.payload,
        content_type=view.content_type,
        fire_us=key.fire_us if of_schedule else None,
        priority=view.priority,
        flags=0 if version is None else entry_flags(version.spec),
        labels=view.labels,
        origin=Origin.REPLAY,
        replay_of=key,
        schedule_id=key.schedule_id,
    )
    if not of_schedule:
        (enqueued,) = await store.enqueue([request])
        return enqueued
    triggered = await store.trigger_schedule(request)
    if triggered is None:
        raise IllegalState(
            f"execution {key.text()}: another of its schedule is open, and its overlap policy forbids a second"
        )
    return triggered


async def unpark(store: Store, keys: Sequence[ExecutionKey]) -> int:
    """Make parked executions ready again; return how many were parked."""
    return sum(
        [await store.unpark(keys[start : start + limits.PAGE_MAX]) for start in range(0, len(keys), limits.PAGE_MAX)]
    )
