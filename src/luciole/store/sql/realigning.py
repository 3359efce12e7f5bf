"""New rules of zones, over SQL: which ones the cursors of a shard stand by, and moving what older ones placed."""

from collections.abc import Sequence

from luciole.model.ids import ScheduleId, Shard
from luciole.model.lease import Lease
from luciole.model.plan import Realigned
from luciole.model.schedule import Cursor
from luciole.store.sql.leases import check_fences
from luciole.store.sql.script import Query, Row, Script

#: What the keys of `meta` begin with that hold the version of a shard.
_KEY = "tzdata."


def zone_rules() -> Script[dict[Shard, str]]:
    """Return the recorded version of each shard."""
    rows = yield Query("zone_rules")
    return {int(row[0].removeprefix(_KEY)): row[1] for row in rows}


def active_cursors(shard: Shard, after: ScheduleId, limit: int) -> Script[tuple[Cursor, ...]]:
    """Return cursors of active schedules of a shard by id."""
    rows = yield Query("active_cursors", {"shard": shard, "after": after, "limit": limit})
    return tuple(map(Cursor._make, rows))


def realign(leases: Sequence[Lease], moves: Sequence[Realigned], rules: str | None) -> Script[list[Shard]]:
    """Move cursors; return the shard of each that moved."""
    held = yield from check_fences(leases)  # I3: only the shard's holder.
    wanted = {(move.cursor.shard, move.cursor.schedule_id): move for move in moves if move.cursor.shard in held}
    locked = yield Query("lock_cursors", rows=sorted(wanted))
    stand = {(row[0], row[1]) for row in locked if row[4] is not None and _is_at(row, wanted[row[0], row[1]].cursor)}
    # I1, I4: no fire time that has its outcome comes again.
    last = yield Query("last_fires", rows=sorted((*key, wanted[key].cursor.fire_us) for key in stand))
    settled = {(row[0], row[1]): row[3] for row in last}
    for row in (yield Query("ledger_heads", rows=sorted(stand))):
        key = (row[0], row[1])
        settled[key] = max(settled.get(key, row[3]), row[3])
    chosen = sorted(key for key in stand if key not in settled or settled[key] < wanted[key].fire_us)
    yield Query("realign_cursors", rows=[(*key, wanted[key].fire_us, wanted[key].due_us) for key in chosen])
    if rules is not None:
        yield Query("record_rules", rows=[(f"{_KEY}{shard}", rules) for shard in sorted(held)])
    return [shard for shard, _ in chosen]


def _is_at(row: Row, cursor: Cursor) -> bool:
    return (row[2], row[3]) == (cursor.fire_us, cursor.revision)
