"""Due cursors in, executions and entries out."""

from collections import Counter
from collections.abc import Sequence

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey, JobId, ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.job import JobVersion, job_spec_from_row
from luciole.model.lease import Lease
from luciole.model.outbox import EntryState
from luciole.model.plan import DueBatch, Fire, LedgerRow, Move, Plan, PlanOutcome, Realigned
from luciole.model.schedule import Cursor, OverlapCode, Reason, ScheduleState
from luciole.model.stride import DueGroup, GroupBatch, Share, Stride, StrideOutcome, group_of, step_move
from luciole.store.bounds import (
    check_batch,
    check_limit,
    check_plan,
    check_shards,
    check_stride,
    check_trusted,
    stored_text,
)
from luciole.store.memory.client import MemoryClient
from luciole.store.memory.overlap import Admission, admit, flags_under
from luciole.store.memory.state import PLANNED_PART, EntryRow, ExecutionRow, ScheduleRow

#: What an admitted fire becomes, by (it must wait, it stays in the store).
_STATES = {
    (True, False): (ExecutionState.QUEUED, EntryState.WAITING),
    (True, True): (ExecutionState.QUEUED, EntryState.WAITING),
    (False, False): (ExecutionState.HELD, EntryState.HELD),
    (False, True): (ExecutionState.READY, EntryState.READY),
}


