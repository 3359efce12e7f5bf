"""Repair: rows of the store's own that a partial restore left out.

They are made at initialisation and never deleted, so a missing one is a damage. Each comes back so that nothing which
was given out before is given out again.
"""

from collections.abc import Sequence

from luciole import limits
from luciole.model.lease import LOST_HOLDER
from luciole.store.reads import Repair, restored_leases
from luciole.store.sql.migrate import SEGMENTS, Migration, pending, recorded_shards
from luciole.store.sql.script import Query, Script

#: What finds the greatest id in use of each segment.
_GREATEST = (Query("greatest_id"), Query("greatest_job"), Query("greatest_trigger"))


def repair(known: Sequence[Migration]) -> Script[tuple[Repair, ...]]:
    """Restore what is missing; return what that was.

    Raises:
        SchemaMismatch: the database is newer.
        StoreCorrupt: a changed migration, or the number of shards is missing, which nothing else tells for sure.
    """
    yield Query("lock_schema")
    exists = yield Query("schema_exists")
    applied = (yield Query("applied_migrations")) if exists[0][0] else ()
    if not applied:
        return ()
    pending(applied, known)
    shards = yield from recorded_shards()
    leases = yield from _restore_leases(shards)
    segments = yield from _restore_segments()
    return (*leases, *segments)


def _restore_leases(shards: int) -> Script[tuple[Repair, ...]]:
    found = yield Query("lease_fences")
    missing = sorted(set(range(shards)) - {row[0] for row in found})
    if not missing:
        return ()
    now_us = (yield Query("clock"))[0][0]
    # I3: fences count take-overs, so the clock is far ahead of each that was ever given out.
    fence = max([now_us, *(row[1] + 1 for row in found)])
    rows = [(shard, LOST_HOLDER, fence) for shard in missing]
    yield Query("restore_leases", rows=rows)
    return (restored_leases(missing, shards, fence),)


def _restore_segments() -> Script[tuple[Repair, ...]]:
    found = {row[0] for row in (yield Query("id_segments"))}
    restored = []
    for name, greatest in zip(SEGMENTS, _GREATEST, strict=True):
        if name not in found:
            used = (yield greatest)[0][0]
            # Programs may still use segments that they took before.
            following = (used or 0) + limits.REPAIR_ID_GAP
            yield Query("restore_id_segment", {"name": name, "next": following})
            text = f"the row {name!r} was missing; restored, ids go on from {following}"
            restored.append(Repair(subject="id_segment", text=text))
    return tuple(restored)
