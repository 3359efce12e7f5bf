"""Read-only pages for people and programs, over SQL."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.execution import AttemptView, ExecutionState, ExecutionView, Origin
from luciole.model.ids import ExecutionKey, ScheduleId, Shard, parse_execution_key
from luciole.model.job import JobSpec, job_spec_from_row
from luciole.model.schedule import Policy, Reason, ScheduleSpec, ScheduleState, ScheduleView, unpack_policy
from luciole.store.bounds import check_batch, check_limit, page_place, page_token
from luciole.store.reads import (
    COUNT_MAX,
    SAMPLE_MAX,
    Backlog,
    ExecutionFilter,
    JobView,
    LedgerView,
    Page,
    ScheduleFilter,
)
from luciole.store.sql.dialect import Lane, Role
from luciole.store.sql.listing import labels_of, list_keys
from luciole.store.sql.script import Query, Row, Script

#: Above every name that starts with a prefix: longer than any name, of the highest character.
HIGHEST = "\U0010ffff" * (limits.NAME_LENGTH_MAX + 1)

_PRIORITIES = range(limits.PRIORITY_MIN, limits.PRIORITY_MAX + 1)


class SqlReads(Role):
    """The role `ReadStore`, but for the cluster, which stands with the leases."""

    async def list_schedules(self, query: ScheduleFilter) -> Page[ScheduleView]:
        """Return schedules ordered by (namespace, name)."""
        check_limit("limit", query.limit, limits.PAGE_MAX)
        after = page_place(query.page, (str, str)) if query.page else ("", "")
        return await self._db.read(Lane.READ, _list_schedules, query, after)

    async def get_schedule(self, namespace: str, name: str) -> ScheduleView | None:
        """Return one schedule, None when there is none."""
        return await self._db.read(Lane.READ, _get_schedule, namespace, name)

    async def list_executions(self, query: ExecutionFilter) -> Page[ExecutionView]:
        """Return executions in the order that the filter asks for."""
        check_limit("limit", query.limit, limits.PAGE_MAX)
        return await self._db.read(Lane.READ, _list_executions, query, self.shards)

    async def get_execution(self, key: ExecutionKey) -> ExecutionView | None:
        """Return one execution with its recorded attempts, None when there is none."""
        return await self._db.read(Lane.READ, _get_execution, key)

    async def execution_states(self, keys: Sequence[ExecutionKey]) -> tuple[ExecutionState | None, ...]:
        """Return the state of each execution, in order."""
        check_batch("keys", keys, limits.PAGE_MAX)
        return await self._db.read(Lane.SETTLE, states_of, keys)

    async def find_request(self, namespace: str, key: str) -> ExecutionKey | None:
        """Return the execution that a request key names."""
        return await self._db.read(Lane.READ, _find_request, namespace, key)

    async def list_ledger(self, schedule_id: ScheduleId, shard: Shard, *, limit: int) -> tuple[LedgerView, ...]:
        """Return the latest ledger rows of a schedule, newest first."""
        check_limit("limit", limit, limits.PAGE_MAX)
        return await self._db.read(Lane.READ, _list_ledger, schedule_id, shard, limit)

    async def list_jobs(self, namespace: str | None, *, limit: int) -> tuple[JobView, ...]:
        """Return the latest version of each handler's job, ordered by (namespace, handler)."""
        check_limit("limit", limit, limits.PAGE_MAX)
        return await self._db.read(Lane.READ, _list_jobs, namespace, limit)

    async def backlog(self) -> Backlog:
        """Return bounded counts of what is due and open."""
        return await self._db.read(Lane.READ, _backlog, self.shards)


def states_of(keys: Sequence[ExecutionKey]) -> Script[tuple[ExecutionState | None, ...]]:
    """Return the state of each execution, in order."""
    rows = yield Query("execution_states", rows=sorted(set(keys)), alone=True)
    states = {ExecutionKey(*row[:4]): ExecutionState(row[4]) for row in rows}
    return tuple(states.get(key) for key in keys)