class MemoryPlans(MemoryClient):
    """The `PlanStore` role."""

    async def due_cursors(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> DueBatch:
        """Return cursors of active schedules with `due_us <= before_us`, the most overdue first."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_limit("limit", limit, limits.DUE_MAX)
        wanted = frozenset(shards)
        with self._transaction():
            check_shards(shards, self._state.shards)
            rows = [row for row in self._state.schedules.values() if row.due_us is not None and row.shard in wanted]
            cursors = sorted((row.cursor() for row in rows), key=_overdue_first)
        due = [cursor for cursor in cursors if cursor.due_us <= before_us]
        # Each shard gets an equal share first; the most overdue of all get what is left.
        share = max(1, limit // max(1, len(wanted)))
        taken = dict.fromkeys(wanted, 0)
        shared: list[Cursor] = []
        more: list[Cursor] = []
        for cursor in due:
            taken[cursor.shard] += 1
            (shared if taken[cursor.shard] <= share else more).append(cursor)
        chosen = frozenset([*shared, *more][:limit])
        return DueBatch(
            cursors=tuple(sorted(chosen, key=lambda cursor: (cursor.shard, *_overdue_first(cursor)))),
            next_due_us=next((cursor.due_us for cursor in cursors if cursor not in chosen), None),
        )

    async def load_triggers(self, ids: Sequence[TriggerId]) -> dict[TriggerId, str]:
        """Return the canonical texts of triggers."""
        check_batch("ids", ids, limits.DUE_MAX)
        with self._transaction():
            return {number: self._state.triggers[number] for number in ids if number in self._state.triggers}

    async def load_jobs(self, ids: Sequence[JobId]) -> dict[JobId, JobVersion]:
        """Return job versions; those that this version can't read are absent."""
        check_batch("ids", ids, limits.DUE_MAX)
        versions = {}
        with self._transaction():
            for job_id in ids:
                row = self._state.jobs.get(job_id)
                try:
                    spec = row and job_spec_from_row(
                        row.namespace, row.handler, row.payload, row.content_type, row.options
                    )
                except InvalidValue:
                    continue  # I7: one that can't be read never hides the others.
                if spec:
                    versions[job_id] = JobVersion(job_id=job_id, spec=spec)
        return versions

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        """Make one chunk durable: executions, outbox entries, ledger rows and moved cursors."""
        check_plan(plan, limits.PLAN_BATCH_MAX)
        leases = {lease.shard: lease for lease in plan.leases}
        held: list[EntryRow] = []
        created, skipped, lost, refused = 0, 0, [], set()
        # I2: one transaction; cursor, executions and entries of a schedule commit together.
        with self._transaction() as now_us:
            check_trusted(plan.leases, self._clock.monotonic_us())
            for move in plan.moves:
                cursor = move.cursor
                row = self._state.schedules.get(cursor.schedule_id)
                if not self._state.holds(leases.get(cursor.shard), now_us):
                    refused.add(cursor.shard)  # I3: nothing of this shard is written.
                elif row is None or not _stands(row, move):
                    lost.append(cursor.schedule_id)
                else:
                    entries, left_out = self._fire(row, move, now_us)
                    self._advance(row, move)
                    held += (entry for entry in entries if entry.state is EntryState.HELD)
                    created += len(entries)
                    skipped += left_out
            return PlanOutcome(
                entries=tuple(row.entry() for row in held if self._state.entry(row.key)),
                created=created,
                skipped=skipped,
                lost=tuple(lost),
                refused=frozenset(refused),
            )

    async def due_groups(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> GroupBatch:
        """Count due cursors by what decides their next step, the most overdue first."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_limit("limit", limit, limits.PLAN_BATCH_MAX)
        shares: list[Share] = []
        groups: Counter[DueGroup] = Counter()
        more = False
        with self._transaction():
            check_shards(shards, self._state.shards)
            for shard in sorted(set(shards)):
                due = self._due_in(shard, before_us)
                taken = due[:limit]
                more = more or len(due) > len(taken)
                groups.update(group_of(cursor) for cursor in taken)
                if taken:
                    shares.append(Share(shard, len(taken), taken[-1].due_us, taken[-1].schedule_id))
        return GroupBatch(shares=tuple(shares), groups=dict(groups), more=more)

    async def commit_stride(self, stride: Stride) -> StrideOutcome:
        """Make one step durable for each cursor of the shares whose group has one."""
        check_stride(stride, limits.PLAN_BATCH_MAX)
        steps = {step.group: step for step in stride.steps}
        leases = {lease.shard: lease for lease in stride.leases}
        made: list[EntryRow] = []
        refused = set()
        # I2: one transaction; cursor, execution and entry of one fire commit together.
        with self._transaction() as now_us:
            check_trusted(stride.leases, self._clock.monotonic_us())
            for share in sorted(stride.shares):
                if not self._state.holds(leases.get(share.shard), now_us):
                    refused.add(share.shard)  # I3: nothing of this shard is written.
                    continue
                for cursor in self._due_in(share.shard, share.through_us):
                    step = steps.get(group_of(cursor))
                    if step is None or _overdue_first(cursor) > (share.through_us, share.through_id):
                        continue
                    move = step_move(cursor, step, ready=share.shard in stride.ready)
                    row = self._state.schedules[cursor.schedule_id]
                    if self._is_plain(row, move):
                        made += self._fire(row, move, now_us)[0]
                        self._advance(row, move)
        held = tuple(row.entry() for row in made if row.state is EntryState.HELD)
        left = stride.cursors(frozenset(refused)) - len(made)
        return StrideOutcome(entries=held, created=len(made), left=left, refused=frozenset(refused))

    def _due_in(self, shard: Shard, before_us: Instant) -> list[Cursor]:
        rows = self._state.schedules.values()
        cursors = [row.cursor() for row in rows if row.shard == shard and row.due_us is not None]
        return sorted((cursor for cursor in cursors if cursor.due_us <= before_us), key=_overdue_first)

    def _is_plain(self, row: ScheduleRow, move: Move) -> bool:
        """Whether a fire is neither there already nor something that overlap has a say in."""
        key = ExecutionKey(row.shard, row.schedule_id, move.cursor.fire_us, PLANNED_PART)
        is_free = move.overlap is OverlapCode.ALLOW or not self._state.entries[row.group]
        return is_free and self._state.execution(key) is None

    async def zone_rules(self) -> dict[Shard, str]:
        """Return the recorded rules of zones."""
        with self._transaction():
            return dict(self._state.rules)

    async def active_cursors(self, shard: Shard, *, after: ScheduleId, limit: int) -> tuple[Cursor, ...]:
        """Return cursors of active schedules of a shard, in the order of their ids, after one."""
        check_limit("limit", limit, limits.PAGE_MAX)
        with self._transaction():
            check_shards([shard], self._state.shards)
            rows = [row for row in self._state.schedules.values() if row.shard == shard and row.due_us is not None]
            cursors = sorted((row.cursor() for row in rows), key=lambda cursor: cursor.schedule_id)
            return tuple(cursor for cursor in cursors if cursor.schedule_id > after)[:limit]

    async def realign(self, leases: Sequence[Lease], moves: Sequence[Realigned], *, rules: str | None) -> int:
        """Move cursors to where other rules of zones put their fire times; return how many moved."""
        check_batch("moves", moves, limits.PAGE_MAX)
        moved = 0
        with self._transaction() as now_us:
            held = {lease.shard for lease in leases if self._state.holds(lease, now_us)}  # I3
            for cursor, fire_us, due_us in moves:
                row = self._state.schedules.get(cursor.schedule_id)
                if row is None or row.shard not in held or row.due_us is None:
                    continue
                moved_on = (row.fire_us, row.revision) != (cursor.fire_us, cursor.revision)
                if moved_on or self._has_outcome(row, fire_us):
                    continue
                row.fire_us, row.due_us = fire_us, due_us
                row.revision += 1
                self._state.hint([row.shard])
                moved += 1
            if rules is not None:
                self._state.rules |= dict.fromkeys(held, rules)
        return moved

    def _has_outcome(self, row: ScheduleRow, from_us: Instant) -> bool:
        """Whether a fire time of a schedule, from an instant to its cursor, has its outcome (I1, I4)."""
        keys = self._state.executions[row.group]
        if any(key.part >= PLANNED_PART and from_us <= key.fire_us < row.fire_us for key in keys):
            return True
        skipped = self._state.ledger[row.group]
        return bool(skipped) and skipped[-1].last_us >= from_us

    async def park_schedules(self, leases: Sequence[Lease], parked: Sequence[tuple[ScheduleId, Shard, str]]) -> int:
        """Stop schedules that the engine can't read, each with its reason (I7)."""
        check_batch("parked", parked, limits.DUE_MAX)
        by_shard = {lease.shard: lease for lease in leases}
        count = 0
        with self._transaction() as now_us:
            check_trusted(leases, self._clock.monotonic_us())
            for schedule_id, shard, reason in parked:
                row = self._state.schedules.get(schedule_id)
                if row is None or (row.shard, row.state) != (shard, ScheduleState.ACTIVE):
                    continue
                if self._state.holds(by_shard.get(shard), now_us):
                    # I7: it stays, visible and repairable.
                    row.state, row.due_us, row.updated_us = ScheduleState.PARKED, None, now_us
                    row.reason = stored_text(reason, limits.ERROR_TEXT_LENGTH_MAX)
                    row.revision += 1
                    count += 1
        return count

    def _fire(self, row: ScheduleRow, move: Move, now_us: Instant) -> tuple[list[EntryRow], int]:
        """Create what overlap admits; return the entries, and how many fires became ledger rows instead."""
        entries: list[EntryRow] = []
        skipped = 0
        steps: list[tuple[Instant, Fire | LedgerRow]] = [(fire.fire_us, fire) for fire in move.fires]
        steps += [(ledger_row.first_us, ledger_row) for ledger_row in move.ledger]
        for _, step in sorted(steps, key=lambda step: step[0]):
            if isinstance(step, LedgerRow):
                self._state.add_ledger(row.group, step)
                continue
            key = ExecutionKey(row.shard, row.schedule_id, step.fire_us, PLANNED_PART)
            if self._state.execution(key):
                continue  # I1: it exists, so it brings no second entry.
            admission = admit(self._state, row.group, move.overlap, now_us)
            if admission is Admission.SKIP:
                skipped += 1
                self._state.add_ledger(row.group, LedgerRow(step.fire_us, step.fire_us, 1, Reason.OVERLAP))
            else:
                entries.append(self._create_planned(row, move, step, admission is Admission.WAIT, now_us))
        return entries, skipped

    def _create_planned(self, row: ScheduleRow, move: Move, fire: Fire, waits: bool, now_us: Instant) -> EntryRow:  # noqa: FBT001 - private
        execution_state, entry_state = _STATES[waits, move.ready]
        key = ExecutionKey(row.shard, row.schedule_id, fire.fire_us, PLANNED_PART)
        execution = ExecutionRow(
            key=key,
            job_id=row.job_id,
            state=execution_state,
            due_us=fire.due_us,
            priority=move.priority,
            created_us=now_us,
        )
        entry = EntryRow(
            key=key,
            due_us=fire.due_us,
            priority=move.priority,
            job_id=row.job_id,
            flags=flags_under(move.overlap, move.flags),
            state=entry_state,
            route=0 if entry_state is EntryState.HELD else self._state.route_of_job(row.job_id),
        )
        self._state.open_execution(execution, entry)
        if entry_state is EntryState.READY:
            self._state.hint([row.shard])
        return entry

    def _advance(self, row: ScheduleRow, move: Move) -> None:
        row.revision += 1
        row.due_us = move.next_due_us
        if move.next_fire_us is None:
            row.state, row.due_us = ScheduleState.EXHAUSTED, None
        # I2: cursors only move forward, also past the last fire time that there is.
        row.fire_us = row.fire_us + 1 if move.next_fire_us is None else move.next_fire_us


def _overdue_first(cursor: Cursor) -> tuple[Instant, ScheduleId]:
    return cursor.due_us, cursor.schedule_id


def _stands(row: ScheduleRow, move: Move) -> bool:
    """Whether the cursor is where the planner read it."""
    cursor = move.cursor
    return row.due_us is not None and (row.shard, row.fire_us, row.revision) == (
        cursor.shard,
        cursor.fire_us,
        cursor.revision,
    )
