"""The ledger: fire times that did not become executions."""

from collections.abc import Iterable

from luciole.model.ids import ScheduleId, Shard
from luciole.model.plan import LedgerRow
from luciole.model.schedule import Reason
from luciole.store.sql.script import Query, Script

#: A ledger row and the schedule that it belongs to.
Skip = tuple[Shard, ScheduleId, LedgerRow]


def add_ledger(skips: Iterable[Skip]) -> Script[None]:
    """Record fire times that did not become executions, in the order of their times for each schedule (I4).

    A row extends the schedule's newest one when the reason is the same and no fire time between them became an
    execution. The caller has written the executions of the same move before.
    """
    skips = sorted(skips)
    if not skips:
        return
    groups = sorted({(shard, schedule_id) for shard, schedule_id, _ in skips})
    heads = {
        (row[0], row[1]): LedgerRow(row[2], row[3], row[4], Reason(row[5]))
        for row in (yield Query("ledger_heads", rows=groups))
    }
    instants = sorted({(shard, schedule_id, row.first_us) for shard, schedule_id, row in skips})
    fired = {(row[0], row[1], row[2]): row[3] for row in (yield Query("last_fires", rows=instants))}
    stored = {(*group, head.first_us, head.reason.value) for group, head in heads.items()}
    changed: dict[tuple[Shard, ScheduleId, int, str], LedgerRow] = {}
    for shard, schedule_id, row in skips:
        head = heads.get((shard, schedule_id))
        between = fired.get((shard, schedule_id, row.first_us))
        new = row
        # I4: a range, a count, a reason: an adjacent skip extends its row.
        if head and head.reason is row.reason and not (between is not None and between > head.last_us):
            new = head._replace(last_us=max(head.last_us, row.last_us), fires=head.fires + row.fires)
        changed[shard, schedule_id, new.first_us, new.reason.value] = new
        heads[shard, schedule_id] = max(head, new) if head else new
    rows = [(*key, row.last_us, row.fires) for key, row in sorted(changed.items())]
    yield Query("extend_ledger", rows=[row for row in rows if row[:4] in stored])
    yield Query("insert_ledger", rows=[row for row in rows if row[:4] not in stored])
