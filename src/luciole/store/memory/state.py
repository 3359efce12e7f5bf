"""The tables of the memory store, and the few changes that several verbs share.

Several clients share one `MemoryState`, as several processes share a database. Each verb runs under its lock
from beginning to end, so it is atomic for tasks and for threads.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from threading import RLock
from typing import Protocol

from luciole.model.execution import MOVES, AttemptView, ExecutionState, Origin
from luciole.model.ids import ExecutionKey, ExecutorId, JobId, NodeId, RouteId, ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.job import EntryFlag
from luciole.model.lease import Lease, LeaseState, NodeInfo
from luciole.model.outbox import Entry, EntryState
from luciole.model.plan import LedgerRow
from luciole.model.schedule import Cursor, ScheduleState

#: A shard and a schedule: what overlap is decided for.
Group = tuple[Shard, ScheduleId]

#: The part of executions that the planner writes; all that are asked for have negative parts.
PLANNED_PART = 0


@dataclass(slots=True, kw_only=True)
class JobRow:
    """A job version as rows keep it: its options are text, which a later version may not be able to read."""

    namespace: str
    handler: str
    payload: bytes
    content_type: str
    options: str
    route: RouteId


@dataclass(slots=True, kw_only=True)
class ScheduleRow:
    """A schedule with its cursor; `due_us` is None while it does not fire."""

    schedule_id: ScheduleId
    shard: Shard
    namespace: str
    name: str
    owner: str
    job_id: JobId
    trigger_id: TriggerId
    policy_id: int
    version: int = 1
    state: ScheduleState
    reason: str | None = None
    created_us: Instant
    updated_us: Instant
    fire_us: Instant
    due_us: Instant | None
    revision: int = 0

    @property
    def group(self) -> Group:
        """What its executions and entries are found by."""
        return self.shard, self.schedule_id

    def cursor(self) -> Cursor:
        """Return the cursor of a schedule that fires."""
        assert self.due_us is not None
        return Cursor(
            shard=self.shard,
            schedule_id=self.schedule_id,
            revision=self.revision,
            fire_us=self.fire_us,
            due_us=self.due_us,
            trigger_id=self.trigger_id,
            job_id=self.job_id,
            policy_id=self.policy_id,
        )


@dataclass(slots=True, kw_only=True)
class ExecutionRow:
    """One execution."""

    key: ExecutionKey
    job_id: JobId
    state: ExecutionState
    attempt: int = 1
    due_us: Instant
    priority: int
    origin: Origin = Origin.SCHEDULE
    created_us: Instant
    started_us: Instant | None = None
    finished_us: Instant | None = None
    troubled_us: Instant | None = None  #: when it was parked, or ended otherwise than well
    executor_id: ExecutorId | None = None
    payload: bytes | None = None
    content_type: str | None = None
    result: bytes | None = None
    result_type: str | None = None
    error: str | None = None
    progress: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    deadline_us: Instant | None = None
    namespace: str | None = None  #: of the request key
    request_key: str | None = None
    replay_of: ExecutionKey | None = None
    parent: ExecutionKey | None = None
    attempts: list[AttemptView] = field(default_factory=list)

    def move(self, state: ExecutionState) -> None:
        """Change the state along the table of legal moves."""
        assert state in MOVES[self.state]  # I5: a terminal execution never changes.
        self.state = state


@dataclass(slots=True, kw_only=True)
class EntryRow:
    """The outbox entry of an open execution."""

    key: ExecutionKey
    due_us: Instant
    priority: int
    attempt: int = 1
    failures: int = 0
    job_id: JobId
    flags: int
    state: EntryState
    losses: int = 0
    delivered: bool = False
    executor_id: ExecutorId | None = None
    cancel: bool = False
    payload: bytes | None = None
    content_type: str | None = None
    labels: tuple[tuple[str, str], ...] | None = None
    deadline_us: Instant | None = None
    route: RouteId = 0  #: 0 also while only its holder's memory knows it

    @property
    def group(self) -> Group:
        """The shard and the schedule of its execution."""
        return self.key.shard, self.key.schedule_id

    def entry(self) -> Entry:
        """Return it as the dispatcher holds it."""
        return Entry(
            key=self.key,
            due_us=self.due_us,
            priority=self.priority,
            attempt=self.attempt,
            failures=self.failures,
            job_id=self.job_id,
            flags=self.flags,
            state=self.state,
            losses=self.losses,
            delivered=self.delivered,
            cancel=self.cancel,
            payload=self.payload,
            content_type=self.content_type,
            labels=self.labels,
            deadline_us=self.deadline_us,
            route=self.route,
        )


class Listener(Protocol):
    """A client that wants to hear of what became due sooner."""

    def hear(self, shards: frozenset[Shard]) -> None:
        """Take a hint; called under the lock, from any thread."""
        ...


class MemoryState:
    """One database: its tables, and the lock that makes each verb a transaction."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.shards = 0  #: 0 until it is initialised
        self.next_id = 1
        self.nodes: dict[NodeId, NodeInfo] = {}
        self.leases: dict[Shard, LeaseState] = {}
        self.jobs: dict[JobId, JobRow] = {}
        self.job_digests: dict[bytes, JobId] = {}
        self.triggers: dict[TriggerId, str] = {}
        self.trigger_ids: dict[str, TriggerId] = {}
        self.schedules: dict[ScheduleId, ScheduleRow] = {}
        self.schedule_names: dict[tuple[str, str], ScheduleId] = {}
        self.executions: defaultdict[Group, dict[ExecutionKey, ExecutionRow]] = defaultdict(dict)
        self.entries: defaultdict[Group, dict[ExecutionKey, EntryRow]] = defaultdict(dict)
        self.ledger: defaultdict[Group, list[LedgerRow]] = defaultdict(list)
        self.withdrawals: Counter[Shard] = Counter()  #: of what was planned ahead, by shard
        self.rules: dict[Shard, str] = {}  #: of zones, that the cursors of a shard stand by
        self.request_keys: dict[tuple[str, str], ExecutionKey] = {}
        self.listeners: list[Listener] = []

    def initialise(self, shards: int) -> int:
        """Make the lease rows, once; return how many steps that took."""
        if self.shards:
            return 0
        self.shards = shards
        self.leases = {s: LeaseState(shard=s, holder=None, fence=0, expires_us=0) for s in range(shards)}
        return 1

    def hint(self, shards: Iterable[Shard]) -> None:
        """Tell every client that something may have become due sooner in these shards."""
        changed = frozenset(shards)
        for listener in self.listeners if changed else ():
            listener.hear(changed)

    def holds(self, lease: Lease | None, now_us: Instant) -> bool:
        """Say whether a lease still guards its shard."""
        if lease is None or lease.shard not in self.leases:
            return False
        row = self.leases[lease.shard]
        # I3: holder and fence together, and the store's clock.
        return (row.holder, row.fence) == (lease.holder, lease.fence) and now_us < row.expires_us

    def execution(self, key: ExecutionKey) -> ExecutionRow | None:
        """Return one execution."""
        return self.executions.get(key[:2], {}).get(key)

    def entry(self, key: ExecutionKey) -> EntryRow | None:
        """Return the entry of an open execution."""
        return self.entries.get(key[:2], {}).get(key)

    def route_of_job(self, job_id: JobId) -> RouteId:
        """Return the number of what a job asks of an executor; 0 for one that is not there."""
        return self.jobs[job_id].route if job_id in self.jobs else 0

    def entries_of(self, shards: Iterable[Shard]) -> Iterator[EntryRow]:
        """All open entries of some shards, in no order."""
        wanted = frozenset(shards)
        for (shard, _), rows in self.entries.items():
            if shard in wanted:
                yield from rows.values()

    def all_executions(self) -> Iterator[ExecutionRow]:
        """All executions, in no order."""
        for rows in self.executions.values():
            yield from rows.values()

    def open_execution(self, execution: ExecutionRow, entry: EntryRow) -> None:
        """Store an execution with its entry; both or none."""
        assert execution.key not in self.executions[entry.group]  # I1: the caller looked first.
        self.executions[entry.group][execution.key] = execution
        self.entries[entry.group][entry.key] = entry

    def close_entry(self, entry: EntryRow, *, releases: bool) -> None:
        """Delete an entry whose execution has ended, and let its successor go."""
        del self.entries[entry.group][entry.key]
        if not releases:
            return
        if entry.key.schedule_id in self.schedules:
            # A plan that read the cursor before this loses its race and decides anew.
            self.schedules[entry.key.schedule_id].revision += 1
        waiting = sorted(key for key, row in self.entries[entry.group].items() if row.state is EntryState.WAITING)
        if waiting:
            successor = self.entries[entry.group][waiting[0]]
            successor.state = EntryState.READY
            self.executions[entry.group][successor.key].move(ExecutionState.READY)
            self.hint([successor.key.shard])

    def add_ledger(self, group: Group, row: LedgerRow) -> None:
        """Record fire times that did not become executions (I4)."""
        rows = self.ledger[group]
        newest = rows[-1] if rows else None
        if newest and newest.reason is row.reason and not self._fired_between(group, newest.last_us, row.first_us):
            # I4: a range, a count, a reason: an adjacent skip extends its row.
            rows[-1] = newest._replace(last_us=max(newest.last_us, row.last_us), fires=newest.fires + row.fires)
            return
        if not any((known.first_us, known.reason) == (row.first_us, row.reason) for known in rows):
            rows.append(row)
            rows.sort()

    def _fired_between(self, group: Group, after_us: Instant, before_us: Instant) -> bool:
        return any(after_us < key.fire_us < before_us and key.part >= PLANNED_PART for key in self.executions[group])

    def withdraw(self, schedule: ScheduleRow, now_us: Instant) -> None:
        """Take back what was planned ahead and is not due; its fire times will be planned anew."""
        future = [
            row
            for row in self.entries[schedule.group].values()
            if row.key.part >= PLANNED_PART and row.due_us > now_us and row.attempt == 1
        ]
        self.withdrawals[schedule.shard] += bool(future)
        for row in sorted(future, key=lambda row: row.state is not EntryState.WAITING):
            releases = row.state is not EntryState.WAITING and bool(row.flags & EntryFlag.RELEASES)
            self.close_entry(row, releases=releases)
            del self.executions[schedule.group][row.key]
            if row.key.fire_us < schedule.fire_us:
                schedule.fire_us = row.key.fire_us
                schedule.due_us = None if schedule.due_us is None else row.due_us
