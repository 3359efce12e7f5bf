"""Executions by request, and their end."""

from collections.abc import Sequence

from luciole import limits
from luciole.errors import InvalidValue, NotFound
from luciole.model.execution import Enqueued, EnqueueRequest, ExecutionState
from luciole.model.ids import NO_SCHEDULE, ExecutionKey, Shard
from luciole.model.instant import Instant
from luciole.model.outbox import EntryState
from luciole.model.routing import labels_mark, route_of
from luciole.model.schedule import OverlapCode, ScheduleState
from luciole.store.bounds import check_batch, check_limit, check_request, check_shards
from luciole.store.memory.client import MemoryClient
from luciole.store.memory.overlap import Admission, admit, cancel, flags_under
from luciole.store.memory.state import EntryRow, ExecutionRow
from luciole.store.reads import Page


class MemoryExecutions(MemoryClient):
    """The `ExecutionStore` role."""

    async def enqueue(self, requests: Sequence[EnqueueRequest]) -> tuple[Enqueued, ...]:
        """Make executions and their entries durable; answers in order."""
        check_batch("requests", requests, limits.ENQUEUE_BATCH_MAX)
        with self._transaction() as now_us:
            for request in requests:
                check_request(request, self._state.shards)
                if request.schedule_id != NO_SCHEDULE:
                    raise InvalidValue("schedule_id: an execution of a schedule comes by `trigger_schedule`")
            answers = tuple(self._enqueue(request, now_us) for request in requests)
            self._state.hint(answer.key.shard for answer in answers if answer.created)
            return answers

    async def trigger_schedule(self, request: EnqueueRequest) -> Enqueued | None:
        """Create a manual execution of a schedule, or none where overlap forbids it."""
        with self._transaction() as now_us:
            check_request(request, self._state.shards)
            row = self._state.schedules.get(request.schedule_id)
            if row is None or row.shard != request.shard or row.state is ScheduleState.DELETED:
                raise NotFound(f"schedule {request.schedule_id}: there is none in shard {request.shard}")
            known = self._known(request, self._key(request, now_us))
            if known:
                return Enqueued(key=known, created=False)
            overlap = OverlapCode(row.policy_id & 3)
            admission = admit(self._state, row.group, overlap, now_us)
            if admission is Admission.SKIP:
                return None
            row.revision += 1
            answer = self._create_requested(
                request, now_us, flags=flags_under(overlap, request.flags), waits=admission is Admission.WAIT
            )
            self._state.hint([row.shard])
            return answer

    async def request_cancel(self, keys: Sequence[ExecutionKey]) -> tuple[ExecutionState | None, ...]:
        """Ask for the end of executions, durably; return the state of each afterwards."""
        check_batch("keys", keys, limits.PAGE_MAX)
        states: list[ExecutionState | None] = []
        with self._transaction() as now_us:
            for key in keys:
                entry = self._state.entry(key)
                execution = self._state.execution(key)
                if entry:
                    states.append(cancel(self._state, entry, now_us))
                else:
                    states.append(execution.state if execution else None)
        return tuple(states)

    async def unpark(self, keys: Sequence[ExecutionKey]) -> int:
        """Make parked executions ready again, due now; return how many were parked."""
        check_batch("keys", keys, limits.PAGE_MAX)
        count = 0
        with self._transaction() as now_us:
            for key in keys:
                entry = self._state.entry(key)
                if entry and entry.state is EntryState.PARKED:
                    execution = self._state.executions[entry.group][key]
                    execution.move(ExecutionState.READY)
                    entry.state = EntryState.READY
                    execution.due_us = entry.due_us = now_us
                    execution.error = execution.troubled_us = None
                    self._state.hint([key.shard])
                    count += 1
        return count

    async def prune(
        self, shard: Shard, before_us: Instant, *, after: ExecutionKey | None, limit: int
    ) -> Page[ExecutionKey]:
        """Delete terminal executions that finished before an instant, walking a shard in key order."""
        check_limit("limit", limit, limits.PRUNE_BATCH_MAX)
        with self._transaction():
            check_shards([shard], self._state.shards)
            groups = [rows for (of_shard, _), rows in self._state.executions.items() if of_shard == shard]
            keys = sorted(key for rows in groups for key in rows if after is None or key > after)[:limit]
            deleted = tuple(key for key in keys if self._prune(key, before_us))
            if len(keys) == limit:
                return Page(rows=deleted, next=keys[-1].text())
            self._prune_ledger(shard, before_us, limit)
            return Page(rows=deleted, next=None)

    def _prune(self, key: ExecutionKey, before_us: Instant) -> bool:
        execution = self._state.executions[key[:2]][key]
        if not execution.state.terminal or execution.finished_us is None or execution.finished_us >= before_us:
            return False
        del self._state.executions[key[:2]][key]
        if execution.request_key is not None and execution.namespace is not None:
            self._state.request_keys.pop((execution.namespace, execution.request_key), None)
        return True

    def _prune_ledger(self, shard: Shard, before_us: Instant, limit: int) -> None:
        """Delete the shard's oldest ledger rows that ended before an instant, `limit` at most."""
        old = sorted(
            (group, row)
            for group, rows in self._state.ledger.items()
            for row in rows
            if group[0] == shard and row.last_us < before_us
        )
        for group, row in old[:limit]:
            self._state.ledger[group].remove(row)

    def _enqueue(self, request: EnqueueRequest, now_us: Instant) -> Enqueued:
        known = self._known(request, self._key(request, now_us))
        if known:
            return Enqueued(key=known, created=False)
        return self._create_requested(request, now_us, flags=request.flags, waits=False)

    def _key(self, request: EnqueueRequest, now_us: Instant) -> ExecutionKey:
        fire_us = now_us + request.delay_us if request.fire_us is None else request.fire_us
        return ExecutionKey(request.shard, request.schedule_id, fire_us, -request.request_id)

    def _known(self, request: EnqueueRequest, key: ExecutionKey) -> ExecutionKey | None:
        """Return the execution that the request names already, by its request key or by its id."""
        if request.key is not None and (request.namespace, request.key) in self._state.request_keys:
            return self._state.request_keys[request.namespace, request.key]
        return key if self._state.execution(key) else None

    def _create_requested(self, request: EnqueueRequest, now_us: Instant, *, flags: int, waits: bool) -> Enqueued:
        key = self._key(request, now_us)
        due_us = max(key.fire_us, now_us + request.delay_us)
        content_type = None if request.payload is None else request.content_type
        execution = ExecutionRow(
            key=key,
            job_id=request.job_id,
            state=ExecutionState.QUEUED if waits else ExecutionState.READY,
            due_us=due_us,
            priority=request.priority,
            origin=request.origin,
            created_us=now_us,
            payload=request.payload,
            content_type=content_type,
            labels=request.labels,
            deadline_us=request.deadline_us,
            namespace=request.namespace,
            request_key=request.key,
            replay_of=request.replay_of,
            parent=request.parent,
        )
        entry = EntryRow(
            key=key,
            due_us=due_us,
            priority=request.priority,
            job_id=request.job_id,
            flags=flags,
            state=EntryState.WAITING if waits else EntryState.READY,
            payload=request.payload,
            content_type=content_type,
            labels=request.labels or None,
            deadline_us=request.deadline_us,
            route=request.route or route_of(self._state.route_of_job(request.job_id), labels_mark(request.labels)),
        )
        self._state.open_execution(execution, entry)
        if request.key is not None:
            self._state.request_keys[request.namespace, request.key] = key
        return Enqueued(key=key, created=True)