def _list_schedules(query: ScheduleFilter, after: tuple[str, str]) -> Script[Page[ScheduleView]]:
    found: list[ScheduleView] = []
    job_of = cache(_job)  # Schedules share few versions of jobs.
    step = limits.PAGE_MAX
    while len(found) <= query.limit:
        binds: dict[str, Any] = {"after_name": after[1], "limit": step}
        if query.namespace is None:
            rows = yield Query("list_schedules", {**binds, "after_namespace": after[0]})
        else:
            low, high = query.name_prefix, query.name_prefix + HIGHEST
            # A token of another namespace stands before or behind all of this one.
            if after[0] > query.namespace:
                break
            binds["after_name"] = after[1] if after[0] == query.namespace else ""
            # An app that starts asks for its own: those of others are not even read.
            names = {"namespace": query.namespace, "low": low, "high": high, "owner": query.owner}
            rows = yield Query("list_schedules_of_namespace", {**binds, **names})
        found += (view for view in (_schedule_view(row, job_of) for row in rows) if _matches(view, query))
        if len(rows) < step:
            break
        after = (rows[-1][2], rows[-1][3])
    views = tuple(found[: query.limit])
    more = len(found) > query.limit
    return Page(rows=views, next=page_token(views[-1].spec.namespace, views[-1].spec.name) if more else None)


def _matches(view: ScheduleView, query: ScheduleFilter) -> bool:
    return (
        view.spec.name.startswith(query.name_prefix)
        and (query.owner is None or view.spec.owner == query.owner)
        and view.state in query.states
    )


def _get_schedule(namespace: str, name: str) -> Script[ScheduleView | None]:
    rows = yield Query("get_schedule", {"namespace": namespace, "name": name})
    return _schedule_view(rows[0], _job) if rows else None


def _schedule_view(row: Row, job_of: Callable[..., JobSpec]) -> ScheduleView:
    state = ScheduleState(row[7])
    has_next = state not in {ScheduleState.EXHAUSTED, ScheduleState.DELETED}
    return ScheduleView(
        schedule_id=row[0],
        shard=row[1],
        spec=ScheduleSpec(
            namespace=row[2],
            name=row[3],
            owner=row[4],
            job=job_of(*row[15:]),
            trigger=row[14],
            policy=_policy(row[5]),
        ),
        version=row[6],
        state=state,
        reason=row[8],
        fire_us=row[11] if has_next else None,
        due_us=row[12],
        revision=row[13],
        created_us=row[9],
        updated_us=row[10],
    )


def _job(namespace: str, handler: str, payload: bytes, content_type: str, options: str) -> JobSpec:
    try:
        return job_spec_from_row(namespace, handler, payload, content_type, options)
    except InvalidValue:
        # I7: what this version can't read stays visible, with what it can read.
        return JobSpec(namespace=namespace, handler=handler, payload=payload, content_type=content_type)


def _policy(policy_id: int) -> Policy:
    try:
        return unpack_policy(policy_id)
    except InvalidValue:
        return Policy()  # I7: same.


def _list_executions(query: ExecutionFilter, shards: int) -> Script[Page[ExecutionView]]:
    keys, token = yield from list_keys(query, shards)
    return Page(rows=(yield from _views(keys)), next=token)


def _views(keys: Sequence[ExecutionKey]) -> Script[tuple[ExecutionView, ...]]:
    rows = yield Query("read_executions", rows=keys)
    views = {view.key: view for view in map(_execution_view, rows)}
    return tuple(views[key] for key in keys)


#: While the first attempt is the current one, none of these has left a row of its own.
_WITHOUT_ATTEMPTS = frozenset(
    {
        ExecutionState.QUEUED,
        ExecutionState.READY,
        ExecutionState.HELD,
        ExecutionState.RUNNING,
        ExecutionState.SUCCEEDED,
    }
)


