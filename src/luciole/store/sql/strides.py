"""The same step for many cursors at once, over SQL: their rows stay in the database."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from luciole.model.ids import ExecutionKey, Shard
from luciole.model.instant import Instant
from luciole.model.outbox import Entry
from luciole.model.schedule import OverlapCode
from luciole.model.stride import DueGroup, GroupBatch, Share, Step, Stride, StrideOutcome
from luciole.store.sql.leases import check_fences
from luciole.store.sql.overlap import flags_under
from luciole.store.sql.script import Query, Row, Script

_PLANNED_PART = 0

_STEP_COLUMNS = (
    "keys",
    "trigger_ids",
    "fires_us",
    "dues_us",
    "policy_ids",
    "next_fires_us",
    "next_dues_us",
    "overlaps",
    "priorities",
    "flags",
)
_SHARE_COLUMNS = ("shards", "throughs_us", "through_ids", "readies")


def due_groups(shards: Sequence[Shard], before_us: Instant, limit: int) -> Script[GroupBatch]:
    """Count due cursors by groups; see `PlanStore.due_groups`."""
    rows = yield Query("due_groups", {"before_us": before_us}, [(shard, limit) for shard in shards])
    groups: Counter[DueGroup] = Counter()
    counts: Counter[Shard] = Counter()
    last: dict[Shard, tuple[Instant, int]] = {}
    for shard, trigger_id, fire_us, due_us, policy_id, cursors, last_id in rows:
        groups[DueGroup(trigger_id, fire_us, due_us, policy_id)] += cursors
        counts[shard] += cursors
        last[shard] = max(last.get(shard, (due_us, last_id)), (due_us, last_id))
    return GroupBatch(
        shares=tuple(Share(shard, counts[shard], *last[shard]) for shard in sorted(counts)),
        groups=dict(groups),
        more=any(count >= limit for count in counts.values()),
    )


def commit_stride(stride: Stride) -> Script[tuple[frozenset[Shard], Sequence[Row]]]:
    """Make one step durable for each cursor of the shares that has one; see `PlanStore.commit_stride`.

    Returns:
        The shards whose fence was refused, and what `write_chosen` answered.
    """
    # I2: one transaction; cursor, execution and entry of one fire commit together.
    held = yield from check_fences(stride.leases)
    # I3: nothing of a refused shard is written.
    shares = [
        (share.shard, share.through_us, share.through_id, int(share.shard in stride.ready))
        for share in sorted(stride.shares)
        if share.shard in held
    ]
    refused = frozenset({share.shard for share in stride.shares} - held)
    if not shares or not stride.steps:
        return refused, ()
    by_key = {step_key(step.group): step for step in stride.steps}  # Of two with one key, one waits for `commit_plan`.
    steps = [(key, *_step_row(by_key[key])) for key in sorted(by_key)]
    yield Query("forget_chosen")
    yield Query("choose_steps", rows=[row[1:] for row in steps])
    yield Query("choose_cursors", rows=shares)
    answer = yield Query("write_chosen", _columns(_STEP_COLUMNS, steps) | _columns(_SHARE_COLUMNS, shares))
    return refused, answer


def stride_outcome(stride: Stride, refused: frozenset[Shard], answer: Sequence[Row]) -> StrideOutcome:
    """Return what the caller is told of a stride. Pure."""
    entries: list[Entry] = []
    created = 0
    for shard, fire_us, due_us, priority, flags, ready, schedule_ids, job_ids in answer:
        ids = schedule_ids.split(",")
        created += len(ids)
        if not ready:
            entries += [
                Entry(ExecutionKey(shard, schedule_id, fire_us, _PLANNED_PART), due_us, priority, 1, 0, job_id, flags)
                for schedule_id, job_id in zip(map(int, ids), map(int, job_ids.split(",")), strict=True)
            ]
    return StrideOutcome(
        entries=tuple(entries), created=created, left=stride.cursors(refused) - created, refused=refused
    )


def step_key(group: DueGroup) -> int:
    """Return a 64-bit number that groups hardly ever share; `write_chosen` computes the same of a cursor."""
    mixed = group.trigger_id ^ group.fire_us << 5 ^ group.due_us << 11 ^ group.policy_id << 17
    return (mixed + (1 << 63) & (1 << 64) - 1) - (1 << 63)


def _step_row(step: Step) -> tuple[Any, ...]:
    group = step.group
    next_fire_us, next_due_us, flags = step.next_fire_us, step.next_due_us, step.flags
    if next_fire_us is None:
        # I2: cursors only move forward, also past the last fire time that there is.
        next_fire_us, next_due_us = group.fire_us + 1, None
    if step.overlap >= OverlapCode.QUEUE_ONE:
        flags = flags_under(step.overlap, flags)
    return (*group, next_fire_us, next_due_us, int(step.overlap), step.priority, flags)


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return rows column by column, for a dialect that takes them so."""
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
