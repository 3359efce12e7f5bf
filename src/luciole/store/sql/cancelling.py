"""Ends that were asked for, and successors that may go, as parts of scripts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from luciole.model.execution import ExecutionState
from luciole.model.ids import NO_SCHEDULE, ExecutionKey, ScheduleId, Shard
from luciole.model.job import EntryFlag
from luciole.model.outbox import EntryState, under_way
from luciole.store.sql.script import Query, Script

#: A shard and a schedule: what overlap is decided for.
Group: TypeAlias = tuple[Shard, ScheduleId]


def groups_of(keys: Iterable[ExecutionKey]) -> list[Group]:
    """Return the schedules of some executions, in lock order; those of no schedule have nothing to lock."""
    return sorted({(key.shard, key.schedule_id) for key in keys if key.schedule_id != NO_SCHEDULE})


def entries_of(groups: Sequence[Group]) -> Script[list[ExecutionKey]]:
    """Return what is open of some schedules, waiting ones first: the end of a parked one would release them."""
    rows = yield Query("entries_of_schedules", rows=groups)
    return [ExecutionKey(*row[:4]) for row in sorted(rows, key=lambda row: row[4] != EntryState.WAITING)]


def waiting_of(groups: Sequence[Group]) -> Script[dict[Group, list[ExecutionKey]]]:
    """Return who waits for its predecessor, in key order."""
    waiting: dict[Group, list[ExecutionKey]] = {}
    for row in (yield Query("waiting_entries", rows=groups)):
        waiting.setdefault((row[0], row[1]), []).append(ExecutionKey(*row))
    return waiting


def release(ended: Mapping[Group, int]) -> Script[None]:
    """Let the first who waits go, as many of each schedule as have ended.

    The bump comes first: a plan that read the cursor before loses its race and decides anew.
    """
    yield Query("bump_cursors", rows=[(*group, count) for group, count in sorted(ended.items())])
    waiting = yield from waiting_of(sorted(ended))
    yield Query("release_entries", rows=sorted(key for group, keys in waiting.items() for key in keys[: ended[group]]))


def cancel(keys: Sequence[ExecutionKey]) -> Script[dict[ExecutionKey, ExecutionState]]:
    """End executions at once that nobody can be running yet, ask for the end of the others, one by one in this order.

    Returns:
        The state of each open one afterwards; those that are not open are absent.
    """
    groups = groups_of(keys)
    yield Query("lock_cursors", rows=groups)
    rows = yield Query("lock_entries", rows=sorted(set(keys)))
    # After the locks: what became due while they were waited for may be under way.
    now_us = (yield Query("clock"))[0][0] if rows else 0
    ahead = {(row[0],) for row in rows if row[5] == EntryState.HELD and row[10] > now_us}
    if ahead:
        yield Query("count_withdrawals", rows=sorted(ahead))
        now_us = (yield Query("clock"))[0][0]  # Its holder may have been told meanwhile that all of it stands.
    states = {ExecutionKey(*row[:4]): EntryState(row[5]) for row in rows}
    by_key = {ExecutionKey(*row[:4]): row for row in rows}
    after = {key: ExecutionState(row[9]) for key, row in by_key.items()}
    waiting = yield from waiting_of(groups)
    ended: dict[Group, int] = {}
    released: list[ExecutionKey] = []
    asked: list[ExecutionKey] = []
    parked: list[ExecutionKey] = []
    for key in dict.fromkeys(key for key in keys if key in states):
        group = (key.shard, key.schedule_id)
        row = by_key[key]
        if under_way(states[key], row[10], now_us, delivered=bool(row[11] or row[8])):
            asked.append(key)
            continue
        after[key] = ExecutionState.CANCELLED
        if states[key] is EntryState.WAITING:
            waiting[group].remove(key)
            continue
        if states[key] is EntryState.PARKED:
            parked.append(key)
        if row[6] & EntryFlag.RELEASES:
            ended[group] = ended.get(group, 0) + 1
            successor = waiting[group].pop(0) if waiting.get(group) else None
            if successor:
                released.append(successor)
                states[successor], after[successor] = EntryState.READY, ExecutionState.READY
    gone = sorted(key for key, state in after.items() if state is ExecutionState.CANCELLED)
    yield Query("bump_cursors", rows=[(*group, count) for group, count in sorted(ended.items()) if group[1]])
    yield Query("release_entries", rows=sorted(released))
    yield Query("cancel_entries", rows=sorted(asked))
    yield Query("cancel_executions", rows=gone)
    yield Query("delete_entries", rows=gone)
    yield Query("delete_failures", rows=sorted(parked))
    return {key: after[key] for key in keys if key in after}
