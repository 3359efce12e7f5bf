"""What users declare, over SQL: jobs, triggers, schedules."""

from collections.abc import Sequence
from hashlib import sha256
from operator import itemgetter
from typing import TypeAlias

from luciole import limits
from luciole.errors import StoreCorrupt
from luciole.model.ids import IdSegment, JobId, ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.job import EntryFlag, JobSpec
from luciole.model.outbox import EntryState
from luciole.model.plan import LedgerRow
from luciole.model.schedule import NewSchedule, Reason, ScheduleState, is_over, left_by, pack_policy
from luciole.model.sharding import shard_of_id
from luciole.store.bounds import check_batch, check_job, check_limit, check_schedules, check_shards, stored_text
from luciole.store.reads import Page
from luciole.store.sql.cancelling import release
from luciole.store.sql.dialect import Lane, Role
from luciole.store.sql.ledger import add_ledger
from luciole.store.sql.reads import HIGHEST
from luciole.store.sql.script import Query, Row, Script

#: A job version, a trigger and a packed policy: what makes one definition equal to another.
_Definition: TypeAlias = tuple[JobId, TriggerId, int]

#: Above every name that starts with a prefix.
_HIGHEST = "\U0010ffff"


class SqlCatalog(Role):
    """The role `CatalogStore`."""

    async def take_ids(self, count: int) -> IdSegment:
        """Take a segment of ids that nobody else gets."""
        check_limit("count", count, limits.ID_SEGMENT_MAX)
        return IdSegment(first=await self._db.write(Lane.CATALOG, _take, "id", count), count=count)

    async def intern_jobs(self, specs: Sequence[JobSpec]) -> tuple[JobId, ...]:
        """Return the version id of each spec, in order, storing new ones."""
        check_batch("specs", specs, limits.REGISTER_BATCH_MAX)
        for spec in specs:
            check_job(spec)
        ids = await self._db.write(Lane.CATALOG, _intern_jobs, specs)
        return tuple(ids[spec] for spec in specs)

    async def put_schedules(
        self, schedules: Sequence[NewSchedule], *, first_id: int, replace: bool = True
    ) -> tuple[ScheduleId | None, ...]:
        """Insert or update schedules by (namespace, name); ids in order, None where that was not allowed."""
        check_schedules(schedules)
        ids, shards = await self._db.write(Lane.CATALOG, _put, schedules, first_id, replace, self.shards)
        if shards:
            self._db.hint(shards)
        return ids

    async def set_schedule_state(
        self,
        schedule_id: ScheduleId,
        state: ScheduleState,
        *,
        reason: str | None,
        fire_us: Instant | None,
        due_us: Instant | None,
        revision: int,
        ledger: Sequence[LedgerRow] = (),
    ) -> bool:
        """Pause, resume or delete one schedule, while `revision` is the cursor's."""
        check_batch("ledger", ledger, limits.PAGE_MAX)
        text = stored_text(reason, limits.ERROR_TEXT_LENGTH_MAX)
        shard = await self._db.write(
            Lane.CATALOG, _set_state, schedule_id, state, text, (fire_us, due_us), revision, ledger
        )
        if shard is not None:
            self._db.hint(frozenset({shard}))
        return shard is not None

    async def reschedule(self, namespace: str, name_prefix: str, at_us: Instant) -> int:
        """Move the next fire of every active schedule whose name starts so to one instant."""
        low: str | None = name_prefix
        moved = 0
        while low is not None:
            names = (namespace, low, name_prefix + HIGHEST)
            shards, low = await self._db.write(Lane.CATALOG, _reschedule, names, at_us)
            if shards:
                self._db.hint(frozenset(shards))
            moved += len(shards)
        return moved

    async def prune_schedules(
        self, shard: Shard, before_us: Instant, *, after: ScheduleId, limit: int
    ) -> Page[ScheduleId]:
        """Delete schedules that are over since before an instant and left nothing behind."""
        check_limit("limit", limit, limits.PRUNE_BATCH_MAX)
        check_shards([shard], self.shards)
        seen = await self._db.read(Lane.READ, _walk_schedules, shard, after, limit)
        stopped = [row[0] for row in seen if row[1] is None]
        deleted = await self._db.write(Lane.CATALOG, _prune_schedules, shard, stopped, before_us) if stopped else ()
        return Page(rows=deleted, next=str(seen[-1][0]) if len(seen) == limit else None)


