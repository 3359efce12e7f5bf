"""What users declare: jobs, triggers, schedules."""

from collections.abc import Sequence

from luciole import limits
from luciole.model.ids import IdSegment, JobId, ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.job import JobSpec
from luciole.model.plan import LedgerRow
from luciole.model.schedule import NewSchedule, Reason, ScheduleState, is_over, left_by, pack_policy
from luciole.model.sharding import shard_of_id
from luciole.store.bounds import check_batch, check_job, check_limit, check_schedules, check_shards, stored_text
from luciole.store.memory.client import MemoryClient
from luciole.store.memory.state import JobRow, ScheduleRow
from luciole.store.reads import Page

#: States in which the cursor names a fire time that still has no outcome.
_WITH_CURSOR = frozenset({ScheduleState.ACTIVE, ScheduleState.PAUSED, ScheduleState.PARKED})


class MemoryCatalog(MemoryClient):
    """The `CatalogStore` role."""

    async def take_ids(self, count: int) -> IdSegment:
        """Take a segment of ids that nobody else gets."""
        check_limit("count", count, limits.ID_SEGMENT_MAX)
        with self._transaction():
            first = self._state.next_id
            self._state.next_id += count
            return IdSegment(first=first, count=count)

    async def intern_jobs(self, specs: Sequence[JobSpec]) -> tuple[JobId, ...]:
        """Return the version id of each spec, in order, storing new ones."""
        check_batch("specs", specs, limits.REGISTER_BATCH_MAX)
        for spec in specs:
            check_job(spec)
        with self._transaction():
            return tuple(self._intern_job(spec) for spec in specs)

    async def put_schedules(
        self, schedules: Sequence[NewSchedule], *, first_id: int, replace: bool = True
    ) -> tuple[ScheduleId | None, ...]:
        """Insert or update schedules by (namespace, name); ids in order, None where that was not allowed."""
        check_schedules(schedules)
        ids: list[ScheduleId | None] = []
        with self._transaction() as now_us:
            for position, schedule in enumerate(schedules):
                name = (schedule.spec.namespace, schedule.spec.name)
                row = self._state.schedules.get(self._state.schedule_names.get(name, 0))
                if row is None:
                    row = self._insert(schedule, first_id + position, now_us)
                elif row.state is not ScheduleState.DELETED and (row.owner != schedule.spec.owner or not replace):
                    ids.append(None)
                    continue
                else:
                    self._update(row, schedule, now_us)
                ids.append(row.schedule_id)
        return tuple(ids)

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
        with self._transaction() as now_us:
            row = self._state.schedules.get(schedule_id)
            if row is None or row.state is ScheduleState.DELETED or row.revision != revision:
                return False
            if state is ScheduleState.ACTIVE:
                self._activate(row, fire_us, due_us)
            else:
                row.due_us = None
                self._state.withdraw(row, now_us)
                row.state = state
                if state is ScheduleState.PAUSED and fire_us is not None:
                    row.fire_us = fire_us
            row.reason = stored_text(reason, limits.ERROR_TEXT_LENGTH_MAX)
            row.updated_us = now_us
            row.revision += 1
            for ledger_row in ledger:
                self._state.add_ledger(row.group, ledger_row)
            return True

    async def reschedule(self, namespace: str, name_prefix: str, at_us: Instant) -> int:
        """Move the next fire of every active schedule whose name starts so to one instant."""
        count = 0
        with self._transaction() as now_us:
            for row in self._state.schedules.values():
                if row.state is not ScheduleState.ACTIVE or row.namespace != namespace:
                    continue
                # I4: one that is due stays: its fire time needs an outcome first.
                if row.name.startswith(name_prefix) and row.due_us is not None and row.due_us > now_us:
                    row.fire_us = row.due_us = at_us
                    row.revision += 1
                    self._state.hint([row.shard])
                    count += 1
        return count

    async def prune_schedules(
        self, shard: Shard, before_us: Instant, *, after: ScheduleId, limit: int
    ) -> Page[ScheduleId]:
        """Delete schedules that are over since before an instant and left nothing behind."""
        check_limit("limit", limit, limits.PRUNE_BATCH_MAX)
        with self._transaction():
            check_shards([shard], self._state.shards)
            ids = sorted(row.schedule_id for row in self._state.schedules.values() if row.shard == shard)
            seen = [schedule_id for schedule_id in ids if schedule_id > after][:limit]
            deleted = tuple(schedule_id for schedule_id in seen if self._delete_if_over(schedule_id, before_us))
            return Page(rows=deleted, next=str(seen[-1]) if len(seen) == limit else None)

    def _delete_if_over(self, schedule_id: ScheduleId, before_us: Instant) -> bool:
        row = self._state.schedules[schedule_id]
        if not is_over(row.state, row.updated_us, row.fire_us, before_us):
            return False
        if any(rows[row.group] for rows in (self._state.executions, self._state.entries, self._state.ledger)):
            return False
        del self._state.schedules[schedule_id]
        del self._state.schedule_names[row.namespace, row.name]
        return True

    def _intern_job(self, spec: JobSpec) -> JobId:
        digest = spec.digest()
        job_id = self._state.job_digests.get(digest)
        if job_id is None:
            job_id = self._state.job_digests[digest] = len(self._state.jobs) + 1
            self._state.jobs[job_id] = JobRow(
                namespace=spec.namespace,
                handler=spec.handler,
                payload=spec.payload,
                content_type=spec.content_type,
                options=spec.options_text(),
                route=spec.route_id(),
            )
        return job_id

    def _intern_trigger(self, text: str) -> TriggerId:
        trigger_id = self._state.trigger_ids.setdefault(text, len(self._state.trigger_ids) + 1)
        self._state.triggers[trigger_id] = text
        return trigger_id

    def _insert(self, schedule: NewSchedule, schedule_id: ScheduleId, now_us: Instant) -> ScheduleRow:
        assert schedule_id not in self._state.schedules  # Ids come from segments that nobody else has.
        spec = schedule.spec
        row = ScheduleRow(
            schedule_id=schedule_id,
            shard=shard_of_id(schedule_id, self._state.shards),
            namespace=spec.namespace,
            name=spec.name,
            owner=spec.owner,
            job_id=self._intern_job(spec.job),
            trigger_id=self._intern_trigger(spec.trigger),
            policy_id=pack_policy(spec.policy, spec.job),
            state=ScheduleState.ACTIVE,
            created_us=now_us,
            updated_us=now_us,
            fire_us=now_us,
            due_us=None,
        )
        self._activate(row, schedule.fire_us, schedule.due_us)
        self._state.schedules[schedule_id] = row
        self._state.schedule_names[spec.namespace, spec.name] = schedule_id
        return row

    def _update(self, row: ScheduleRow, schedule: NewSchedule, now_us: Instant) -> None:
        spec = schedule.spec
        definition = (
            self._intern_job(spec.job),
            self._intern_trigger(spec.trigger),
            pack_policy(spec.policy, spec.job),
        )
        is_deleted = row.state is ScheduleState.DELETED
        if definition == (row.job_id, row.trigger_id, row.policy_id) and not is_deleted:
            return
        self._state.withdraw(row, now_us)
        keeps_cursor = definition[1] == row.trigger_id and row.state in _WITH_CURSOR
        row.job_id, row.trigger_id, row.policy_id = definition
        row.owner = spec.owner
        row.version += 1
        row.revision += 1
        row.updated_us = now_us
        if row.state is not ScheduleState.PAUSED:
            row.reason = None
        if keeps_cursor:
            self._keep_cursor(row, schedule)
            return
        left = left_by(row.fire_us, schedule, now_us) if row.state in _WITH_CURSOR else None
        if left:
            # I4: it was due under the old trigger, and nobody will plan it any more.
            reason = Reason.PAUSED if row.state is ScheduleState.PAUSED else Reason.DISABLED
            self._state.add_ledger(row.group, LedgerRow(*left, reason))
        if row.state is ScheduleState.PAUSED:
            row.fire_us = row.fire_us if schedule.fire_us is None else schedule.fire_us
        else:
            self._activate(row, schedule.fire_us, schedule.due_us)

    def _keep_cursor(self, row: ScheduleRow, schedule: NewSchedule) -> None:
        """Leave the cursor of an edited schedule where it stands: its trigger is the same."""
        if row.state is ScheduleState.PARKED:
            row.state = ScheduleState.ACTIVE
            row.due_us = schedule.due_us if schedule.fire_us == row.fire_us else row.fire_us
            self._state.hint([row.shard])

    def _activate(self, row: ScheduleRow, fire_us: Instant | None, due_us: Instant | None) -> None:
        if fire_us is None:
            row.state, row.due_us = ScheduleState.EXHAUSTED, None
            return
        row.state, row.fire_us = ScheduleState.ACTIVE, fire_us
        row.due_us = fire_us if due_us is None else due_us
        self._state.hint([row.shard])
