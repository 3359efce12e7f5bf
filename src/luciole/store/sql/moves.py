"""One chunk of a plan as a transaction script.

Nearly every move is plain: one fire, no ledger row, nothing open that overlap minds. Those go set-wise through
`judge_moves` and `write_moves`. The rest is locked, looked at, decided in Python and written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey, ScheduleId, Shard
from luciole.model.instant import Instant
from luciole.model.outbox import Entry, EntryState
from luciole.model.plan import LedgerRow, Move, Plan, PlanOutcome
from luciole.model.schedule import OverlapCode, Reason
from luciole.store.sql.cancelling import cancel, entries_of
from luciole.store.sql.leases import check_fences
from luciole.store.sql.ledger import Skip, add_ledger
from luciole.store.sql.overlap import Made, Open, flags_under, open_of_row
from luciole.store.sql.script import Query, Script

#: A plain move as `write_moves` takes it; `judge_moves` takes all but the job.
MoveRow: TypeAlias = tuple[
    Shard, ScheduleId, Instant, int, Instant, Instant, Instant, Instant | None, int, int, int, int, int
]

#: The part of executions that the planner writes.
_PLANNED_PART = 0


@dataclass(slots=True)
class _Decided:
    """What became of the moves that were not plain."""

    entries: dict[ScheduleId, list[Entry]] = field(default_factory=dict)
    created: int = 0
    skipped: int = 0
    lost: list[ScheduleId] = field(default_factory=list)


@dataclass(slots=True)
class Written:
    """What one chunk's transaction did, in the script's own terms."""

    refused: frozenset[Shard]
    plain: Sequence[MoveRow]  #: those that stand in shards that are held
    left: set[ScheduleId]  #: plain ones that could not be written as they were
    decided: _Decided


def plain_rows(plan: Plan) -> list[MoveRow]:
    """Return the plain moves of a chunk as rows, in key order. Pure: it takes no part of the transaction's time."""
    return sorted([_move_row(move) for move in plan.moves if len(move.fires) == 1 and not move.ledger])


def commit_plan(plan: Plan, rows: Sequence[MoveRow]) -> Script[Written]:
    """Make one chunk durable; see `PlanStore.commit_plan`.

    Args:
        plan: the chunk.
        rows: its `plain_rows`.
    """
    # I2: one transaction; cursor, executions and entries of a schedule commit together.
    held = yield from check_fences(plan.leases)
    moves: Sequence[Move] = plan.moves
    refused = frozenset({move.cursor.shard for move in moves} - held)
    if refused:  # I3: nothing of these shards is written.
        moves = [move for move in moves if move.cursor.shard not in refused]
        rows = [row for row in rows if row[0] not in refused]
    left = yield from _write_plain(rows)
    if len(rows) == len(moves) and not left:
        return Written(refused=refused, plain=rows, left=left, decided=_Decided())
    written = {row[1] for row in rows} - left
    decided = yield from _write_decided([move for move in moves if move.cursor.schedule_id not in written])
    return Written(refused=refused, plain=rows, left=left, decided=decided)


def plan_outcome(plan: Plan, written: Written) -> PlanOutcome:
    """Return what the caller is told of a chunk. Pure."""
    decided = written.decided
    if len(written.plain) == len(plan.moves) and not written.left:
        planned = _entries(plan.moves)
    else:
        ids = {row[1] for row in written.plain} - written.left
        planned = []
        for move in plan.moves:
            if move.cursor.schedule_id in ids:
                planned += _entries((move,))
            else:
                planned += decided.entries.get(move.cursor.schedule_id, ())
    return PlanOutcome(
        entries=tuple(planned),
        created=len(written.plain) - len(written.left) + decided.created,
        skipped=decided.skipped,
        lost=tuple(decided.lost),
        refused=written.refused,
    )


def _move_row(move: Move) -> MoveRow:
    cursor, fires, next_fire_us, next_due_us, overlap, priority, flags, _, ready = move
    fire_us, due_us = fires[0]
    if next_fire_us is None:
        # I2: cursors only move forward, also past the last fire time that there is.
        next_fire_us, next_due_us = cursor.fire_us + 1, None
    if overlap >= OverlapCode.QUEUE_ONE:
        flags = flags_under(overlap, flags)
    return (
        cursor.shard,
        cursor.schedule_id,
        cursor.fire_us,
        cursor.revision,
        fire_us,
        due_us,
        next_fire_us,
        next_due_us,
        overlap,
        priority,
        flags,
        ready,
        cursor.job_id,
    )


def _entries(moves: Iterable[Move]) -> list[Entry]:
    """Return the entries to hold in memory of plain moves that were written."""
    entries = []
    for cursor, fires, _, _, overlap, priority, flags, _, ready in moves:
        if not ready:
            fire_us, due_us = fires[0]
            key = ExecutionKey(cursor.shard, cursor.schedule_id, fire_us, _PLANNED_PART)
            if overlap >= OverlapCode.QUEUE_ONE:
                flags = flags_under(overlap, flags)  # noqa: PLW2901 - the entry's, from here on
            entries.append(Entry(key, due_us, priority, 1, 0, cursor.job_id, flags))
    return entries


def _write_plain(rows: Sequence[MoveRow]) -> Script[set[ScheduleId]]:
    """Write plain moves; return the schedules of those that were left alone."""
    unfit = {row[0] for row in (yield Query("judge_moves", rows=rows))}
    if unfit:
        rows = [row for row in rows if row[1] not in unfit]
    missed = yield Query("write_moves", rows=rows)
    return unfit | {row[0] for row in missed}