def _get_execution(key: ExecutionKey) -> Script[ExecutionView | None]:
    rows = yield Query("read_executions", rows=[key], alone=True)
    if not rows:
        return None
    view = _execution_view(rows[0])
    if view.attempt == 1 and view.state in _WITHOUT_ATTEMPTS:
        return view
    rows = yield Query("read_executions", rows=[key])  # Once more: it and its attempts as they are at one instant.
    if not rows:
        return None
    attempts = yield Query("read_attempts", key._asdict())
    return replace(_execution_view(rows[0]), attempts=tuple(_attempt_views(attempts)))


def _attempt_views(rows: Iterable[Row]) -> Iterable[AttemptView]:
    for attempt, outcome, error, executor_id, started_us, finished_us in rows:
        yield AttemptView(
            attempt=attempt,
            outcome=outcome,
            error=error,
            executor_id=executor_id,
            started_us=started_us,
            finished_us=finished_us,
        )


def _execution_view(row: Row) -> ExecutionView:
    return ExecutionView(
        key=ExecutionKey(*row[:4]),
        namespace=row[4],
        handler=row[5],
        job_id=row[6],
        state=ExecutionState(row[7]),
        attempt=row[8],
        due_us=row[9],
        priority=row[10],
        origin=Origin(row[11]),
        created_us=row[12],
        started_us=row[13],
        finished_us=row[14],
        executor_id=row[15],
        payload=b"" if row[16] is None else row[16],
        content_type=row[17],
        result=row[18],
        result_type=row[19],
        error=row[20],
        progress=row[21],
        request_key=row[22],
        replay_of=None if row[23] is None else parse_execution_key(row[23]),
        parent=None if row[24] is None else parse_execution_key(row[24]),
        labels=labels_of(row[25]),
        deadline_us=row[26],
        cancel_requested=bool(row[27]),
    )


def _find_request(namespace: str, key: str) -> Script[ExecutionKey | None]:
    rows = yield Query("find_request_keys", rows=[(namespace, key)])
    return ExecutionKey(*rows[0][2:]) if rows else None


def _list_ledger(schedule_id: ScheduleId, shard: Shard, limit: int) -> Script[tuple[LedgerView, ...]]:
    rows = yield Query("list_ledger", {"schedule_id": schedule_id, "shard": shard, "limit": limit})
    return tuple(
        LedgerView(first_us=first_us, last_us=last_us, fires=fires, reason=Reason(reason))
        for first_us, last_us, fires, reason in rows
    )


def _list_jobs(namespace: str | None, limit: int) -> Script[tuple[JobView, ...]]:
    rows = yield Query("list_jobs", {"namespace": namespace, "limit": limit})
    return tuple(
        JobView(job_id=job_id, namespace=of_namespace, handler=handler, versions=versions, options=options)
        for job_id, of_namespace, handler, versions, options in rows
    )


def _backlog(shards: int) -> Script[Backlog]:
    most = {"most": COUNT_MAX}
    due = yield Query("count_due_cursors", most, [(shard,) for shard in range(shards)], alone=True)
    heads = [(shard, priority) for shard in range(shards) for priority in _PRIORITIES]
    ready = yield Query("count_ready_entries", most, heads)
    entries = yield Query("count_open_entries", most)
    parked = yield Query("count_parked", most)
    keys = yield Query("sample_parked", {"limit": SAMPLE_MAX})
    return Backlog(
        due_schedules=min(sum(row[0] for row in due), COUNT_MAX),
        oldest_due_us=min((row[1] for row in due if row[1] is not None), default=None),
        open_entries=entries[0][0],
        ready_due=min(sum(row[0] for row in ready), COUNT_MAX),
        oldest_ready_us=min((row[1] for row in ready if row[1] is not None), default=None),
        parked=parked[0][0],
        keys=tuple(ExecutionKey(*row) for row in keys),
    )