def _walk_schedules(shard: Shard, after: ScheduleId, limit: int) -> Script[Sequence[Row]]:
    return (yield Query("schedule_walk", {"shard": shard, "after": after, "limit": limit}))


def _prune_schedules(shard: Shard, ids: Sequence[ScheduleId], before_us: Instant) -> Script[tuple[ScheduleId, ...]]:
    locked = yield Query("lock_stopped", rows=[(shard, schedule_id) for schedule_id in ids])
    over = [
        (shard, schedule_id)
        for schedule_id, stored, updated_us, fire_us in locked
        if is_over(_without_fire(ScheduleState(stored)), updated_us, fire_us, before_us)
    ]
    # A new statement, after the locks: a run by hand at the same moment is seen.
    kept = {row[0] for row in (yield Query("kept_schedules", rows=over))}
    gone = [key for key in over if key[1] not in kept]
    yield Query("delete_schedules", rows=[(schedule_id,) for _, schedule_id in gone])
    yield Query("delete_cursors", rows=gone)
    return tuple(schedule_id for _, schedule_id in gone)


def _without_fire(stored: ScheduleState) -> ScheduleState:
    """Return the state of a schedule whose cursor has no due time: planning the last fire leaves the row as it is."""
    return ScheduleState.EXHAUSTED if stored is ScheduleState.ACTIVE else stored


def _take(name: str, count: int) -> Script[int]:
    rows = yield Query("take_ids", {"name": name, "count": count})
    if not rows:
        raise StoreCorrupt(
            f"id_segment: the row {name!r} is missing (a partial restore?): run `luciole migrate --repair`"
        )
    return int(rows[0][0])


def _reschedule(names: tuple[str, str, str], at_us: Instant) -> Script[tuple[list[Shard], str | None]]:
    """Move a chunk of a selection; return the shards of what moved, and where the next chunk begins."""
    chunk = dict(zip(("namespace", "low", "high"), names, strict=True))
    end = yield Query("reschedule_end", {**chunk, "limit": limits.RESCHEDULE_BATCH_MAX})
    following = str(end[0][0]) if end else None
    rows = yield Query("reschedule", {**chunk, "high": following or names[2], "at_us": at_us})
    return [row[0] for row in rows], following


def _intern_jobs(specs: Sequence[JobSpec]) -> Script[dict[JobSpec, JobId]]:
    digests = {spec: spec.digest() for spec in dict.fromkeys(specs)}
    wanted = sorted(set(digests.values()))
    ids = {bytes(row[0]): row[1] for row in (yield Query("find_jobs", rows=[(digest,) for digest in wanted]))}
    new = {digest: spec for spec, digest in digests.items() if digest not in ids}
    if new:
        first = yield from _take("job", len(new))
        # Numbered in their own order, where the last one is the latest version; stored in the order of the locks.
        rows = [
            (
                digest,
                job_id,
                spec.namespace,
                spec.handler,
                spec.payload,
                spec.content_type,
                spec.options_text(),
                spec.route_id(),
            )
            for job_id, (digest, spec) in enumerate(new.items(), first)
        ]
        ids |= {bytes(row[0]): row[1] for row in (yield Query("insert_jobs", rows=sorted(rows)))}
        others = [(digest,) for digest in sorted(new) if digest not in ids]  # Somebody else stored them just now.
        ids |= {bytes(row[0]): row[1] for row in (yield Query("find_jobs", rows=others))}
    return {spec: ids[digest] for spec, digest in digests.items()}