def _write_decided(moves: Sequence[Move]) -> Script[_Decided]:
    """Lock, look, decide and write what is not plain."""
    decided = _Decided()
    standing = yield from _standing(moves, decided)
    found = yield from _open_of(standing)
    exists = yield from _existing(standing)
    now_us = yield from _end_replaced(standing, found, exists)
    skips: list[Skip] = []
    for move in standing:
        opened = found.setdefault(move.cursor.schedule_id, Open())
        left_out = _decide(move, opened, exists, now_us)
        skips += [(move.cursor.shard, move.cursor.schedule_id, row) for row in (*move.ledger, *left_out)]
        decided.skipped += len(left_out)
        decided.created += len(opened.made)
        decided.entries[move.cursor.schedule_id] = [
            _entry(move, made) for made in opened.made if made.entry_state is EntryState.HELD
        ]
    yield from _write_made(standing, found)
    yield from add_ledger(skips)
    return decided


def _standing(moves: Sequence[Move], decided: _Decided) -> Script[list[Move]]:
    """Lock the cursors; return the moves whose cursor is where the planner read it."""
    groups = sorted((move.cursor.shard, move.cursor.schedule_id) for move in moves)
    stands = {
        (shard, schedule_id, fire_us, revision)
        for shard, schedule_id, fire_us, revision, due_us in (yield Query("lock_cursors", rows=groups))
        if due_us is not None
    }
    standing = []
    for move in moves:
        cursor = move.cursor
        if (cursor.shard, cursor.schedule_id, cursor.fire_us, cursor.revision) in stands:
            standing.append(move)
        else:
            decided.lost.append(cursor.schedule_id)
    return standing


def _open_of(moves: Sequence[Move]) -> Script[dict[ScheduleId, Open]]:
    """Look, in a statement after the lock, at what is open of the schedules that mind it."""
    groups = sorted(
        (move.cursor.shard, move.cursor.schedule_id) for move in moves if move.overlap is not OverlapCode.ALLOW
    )
    rows = yield Query("open_of_schedules", rows=groups)
    return {row[0]: open_of_row(row) for row in rows}


def _existing(moves: Sequence[Move]) -> Script[set[tuple[ScheduleId, Instant]]]:
    keys = sorted((move.cursor.shard, move.cursor.schedule_id, fire.fire_us) for move in moves for fire in move.fires)
    rows = yield Query("existing_fires", rows=keys)
    return {(row[0], row[1]) for row in rows}


def _decide(move: Move, opened: Open, exists: set[tuple[ScheduleId, Instant]], now_us: Instant) -> list[LedgerRow]:
    """Decide each fire of a move in order; return a ledger row for each that overlap leaves out."""
    left_out = []
    for fire in move.fires:
        if (move.cursor.schedule_id, fire.fire_us) in exists:
            continue  # I1: it exists, so it brings no second entry.
        if not opened.fire(fire, move.overlap, now_us, ready=move.ready):
            left_out.append(LedgerRow(fire.fire_us, fire.fire_us, 1, Reason.OVERLAP))
    return left_out


def _entry(move: Move, made: Made) -> Entry:
    key = ExecutionKey(move.cursor.shard, move.cursor.schedule_id, made.fire.fire_us, _PLANNED_PART)
    flags = flags_under(move.overlap, move.flags)
    entry = Entry(key, made.fire.due_us, move.priority, 1, 0, move.cursor.job_id, flags)
    return entry._replace(cancel=True) if made.cancel else entry


def _end_replaced(
    moves: Sequence[Move], found: Mapping[ScheduleId, Open], exists: set[tuple[ScheduleId, Instant]]
) -> Script[Instant]:
    """End what new fires replace; return the store's time, by which the fires of one move replace each other.

    Before anything is decided: what has ended releases nobody, so a new fire must not wait for it.
    """
    replacing = [move for move in moves if move.overlap is OverlapCode.REPLACE]
    groups = sorted(
        (move.cursor.shard, move.cursor.schedule_id)
        for move in replacing
        if move.cursor.schedule_id in found
        and found[move.cursor.schedule_id].gives_way(move.overlap)
        and any((move.cursor.schedule_id, fire.fire_us) not in exists for fire in move.fires)
    )
    left: dict[ScheduleId, list[ExecutionState]] = {schedule_id: [] for _, schedule_id in groups}
    for key, state in (yield from cancel((yield from entries_of(groups)))).items():
        left[key.schedule_id].append(state)
    for schedule_id, states in left.items():
        found[schedule_id].cancelled(states)
    return (yield Query("clock"))[0][0] if replacing else 0


def _write_made(moves: Sequence[Move], found: Mapping[ScheduleId, Open]) -> Script[None]:
    executions, entries = [], []
    cursors: list[tuple[int | None, ...]] = []
    for move in moves:
        cursor = move.cursor
        group = (cursor.shard, cursor.schedule_id)
        flags = flags_under(move.overlap, move.flags)
        for made in found[cursor.schedule_id].made:
            key = (*group, made.fire.fire_us, cursor.job_id)
            traits = (made.fire.due_us, move.priority, flags)
            executions.append((*key, int(made.state), *traits))
            if made.entry_state is not None:
                entries.append((*key, int(made.entry_state), *traits, made.cancel))
        if move.next_fire_us is None:
            cursors.append((*group, cursor.fire_us + 1, None))
        else:
            cursors.append((*group, move.next_fire_us, move.next_due_us))
    ended = sorted(
        (move.cursor.shard, move.cursor.schedule_id, found[move.cursor.schedule_id].unmade)
        for move in moves
        if found[move.cursor.schedule_id].unmade
    )
    yield Query("bump_cursors", rows=ended)
    yield Query("insert_fires", rows=sorted(executions))
    yield Query("insert_fire_entries", rows=sorted(entries))
    yield Query("move_cursors", rows=sorted(cursors))
