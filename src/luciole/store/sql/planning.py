"""Due cursors in, executions and entries out, over SQL."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.ids import JobId, ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.job import JobVersion, job_spec_from_row
from luciole.model.lease import Lease
from luciole.model.plan import DueBatch, Plan, PlanOutcome, Realigned
from luciole.model.schedule import Cursor
from luciole.model.stride import GroupBatch, Stride, StrideOutcome
from luciole.store.bounds import check_batch, check_limit, check_plan, check_shards, check_stride, stored_text
from luciole.store.sql import realigning
from luciole.store.sql.dialect import Lane, Role
from luciole.store.sql.leases import check_fences
from luciole.store.sql.moves import commit_plan, plain_rows, plan_outcome
from luciole.store.sql.script import Query, Row, Script
from luciole.store.sql.strides import commit_stride, due_groups, stride_outcome


class SqlPlans(Role):
    """The role `PlanStore`."""

    async def due_cursors(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> DueBatch:
        """Return cursors of active schedules with `due_us <= before_us`, the most overdue first."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_limit("limit", limit, limits.DUE_MAX)
        check_shards(shards, self.shards)
        return await self._db.read(Lane.PLAN, due_cursors, sorted(set(shards)), before_us, limit)

    async def load_triggers(self, ids: Sequence[TriggerId]) -> dict[TriggerId, str]:
        """Return the canonical texts of triggers."""
        check_batch("ids", ids, limits.DUE_MAX)
        return await self._db.read(Lane.PLAN, _load_triggers, ids)

    async def load_jobs(self, ids: Sequence[JobId]) -> dict[JobId, JobVersion]:
        """Return job versions; those that this version can't read are absent."""
        check_batch("ids", ids, limits.DUE_MAX)
        return await self._db.read(Lane.PLAN, _load_jobs, ids)

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        """Make one chunk durable: executions, outbox entries, ledger rows and moved cursors."""
        check_plan(plan, limits.PLAN_BATCH_MAX)
        outcome = plan_outcome(plan, await self._db.write(Lane.PLAN, commit_plan, plan, plain_rows(plan)))
        if outcome.created > len(outcome.entries):
            self._db.hint(frozenset(lease.shard for lease in plan.leases))
        return outcome

    async def due_groups(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> GroupBatch:
        """Count due cursors by what decides their next step, the most overdue first."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_limit("limit", limit, limits.PLAN_BATCH_MAX)
        check_shards(shards, self.shards)
        return await self._db.read(Lane.PLAN, due_groups, sorted(set(shards)), before_us, limit)

    async def commit_stride(self, stride: Stride) -> StrideOutcome:
        """Make one step durable for each cursor of the shares whose group has one."""
        check_stride(stride, limits.PLAN_BATCH_MAX)
        outcome = stride_outcome(stride, *await self._db.write(Lane.PLAN, commit_stride, stride))
        if outcome.created > len(outcome.entries):
            self._db.hint(stride.ready)
        return outcome

    async def zone_rules(self) -> dict[Shard, str]:
        """Return the recorded rules of zones."""
        return await self._db.read(Lane.READ, realigning.zone_rules)

    async def active_cursors(self, shard: Shard, *, after: ScheduleId, limit: int) -> tuple[Cursor, ...]:
        """Return cursors of active schedules of a shard, in the order of their ids, after one."""
        check_limit("limit", limit, limits.PAGE_MAX)
        check_shards([shard], self.shards)
        return await self._db.read(Lane.READ, realigning.active_cursors, shard, after, limit)

    async def realign(self, leases: Sequence[Lease], moves: Sequence[Realigned], *, rules: str | None) -> int:
        """Move cursors to where other rules of zones put their fire times; return how many moved."""
        check_batch("moves", moves, limits.PAGE_MAX)
        moved = await self._db.write(Lane.CATALOG, realigning.realign, leases, moves, rules)
        if moved:
            self._db.hint(frozenset(moved))
        return len(moved)

    async def park_schedules(self, leases: Sequence[Lease], parked: Sequence[tuple[ScheduleId, Shard, str]]) -> int:
        """Stop schedules that the engine can't read, each with its reason (I7)."""
        check_batch("parked", parked, limits.DUE_MAX)
        return await self._db.write(Lane.PLAN, _park, leases, parked)


def due_cursors(shards: Sequence[Shard], before_us: Instant, limit: int) -> Script[DueBatch]:
    """Return due cursors, and when the next is due; see `PlanStore.due_cursors`."""
    share = max(1, limit // max(1, len(shards)))
    binds = {"before_us": before_us}
    # One more than the share says whether there is more, and when that is due.
    # What moves between the questions only makes the next pass come sooner or later: an idle planner asks the first.
    found = yield Query("due_cursors", binds, [(shard, share + 1) for shard in shards], alone=True)
    chosen: list[Row] = []
    full: dict[Shard, int] = {}
    cut: list[Instant] = []  #: when the first of those is due that are left out
    later: list[Instant] = []  #: when the first of those is due that are not yet
    for shard, group in groupby(found, key=itemgetter(0)):
        rows = list(group)
        if rows[-1][4] > before_us:  # Some dialects tell it in the same answer.
            later.append(rows.pop()[4])
        taken = rows[: min(share, limit - len(chosen))]
        chosen += taken
        if len(rows) > len(taken):
            full[shard] = len(taken)
            cut.append(rows[len(taken)][4])
    room = limit - len(chosen)
    if full and room >= len(shards):  # A smaller rest is not worth a second look.
        more = yield Query(
            "due_cursors", binds, [(shard, taken + room + 1) for shard, taken in full.items()], alone=True
        )
        known = {(row[0], row[1]) for row in chosen}
        rest = [row for row in more if row[4] <= before_us and (row[0], row[1]) not in known]
        rest.sort(key=lambda row: (row[4], row[1]))
        chosen = sorted(chosen + rest[:room], key=lambda row: (row[0], row[4], row[1]))
        cut = [row[4] for row in rest[room:]]
    if not cut and not later:
        later = [row[0] for row in (yield Query("next_cursors", binds, [(shard,) for shard in shards]))]
    return DueBatch(cursors=tuple(map(Cursor._make, chosen)), next_due_us=min(cut or later, default=None))


def _load_triggers(ids: Sequence[TriggerId]) -> Script[dict[TriggerId, str]]:
    rows = yield Query("load_triggers", rows=[(number,) for number in sorted(set(ids))], alone=True)
    return {row[0]: row[1] for row in rows}


def _load_jobs(ids: Sequence[JobId]) -> Script[dict[JobId, JobVersion]]:
    rows = yield Query("load_jobs", rows=[(number,) for number in sorted(set(ids))], alone=True)
    versions = {}
    for job_id, *texts in rows:
        try:
            versions[job_id] = JobVersion(job_id=job_id, spec=job_spec_from_row(*texts))
        except InvalidValue:
            continue  # I7: one that can't be read never hides the others.
    return versions


def _park(leases: Sequence[Lease], parked: Sequence[tuple[ScheduleId, Shard, str]]) -> Script[int]:
    held = yield from check_fences(leases)  # I3: only the shard's holder.
    reasons: dict[tuple[ScheduleId, Shard], str | None] = {}
    for schedule_id, shard, reason in parked:
        if shard in held:
            reasons.setdefault((schedule_id, shard), stored_text(reason, limits.ERROR_TEXT_LENGTH_MAX))
    yield Query("lock_cursors", rows=sorted((shard, schedule_id) for schedule_id, shard in reasons))
    # I7: it stays, visible and repairable.
    stopped = yield Query("park_schedules", rows=[(*key, reason) for key, reason in sorted(reasons.items())])
    yield Query("stop_cursors", rows=sorted((row[0], row[1]) for row in stopped))
    return len(stopped)