def _intern_triggers(texts: Sequence[str]) -> Script[dict[str, TriggerId]]:
    digests = {text: sha256(text.encode()).digest() for text in dict.fromkeys(texts)}
    rows = [(digest,) for digest in sorted(digests.values())]
    ids = {bytes(row[0]): row[1] for row in (yield Query("find_triggers", rows=rows))}
    new = sorted((digest, text) for text, digest in digests.items() if digest not in ids)
    if new:
        first = yield from _take("trigger", len(new))
        numbered = [(number, text, digest) for number, (digest, text) in enumerate(new, first)]
        ids |= {bytes(row[0]): row[1] for row in (yield Query("insert_triggers", rows=numbered))}
        others = [(digest,) for digest, _ in new if digest not in ids]  # Somebody else stored them at the same moment.
        ids |= {bytes(row[0]): row[1] for row in (yield Query("find_triggers", rows=others))}
    return {text: ids[digest] for text, digest in digests.items()}


def _put(
    schedules: Sequence[NewSchedule],
    first_id: int,
    replace: bool,  # noqa: FBT001 - passed by position through `write`
    shards: int,
) -> Script[tuple[tuple[ScheduleId | None, ...], frozenset[Shard]]]:
    jobs = {id(item.spec.job): item.spec.job for item in schedules}  # To compare specs costs more than to store one.
    interned = yield from _intern_jobs(list(jobs.values()))
    job_ids = {identity: interned[spec] for identity, spec in jobs.items()}
    triggers = yield from _intern_triggers([schedule.spec.trigger for schedule in schedules])
    definitions = [
        (job_ids[id(item.spec.job)], triggers[item.spec.trigger], pack_policy(item.spec.policy, item.spec.job))
        for item in schedules
    ]
    left = yield from _insert(schedules, definitions, first_id, shards)
    changed = {shard_of_id(first_id + place, shards) for place in range(len(schedules)) if place not in left}
    names = {place: (schedules[place].spec.namespace, schedules[place].spec.name) for place in left}
    existing = yield from _existing(list(names.values()))
    ids: list[ScheduleId | None] = list(range(first_id, first_id + len(schedules)))
    for place, name in names.items():
        item, definition, row = schedules[place], definitions[place], existing.get(name)
        if row is None or (row[8] != ScheduleState.DELETED and (row[4] != item.spec.owner or not replace)):
            ids[place] = None
            continue
        ids[place] = row[2]
        if definition != tuple(row[5:8]) or row[8] == ScheduleState.DELETED:
            yield from _edit(row, item, definition)
            changed.add(row[3])
    return tuple(ids), frozenset(changed)


def _existing(names: Sequence[tuple[str, str]]) -> Script[dict[tuple[str, str], Row]]:
    rows = yield Query("lock_schedules_by_name", rows=sorted(names))
    return {(row[0], row[1]): row for row in rows}


def _insert(
    schedules: Sequence[NewSchedule], definitions: Sequence[_Definition], first_id: int, shards: int
) -> Script[list[int]]:
    """Insert schedules whose names are free; return the places of the others.

    They come before any row is locked, in the order of their names: two that declare the same never wait in a circle.
    """
    now_us = 0
    if any(item.fire_us is None for item in schedules):
        now_us = (yield Query("clock"))[0][0]
    rows = []
    for schedule_id, (item, definition) in enumerate(zip(schedules, definitions, strict=True), first_id):
        spec = item.spec
        first = _first(item.fire_us, item.due_us, now_us)
        shard = shard_of_id(schedule_id, shards)
        rows.append((schedule_id, shard, spec.name, spec.namespace, spec.owner, *definition, *first))
    rows.sort(key=itemgetter(3, 2))
    left = yield Query("insert_schedules", rows=rows)
    return sorted(row[0] - first_id for row in left)


def _first(fire_us: Instant | None, due_us: Instant | None, else_us: Instant) -> tuple[Instant, Instant | None]:
    """Return where a cursor stands: at a fire time, or exhausted."""
    if fire_us is None:
        return else_us, None
    return fire_us, fire_us if due_us is None else due_us


