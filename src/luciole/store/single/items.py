"""What a minimal store writes: single items, each verb one transaction that promises what `spi` says of one row."""

from collections.abc import Sequence
from typing import Protocol

from luciole.model.execution import Enqueued, EnqueueRequest, ExecutionState, ExecutionView
from luciole.model.ids import ExecutionKey, JobId, NodeId, ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.job import JobSpec, JobVersion
from luciole.model.lease import Cluster, Lease, NodeInfo
from luciole.model.outbox import Delivery, Entry, Running, Settled, Settlement
from luciole.model.plan import DueBatch, Move, PlanOutcome, ReadyBatch
from luciole.model.schedule import NewSchedule, ScheduleView
from luciole.store.capabilities import Capabilities
from luciole.store.reads import Page, ScheduleFilter


class SingleLeases(Protocol):
    """Who is alive, and who holds which shard."""

    async def now_us(self) -> Instant:
        """Return the store's clock."""
        ...

    async def beat(self, node: NodeInfo, *, node_ttl_us: int) -> Cluster:
        """Record that a node is alive; return everybody alive and every lease."""
        ...

    async def cluster(self, *, node_ttl_us: int) -> Cluster:
        """Return the same without being a node."""
        ...

    async def leave(self, node_id: NodeId) -> None:
        """Forget a node and free all its leases at once."""
        ...

    async def acquire_lease(self, node_id: NodeId, shard: Shard, *, ttl_us: int) -> Lease | None:
        """Take a shard that is free or expired, with a fence one higher; None: somebody holds it."""
        ...

    async def renew_lease(self, lease: Lease, *, ttl_us: int) -> Lease | None:
        """Prolong a lease to now + ttl while it is still this one and has not expired (I3); None: it is gone."""
        ...

    async def release_lease(self, lease: Lease) -> None:
        """Free a lease that is still the caller's."""
        ...


class SinglePlans(Protocol):
    """Due cursors in, executions and entries out."""

    async def due_cursors(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> DueBatch:
        """Return what is due, as `PlanStore.due_cursors` does."""
        ...

    async def load_trigger(self, trigger_id: TriggerId) -> str | None:
        """Return the canonical text of a trigger; None: there is none."""
        ...

    async def load_job(self, job_id: JobId) -> JobVersion | None:
        """Return a job version; None: there is none, or this version can't read it."""
        ...

    async def commit_move(self, move: Move, lease: Lease | None) -> PlanOutcome:
        """Commit the step of one schedule (I1, I2) while the lease guards its shard (I3); safe to repeat."""
        ...

    async def park_schedule(self, lease: Lease | None, schedule_id: ScheduleId, shard: Shard, reason: str) -> bool:
        """Stop an active schedule that can't be read (I7), guarded (I3); say whether it was."""
        ...


class SingleOutbox(Protocol):
    """Open entries: found, delivered, settled."""

    async def ready_entries(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> ReadyBatch:
        """Return what is ready, as `OutboxStore.ready_entries` does."""
        ...

    async def open_entries(
        self, shards: Sequence[Shard], *, after: ExecutionKey | None, limit: int
    ) -> tuple[Entry, ...]:
        """Return what a new holder loads, as `OutboxStore.open_entries` does."""
        ...

    async def record_delivery(self, lease: Lease | None, delivery: Delivery) -> bool:
        """Record a delivery before it is sent, guarded (I3); say whether it may be."""
        ...

    async def settle_one(self, settlement: Settlement) -> Settled:
        """Write the outcome of an attempt, guarded by its token (I5)."""
        ...

    async def mark_one_running(self, running: Running) -> bool:
        """Record that an attempt runs; say whether it must be cancelled."""
        ...


class SingleExecutions(Protocol):
    """Executions by request, and their end."""

    async def enqueue_one(self, request: EnqueueRequest) -> Enqueued:
        """Make an execution and its entry durable."""
        ...

    async def cancel_one(self, key: ExecutionKey) -> ExecutionState | None:
        """Ask for the end of an execution; return its state afterwards."""
        ...

    async def get_execution(self, key: ExecutionKey) -> ExecutionView | None:
        """Return one execution, None when there is none."""
        ...


class SingleCatalog(Protocol):
    """What users declare."""

    async def take_ids(self, count: int) -> int:
        """Take so many ids that nobody else gets; return the first."""
        ...

    async def intern_job(self, spec: JobSpec) -> JobId:
        """Return the version id of a spec, storing a new one."""
        ...

    async def put_schedule(self, schedule: NewSchedule, *, new_id: int, replace: bool) -> ScheduleId | None:
        """Insert (with this id) or update a schedule by name; None as in `CatalogStore.put_schedules`."""
        ...

    async def list_schedules(self, query: ScheduleFilter) -> Page[ScheduleView]:
        """Return schedules ordered by (namespace, name), compared by code point."""
        ...


class SingleItems(SingleLeases, SinglePlans, SingleOutbox, SingleExecutions, SingleCatalog, Protocol):
    """All that a minimal store writes. Any other verb of `Store` that it has too, `open` or `prune`, is used."""

    @property
    def capabilities(self) -> Capabilities:
        """What this store can do."""
        ...

    @property
    def shards(self) -> int:
        """The number of shards."""
        ...

    async def wait_hint(self, timeout_us: int) -> frozenset[Shard]:
        """Wait as `Store.wait_hint` does; waiting until the time is over is correct."""
        ...
