"""Overlap: whether one more execution of a schedule may run now, must wait, or is left out."""

from enum import Enum

from luciole.model.execution import ExecutionState
from luciole.model.instant import Instant
from luciole.model.job import EntryFlag
from luciole.model.outbox import EntryState, under_way
from luciole.model.schedule import OverlapCode
from luciole.store.memory.state import EntryRow, Group, MemoryState


class Admission(Enum):
    """What becomes of one more execution."""

    RUN = "run"
    WAIT = "wait"
    SKIP = "skip"


def admit(state: MemoryState, group: Group, overlap: OverlapCode, now_us: Instant) -> Admission:
    """Decide for one more execution, by the open entries of its schedule as they stand in this transaction.

    With REPLACE the open ones are ended or asked to end as a part of the decision.
    """
    rows = list(state.entries[group].values())
    if overlap is OverlapCode.ALLOW or not rows:
        return Admission.RUN
    # Only an entry with RELEASES lets a successor go: behind another one (of an earlier policy) it would wait for ever.
    if overlap is OverlapCode.FORBID or not all(row.flags & EntryFlag.RELEASES for row in rows):
        return Admission.SKIP
    if overlap is OverlapCode.QUEUE_ONE:
        return Admission.SKIP if any(row.state is EntryState.WAITING for row in rows) else Admission.WAIT
    # Waiting ones first: the end of a parked one would release them.
    for row in sorted(rows, key=lambda row: row.state is not EntryState.WAITING):
        cancel(state, row, now_us)
    return Admission.WAIT if state.entries[group] else Admission.RUN


def cancel(state: MemoryState, row: EntryRow, now_us: Instant) -> ExecutionState:
    """End an execution that nobody runs at once; ask for the end of any other. Return its state afterwards."""
    execution = state.executions[row.group][row.key]
    if not under_way(row.state, row.due_us, now_us, delivered=row.delivered or row.executor_id is not None):
        execution.move(ExecutionState.CANCELLED)
        execution.finished_us = now_us
        execution.troubled_us = None
        was_waiting = row.state is EntryState.WAITING
        state.withdrawals[row.key.shard] += row.state is EntryState.HELD
        state.close_entry(row, releases=not was_waiting and bool(row.flags & EntryFlag.RELEASES))
    else:
        row.cancel = True
        state.hint([row.key.shard])
    return execution.state


def flags_under(overlap: OverlapCode, flags: int) -> int:
    """Return entry flags as a policy needs them: what may have a successor releases it."""
    if overlap in {OverlapCode.QUEUE_ONE, OverlapCode.REPLACE}:
        return flags | EntryFlag.RELEASES
    return flags
