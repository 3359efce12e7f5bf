"""Strangers: attempts that an executor speaks of and this node does not know, looked up one by one.

They are rare: an executor that comes back to another node, a shard that has just changed its holder.
"""

from luciole.model.ids import NO_SCHEDULE, ExecutionKey
from luciole.model.job import EntryFlag
from luciole.model.outbox import AttemptOutcome, Entry, EntryState
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import Store

_FAILURES = frozenset({AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT})


async def read_stranger(store: Store, telemetry: Telemetry, key: ExecutionKey) -> Entry | None:
    """Return the open entry of an execution as its recorded history tells it; None when it is not open."""
    view = await telemetry.timed("get_execution", store.get_execution(key))
    if view is None or view.state.terminal:
        return None
    jobs = await telemetry.timed("load_jobs", store.load_jobs([view.job_id]))
    job = jobs.get(view.job_id)
    flags = 0
    if job is not None and job.spec.at_most_once:
        flags |= EntryFlag.AT_MOST_ONCE
    if key.schedule_id != NO_SCHEDULE:
        flags |= EntryFlag.RELEASES  # Whether anything waits for it is decided in the store.
    outcomes = [attempt.outcome for attempt in view.attempts]
    return Entry(
        key=key,
        due_us=view.due_us,
        priority=view.priority,
        attempt=view.attempt,
        failures=sum(outcome in _FAILURES for outcome in outcomes),
        job_id=view.job_id,
        flags=flags,
        state=EntryState.READY,
        losses=sum(outcome == AttemptOutcome.LOST for outcome in outcomes),
        delivered=True,
        cancel=view.cancel_requested,
        labels=view.labels or None,
        deadline_us=view.deadline_us,
    )
