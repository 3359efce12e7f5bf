"""Read-only pages for people and programs."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from luciole import limits
from luciole.model.execution import ExecutionState, ExecutionView
from luciole.model.ids import ExecutionKey, ScheduleId, Shard
from luciole.model.outbox import EntryState
from luciole.model.schedule import ScheduleSpec, ScheduleState, ScheduleView, unpack_policy
from luciole.store.bounds import check_batch, check_limit, page_place, page_token
from luciole.store.memory.client import MemoryClient
from luciole.store.memory.state import ExecutionRow, ScheduleRow
from luciole.store.reads import (
    COUNT_MAX,
    SAMPLE_MAX,
    Backlog,
    ExecutionFilter,
    JobView,
    LedgerView,
    Listing,
    Page,
    ScheduleFilter,
    listing_of,
    seen_job,
)

#: Where an execution stands in a listing: numbers that ascend.
_Place = tuple[int, ...]


class MemoryReads(MemoryClient):
    """The `ReadStore` role."""

    async def list_schedules(self, query: ScheduleFilter) -> Page[ScheduleView]:
        """Return schedules ordered by (namespace, name)."""
        check_limit("limit", query.limit, limits.PAGE_MAX)
        after = page_place(query.page, (str, str)) if query.page else None
        with self._transaction():
            rows = [
                row
                for name, row in sorted(((row.namespace, row.name), row) for row in self._state.schedules.values())
                if (after is None or name > after) and _matches(row, query)
            ]
            views = tuple(self._schedule_view(row) for row in rows[: query.limit])
        more = len(rows) > query.limit
        return Page(rows=views, next=page_token(views[-1].spec.namespace, views[-1].spec.name) if more else None)

    async def get_schedule(self, namespace: str, name: str) -> ScheduleView | None:
        """Return one schedule, None when there is none."""
        with self._transaction():
            row = self._state.schedules.get(self._state.schedule_names.get((namespace, name), 0))
            return None if row is None or row.state is ScheduleState.DELETED else self._schedule_view(row)

    async def list_executions(self, query: ExecutionFilter) -> Page[ExecutionView]:
        """Return executions in the order that the filter asks for."""
        check_limit("limit", query.limit, limits.PAGE_MAX)
        listing = listing_of(query)
        after = page_place(query.page, (int,) * _PLACE_LENGTHS[listing]) if query.page else None
        with self._transaction():
            placed = sorted(
                (_place(row, listing), row.key)
                for row in self._state.all_executions()
                if (not query.states or row.state in query.states)
                and (query.schedule_id is None or row.key.schedule_id == query.schedule_id)
            )
            if after is not None:
                placed = [(place, key) for place, key in placed if place > after]
            chosen = placed[: query.limit]
            views = tuple(self._execution_view(self._state.executions[key[:2]][key]) for _, key in chosen)
        return Page(rows=views, next=page_token(*chosen[-1][0]) if len(placed) > query.limit else None)

    async def get_execution(self, key: ExecutionKey) -> ExecutionView | None:
        """Return one execution with its recorded attempts, None when there is none."""
        with self._transaction():
            row = self._state.execution(key)
            return None if row is None else replace(self._execution_view(row), attempts=tuple(row.attempts))

    async def execution_states(self, keys: Sequence[ExecutionKey]) -> tuple[ExecutionState | None, ...]:
        """Return the state of each execution, in order."""
        check_batch("keys", keys, limits.PAGE_MAX)
        with self._transaction():
            rows = [self._state.execution(key) for key in keys]
            return tuple(None if row is None else row.state for row in rows)

    async def find_request(self, namespace: str, key: str) -> ExecutionKey | None:
        """Return the execution that a request key names."""
        with self._transaction():
            return self._state.request_keys.get((namespace, key))

    async def list_ledger(self, schedule_id: ScheduleId, shard: Shard, *, limit: int) -> tuple[LedgerView, ...]:
        """Return the latest ledger rows of a schedule, newest first."""
        check_limit("limit", limit, limits.PAGE_MAX)
        with self._transaction():
            rows = sorted(self._state.ledger.get((shard, schedule_id), ()), reverse=True)
            return tuple(
                LedgerView(first_us=row.first_us, last_us=row.last_us, fires=row.fires, reason=row.reason)
                for row in rows[:limit]
            )

    async def list_jobs(self, namespace: str | None, *, limit: int) -> tuple[JobView, ...]:
        """Return the latest version of each handler's job, ordered by (namespace, handler)."""
        check_limit("limit", limit, limits.PAGE_MAX)
        versions: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        with self._transaction():
            for job_id, row in self._state.jobs.items():
                if namespace in {None, row.namespace}:
                    versions[row.namespace, row.handler].append(job_id)
            return tuple(
                JobView(
                    job_id=max(ids),
                    namespace=name[0],
                    handler=name[1],
                    versions=len(ids),
                    options=self._state.jobs[max(ids)].options,
                )
                for name, ids in sorted(versions.items())[:limit]
            )

    async def backlog(self) -> Backlog:
        """Return bounded counts of what is due and open."""
        with self._transaction() as now_us:
            due = sorted(
                row.due_us for row in self._state.schedules.values() if row.due_us is not None and row.due_us <= now_us
            )
            entries = [row for rows in self._state.entries.values() for row in rows.values()]
            waiting = [row for row in entries if row.state is EntryState.READY and row.executor_id is None]
            ready = sorted(row.due_us for row in waiting if row.due_us <= now_us)
            parked = sorted(row.key for row in entries if row.state is EntryState.PARKED)
            return Backlog(
                due_schedules=min(len(due), COUNT_MAX),
                oldest_due_us=due[0] if due else None,
                open_entries=min(len(entries), COUNT_MAX),
                ready_due=min(len(ready), COUNT_MAX),
                oldest_ready_us=ready[0] if ready else None,
                parked=min(len(parked), COUNT_MAX),
                keys=tuple(parked[:SAMPLE_MAX]),
            )

    def _schedule_view(self, row: ScheduleRow) -> ScheduleView:
        job = self._state.jobs[row.job_id]
        fires = row.state not in {ScheduleState.EXHAUSTED, ScheduleState.DELETED}
        return ScheduleView(
            schedule_id=row.schedule_id,
            shard=row.shard,
            spec=ScheduleSpec(
                namespace=row.namespace,
                name=row.name,
                owner=row.owner,
                job=seen_job(job.namespace, job.handler, job.payload, job.content_type, job.options),
                trigger=self._state.triggers[row.trigger_id],
                policy=unpack_policy(row.policy_id),
            ),
            version=row.version,
            state=row.state,
            reason=row.reason,
            fire_us=row.fire_us if fires else None,
            due_us=row.due_us,
            revision=row.revision,
            created_us=row.created_us,
            updated_us=row.updated_us,
        )

    def _execution_view(self, row: ExecutionRow) -> ExecutionView:
        job = self._state.jobs[row.job_id]
        entry = self._state.entry(row.key)
        return ExecutionView(
            key=row.key,
            namespace=job.namespace,
            handler=job.handler,
            job_id=row.job_id,
            state=row.state,
            attempt=row.attempt,
            due_us=row.due_us,
            priority=row.priority,
            origin=row.origin,
            created_us=row.created_us,
            started_us=row.started_us,
            finished_us=row.finished_us,
            executor_id=row.executor_id,
            payload=job.payload if row.payload is None else row.payload,
            content_type=job.content_type if row.content_type is None else row.content_type,
            result=row.result,
            result_type=row.result_type,
            error=row.error,
            progress=row.progress,
            request_key=row.request_key,
            replay_of=row.replay_of,
            parent=row.parent,
            labels=row.labels,
            deadline_us=row.deadline_us,
            cancel_requested=entry is not None and entry.cancel,
        )


_PLACE_LENGTHS = {Listing.BY_SCHEDULE: 3, Listing.OPEN: 4, Listing.TROUBLED: 5, Listing.BY_KEY: 4}


def _place(row: ExecutionRow, listing: Listing) -> _Place:
    """Return where an execution stands in a listing; what descends is negated."""
    shard, schedule_id, fire_us, part = row.key
    if listing is Listing.BY_SCHEDULE:
        return -fire_us, -shard, -part
    if listing is Listing.OPEN:
        return -fire_us, -shard, -schedule_id, -part
    if listing is Listing.TROUBLED:
        return -(row.troubled_us or 0), -shard, -schedule_id, -fire_us, -part
    return shard, schedule_id, fire_us, part


def _matches(row: ScheduleRow, query: ScheduleFilter) -> bool:
    return (
        (query.namespace is None or row.namespace == query.namespace)
        and row.name.startswith(query.name_prefix)
        and (query.owner is None or row.owner == query.owner)
        and row.state in query.states
    )