def _edit(row: Row, item: NewSchedule, definition: _Definition) -> Script[None]:
    _, _, schedule_id, shard, _, _, trigger_id, _, stored, fire_us, due_us = row
    state = ScheduleState(stored)
    runs_out = state is ScheduleState.ACTIVE and due_us is None
    has_cursor = state not in {ScheduleState.DELETED, ScheduleState.EXHAUSTED} and not runs_out
    group = (shard, schedule_id)
    fire_us, due_us = yield from _withdraw(group, fire_us, due_us)
    if has_cursor and definition[1] == trigger_id:
        # The trigger is the same, so the cursor stays: a fire that is overdue is not lost by a change of the payload.
        if state is ScheduleState.PARKED:
            due_us = item.due_us if item.fire_us == fire_us else fire_us
    else:
        now_us = (yield Query("clock"))[0][0]
        left = left_by(fire_us, item, now_us) if has_cursor else None
        if left:
            # I4: it was due under the old trigger, and nobody will plan it any more.
            reason = Reason.PAUSED if state is ScheduleState.PAUSED else Reason.DISABLED
            yield from add_ledger([(*group, LedgerRow(*left, reason))])
        fire_us, due_us = _first(item.fire_us, item.due_us, fire_us)
    if state is ScheduleState.PAUSED:
        due_us = None
    yield Query(
        "edit_schedule",
        {
            "schedule_id": schedule_id,
            "shard": shard,
            "owner": item.spec.owner,
            "job_id": definition[0],
            "trigger_id": definition[1],
            "policy_id": definition[2],
            "state": (ScheduleState.PAUSED if state is ScheduleState.PAUSED else ScheduleState.ACTIVE).value,
            "fire_us": fire_us,
            "due_us": due_us,
        },
    )


def _withdraw(
    group: tuple[Shard, ScheduleId], fire_us: Instant, due_us: Instant | None
) -> Script[tuple[Instant, Instant | None]]:
    """Take back what was made ahead and is not due; return the fire and due time that the cursor steps back to."""
    binds = {"shard": group[0], "schedule_id": group[1]}
    rows = yield Query("future_entries", binds)
    if rows:
        # Counted first, then judged anew: their holder may have been told meanwhile that all of it stands.
        yield Query("count_withdrawals", rows=[(group[0],)])
        rows = yield Query("future_entries", binds)
    keys = [tuple(row[:4]) for row in rows]
    yield Query("delete_entries", rows=keys)
    yield Query("delete_executions", rows=keys)
    ended = sum(row[4] != EntryState.WAITING and bool(row[5] & EntryFlag.RELEASES) for row in rows)
    if ended:
        yield from release({group: ended})
    first_us, first_due_us = min(((row[2], row[6]) for row in rows), default=(fire_us, due_us))
    if first_us >= fire_us:
        return fire_us, due_us
    return first_us, None if due_us is None else first_due_us


def _set_state(
    schedule_id: ScheduleId,
    state: ScheduleState,
    reason: str | None,
    first: tuple[Instant | None, Instant | None],
    revision: int,
    ledger: Sequence[LedgerRow],
) -> Script[Shard | None]:
    """Change a state; return the schedule's shard, None when the cursor's revision is another one."""
    found = yield Query("lock_schedule", {"schedule_id": schedule_id})
    if not found or found[0][1] == ScheduleState.DELETED or found[0][4] != revision:
        return None
    shard, _, fire_us, due_us, _ = found[0]
    group = (shard, schedule_id)
    if state is ScheduleState.ACTIVE:
        fire_us, due_us = _first(*first, fire_us)
    else:
        fire_us, due_us = yield from _withdraw(group, fire_us, None)
        if state is ScheduleState.PAUSED and first[0] is not None:
            fire_us = first[0]
    yield Query("write_schedule_state", {"schedule_id": schedule_id, "state": state.value, "reason": reason})
    yield Query("write_cursor", {"shard": shard, "schedule_id": schedule_id, "fire_us": fire_us, "due_us": due_us})
    yield from add_ledger([(*group, row) for row in ledger])
    return int(shard)
