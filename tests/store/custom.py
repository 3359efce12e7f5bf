"""A custom store as somebody might write it: dicts and single items, two overlap policies, no ledger, no listings."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from luciole import limits
from luciole.errors import Unsupported
from luciole.model.execution import Enqueued, EnqueueRequest, ExecutionState, ExecutionView, Origin
from luciole.model.ids import ExecutionKey, JobId, NodeId, ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.job import JobSpec, JobVersion, Overlap
from luciole.model.lease import Cluster, Lease, LeaseState, NodeInfo
from luciole.model.outbox import AttemptOutcome, Delivery, Entry, EntryState, Running, Settled, Settlement
from luciole.model.plan import DueBatch, Move, PlanOutcome, ReadyBatch
from luciole.model.routing import labels_mark, route_of
from luciole.model.schedule import Cursor, NewSchedule, OverlapCode, ScheduleState, ScheduleView, pack_policy
from luciole.model.sharding import shard_of_id
from luciole.runtime.clock import Clock
from luciole.store.bounds import check_trusted
from luciole.store.capabilities import Capabilities
from luciole.store.reads import Page, ScheduleFilter

FAILURES = {AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT}
NOTHING = PlanOutcome(entries=(), created=0, skipped=0)


class DictSchedules:
    shards = 4
    capabilities = Capabilities(
        name="dicts", durable=False, spans_shards=True, shared=False, remote_hints=False, transactional_enqueue=(),
        plan_connections=1, plan_batch_max=limits.PLAN_BATCH_MAX,
    )  # fmt: skip

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.next_id = 1
        self.nodes: dict[NodeId, NodeInfo] = {}
        self.leases = {n: LeaseState(shard=n, holder=None, fence=0, expires_us=0) for n in range(self.shards)}
        self.jobs: list[JobSpec] = []
        self.triggers: list[str] = []
        self.schedules: dict[tuple[str, str], ScheduleView] = {}
        self.cursors: dict[ScheduleId, Cursor] = {}
        self.executions: dict[ExecutionKey, ExecutionView] = {}
        self.entries: dict[ExecutionKey, Entry] = {}
        self.news = asyncio.Event()

    def _holds(self, lease: Lease | None) -> bool:
        check_trusted(() if lease is None else (lease,), self.clock.monotonic_us())
        row = self.leases[lease.shard if lease else 0]
        is_mine = lease is not None and (row.holder, row.fence) == (lease.holder, lease.fence)
        return is_mine and self.clock.now_us() < row.expires_us

    async def wait_hint(self, timeout_us: int) -> frozenset[Shard]:
        await self.clock.wait(self.news, timeout_us)
        self.news.clear()
        return frozenset()

    async def now_us(self) -> Instant:
        return self.clock.now_us()

    async def beat(self, node: NodeInfo, *, node_ttl_us: int) -> Cluster:
        self.nodes[node.node_id] = replace(node, seen_us=self.clock.now_us())
        return await self.cluster(node_ttl_us=node_ttl_us)

    async def cluster(self, *, node_ttl_us: int) -> Cluster:
        now_us = self.clock.now_us()
        alive = [node for _, node in sorted(self.nodes.items()) if now_us - node.seen_us < node_ttl_us]
        return Cluster(now_us=now_us, nodes=tuple(alive), leases=tuple(self.leases.values()))

    async def leave(self, node_id: NodeId) -> None:
        self.nodes.pop(node_id, None)
        self.leases |= {n: replace(r, holder=None) for n, r in self.leases.items() if r.holder == node_id}

    async def acquire_lease(self, node_id: NodeId, shard: Shard, *, ttl_us: int) -> Lease | None:
        row, now_us = self.leases[shard], self.clock.now_us()
        if row.holder is not None and now_us < row.expires_us:
            return None
        self.leases[shard] = replace(row, holder=node_id, fence=row.fence + 1, expires_us=now_us + ttl_us)
        return Lease(shard=shard, holder=node_id, fence=row.fence + 1, expires_us=now_us + ttl_us)

    async def renew_lease(self, lease: Lease, *, ttl_us: int) -> Lease | None:
        if not self._holds(lease):
            return None
        expires_us = self.clock.now_us() + ttl_us
        self.leases[lease.shard] = replace(self.leases[lease.shard], expires_us=expires_us)
        return replace(lease, expires_us=expires_us)

    async def release_lease(self, lease: Lease) -> None:
        if self._holds(lease):
            self.leases[lease.shard] = replace(self.leases[lease.shard], holder=None, expires_us=0)

    async def due_cursors(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> DueBatch:
        mine = sorted((c for c in self.cursors.values() if c.shard in shards), key=lambda c: (c.shard, c.due_us))
        due = [cursor for cursor in mine if cursor.due_us <= before_us][:limit]
        return DueBatch(cursors=tuple(due), next_due_us=min((c.due_us for c in mine if c not in due), default=None))

    async def load_trigger(self, trigger_id: TriggerId) -> str | None:
        return self.triggers[trigger_id] if trigger_id < len(self.triggers) else None

    async def load_job(self, job_id: JobId) -> JobVersion | None:
        return JobVersion(job_id=job_id, spec=self.jobs[job_id]) if job_id < len(self.jobs) else None

    async def take_ids(self, count: int) -> int:
        self.next_id += count
        return self.next_id - count

    async def intern_job(self, spec: JobSpec) -> JobId:
        if spec not in self.jobs:
            self.jobs.append(spec)
        return self.jobs.index(spec)

    async def put_schedule(self, schedule: NewSchedule, *, new_id: int, replace: bool) -> ScheduleId | None:
        spec, now_us = schedule.spec, self.clock.now_us()
        if spec.policy.overlap not in {Overlap.ALLOW, Overlap.FORBID}:
            raise Unsupported(f"overlap: {spec.policy.overlap} is not known here; use allow or forbid")
        old = self.schedules.get((spec.namespace, spec.name))
        if old and (old.spec.owner != spec.owner or not replace):
            return None
        if old and old.spec == spec:
            return old.schedule_id
        self.triggers += [] if spec.trigger in self.triggers else [spec.trigger]
        number, revision = old.schedule_id if old else new_id, await self.take_ids(1)
        shard, fire_us, due_us = shard_of_id(number, self.shards), schedule.fire_us, schedule.due_us
        self.schedules[spec.namespace, spec.name] = ScheduleView(
            schedule_id=number, shard=shard, spec=spec, version=revision, reason=None, fire_us=fire_us,
            due_us=due_us, state=ScheduleState.ACTIVE if fire_us else ScheduleState.EXHAUSTED, revision=revision,
            created_us=now_us, updated_us=now_us,
        )  # fmt: skip
        if fire_us is not None and due_us is not None:
            job_id, trigger_id = await self.intern_job(spec.job), self.triggers.index(spec.trigger)
            policy_id = pack_policy(spec.policy, spec.job)
            self.cursors[number] = Cursor(shard, number, revision, fire_us, due_us, trigger_id, job_id, policy_id)
            self.news.set()
        return number

    async def list_schedules(self, query: ScheduleFilter) -> Page[ScheduleView]:
        asked = [(space, name) for space, name in sorted(self.schedules) if query.namespace in {None, space}]
        rows = [self.schedules[space, name] for space, name in asked if name.startswith(query.name_prefix)]
        return Page(rows=tuple(rows[: query.limit]), next=None)


class DictStore(DictSchedules):
    async def commit_move(self, move: Move, lease: Lease | None) -> PlanOutcome:
        old = move.cursor
        if not self._holds(lease):
            return replace(NOTHING, refused=frozenset({old.shard}))
        if self.cursors.get(old.schedule_id) != old:
            return replace(NOTHING, lost=(old.schedule_id,))
        made, skipped = [], 0
        for fire in move.fires:
            key = ExecutionKey(old.shard, old.schedule_id, fire.fire_us, 0)
            if move.overlap is OverlapCode.FORBID and any(open_key[1] == key[1] for open_key in self.entries):
                skipped += 1
            elif key not in self.executions:
                state = EntryState.READY if move.ready else EntryState.HELD
                route = self.jobs[old.job_id].route_id()
                made.append(Entry(key, fire.due_us, move.priority, 1, 0, old.job_id, move.flags, state, route=route))
                self._open(made[-1], Origin.SCHEDULE)
        del self.cursors[old.schedule_id]
        if move.next_fire_us is not None and move.next_due_us is not None:
            self.cursors[old.schedule_id] = old.advance(move.next_fire_us, move.next_due_us)
        return PlanOutcome(entries=() if move.ready else tuple(made), created=len(made), skipped=skipped)

    async def park_schedule(self, lease: Lease | None, schedule_id: ScheduleId, shard: Shard, reason: str) -> bool:
        name, view = next(pair for pair in self.schedules.items() if pair[1].schedule_id == schedule_id)
        if view.shard != shard or not self._holds(lease) or self.cursors.pop(schedule_id, None) is None:
            return False
        self.schedules[name] = replace(view, state=ScheduleState.PARKED, reason=reason)
        return True

    def _open(self, entry: Entry, origin: Origin, request_key: str | None = None) -> None:
        spec, now_us = self.jobs[entry.job_id], self.clock.now_us()
        self.entries[entry.key] = entry
        self.executions[entry.key] = ExecutionView(
            key=entry.key, namespace=spec.namespace, handler=spec.handler, job_id=entry.job_id,
            state=ExecutionState(int(entry.state is EntryState.HELD)), attempt=1, due_us=entry.due_us,
            priority=entry.priority, origin=origin, created_us=now_us, started_us=None, finished_us=None,
            executor_id=None, payload=spec.payload if entry.payload is None else entry.payload,
            content_type=entry.content_type or spec.content_type, result=None, result_type=None, error=None,
            progress=None, request_key=request_key, replay_of=None, parent=None, labels=entry.labels or (),
            deadline_us=entry.deadline_us, cancel_requested=False,
        )  # fmt: skip
        self.news.set()

    async def ready_entries(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> ReadyBatch:
        mine = [entry for key, entry in sorted(self.entries.items()) if key.shard in shards]
        ready = [entry for entry in mine if entry.state is EntryState.READY and not entry.cancel]
        due = sorted((entry for entry in ready if entry.due_us <= before_us), key=lambda e: (-e.priority, e.due_us))
        later_us = min((entry.due_us for entry in ready if entry.due_us > before_us), default=None)
        return ReadyBatch(entries=tuple(due[:limit]), next_due_us=later_us, cancels=tuple(e for e in mine if e.cancel))

    async def open_entries(
        self, shards: Sequence[Shard], *, after: ExecutionKey | None, limit: int
    ) -> tuple[Entry, ...]:
        mine = [entry for key, entry in sorted(self.entries.items()) if key.shard in shards and key > (after or ())]
        return tuple(entry for entry in mine if entry.state is EntryState.HELD or entry.delivered)[:limit]

    async def record_delivery(self, lease: Lease | None, delivery: Delivery) -> bool:
        key, entry, view = delivery.key, self.entries.get(delivery.key), self.executions.get(delivery.key)
        if not view or not entry or entry.attempt != delivery.attempt or entry.cancel or not self._holds(lease):
            return False
        self.entries[key] = entry._replace(delivered=True)
        self.executions[key] = replace(view, executor_id=view.executor_id or delivery.executor_id)
        return self.executions[key].executor_id == delivery.executor_id

    async def settle_one(self, settlement: Settlement) -> Settled:
        key, entry, view = settlement.key, self.entries.get(settlement.key), self.executions.get(settlement.key)
        if view is None or entry is None or entry.attempt != settlement.attempt:
            same = view is not None and (view.state, view.attempt) == (settlement.state, settlement.attempt)
            return Settled.CONFIRMED if same else Settled.REFUSED
        del self.entries[key]
        if not settlement.state.terminal:
            state = EntryState.PARKED if settlement.state is ExecutionState.PARKED else EntryState.READY
            self.entries[key] = entry._replace(
                attempt=entry.attempt + 1, failures=entry.failures + (settlement.outcome in FAILURES), state=state,
                losses=entry.losses + settlement.counts_loss, due_us=settlement.due_us or entry.due_us, delivered=False,
            )  # fmt: skip
        self.executions[key] = replace(
            view, state=settlement.state, attempt=settlement.attempt + (key in self.entries),
            started_us=settlement.started_us, finished_us=settlement.finished_us if settlement.state.terminal else None,
            executor_id=None if key in self.entries else settlement.executor_id, error=settlement.error,
            result=settlement.result, result_type=settlement.result_type,
        )  # fmt: skip
        return Settled.SETTLED

    async def mark_one_running(self, running: Running) -> bool:
        entry = self.entries.get(running.key)
        if entry is None or entry.attempt != running.attempt:
            return True
        started = replace(self.executions[running.key], state=ExecutionState.RUNNING, started_us=running.started_us)
        self.executions[running.key] = replace(started, executor_id=running.executor_id, progress=running.progress)
        return entry.cancel

    async def enqueue_one(self, request: EnqueueRequest) -> Enqueued:
        known = [key for key, view in self.executions.items() if request.key and view.request_key == request.key]
        due_us = request.fire_us or self.clock.now_us() + request.delay_us
        key = ExecutionKey(request.shard, request.schedule_id, due_us, -request.request_id)
        if known or key in self.executions:
            return Enqueued(key=known[0] if known else key, created=False)
        route, flags = route_of(self.jobs[request.job_id].route_id(), labels_mark(request.labels)), request.flags
        entry = Entry(
            key, due_us, request.priority, 1, 0, request.job_id, flags, EntryState.READY, payload=request.payload,
            route=route, content_type=request.content_type, labels=request.labels, deadline_us=request.deadline_us,
        )  # fmt: skip
        self._open(entry, request.origin, request.key)
        return Enqueued(key=key, created=True)

    async def cancel_one(self, key: ExecutionKey) -> ExecutionState | None:
        if key in self.entries:
            self.entries[key] = self.entries[key]._replace(cancel=True)
        return self.executions[key].state if key in self.executions else None

    async def get_execution(self, key: ExecutionKey) -> ExecutionView | None:
        return self.executions.get(key)
