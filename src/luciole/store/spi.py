"""The store contract: role protocols whose docstrings are the promise that every store keeps.

Rules for all verbs. Each is one transaction, atomic or read-only, and leaves nothing half done. Each may raise
`StoreUnavailable` (nothing was written; wait and repeat), and a writing one `OutcomeUnknown` (the connection broke
in the commit; repeat the same call, which is always safe) and `StoreFull`. Batches are bounded by `limits`;
a longer one raises `InvalidValue`, and so does a shard that the store doesn't have; `store.bounds` holds these
checks for all stores. Instants are microseconds UTC by the store's clock. Batches act as if their rows came one
by one, in order; a shard or a key named twice counts once in an answer that is a set.

A lease holds while `now < expires_us`. A free one has no holder and `expires_us` 0; its fence stays. Payloads and
results are opaque bytes (I8). Texts that somebody else wrote (errors, reasons, progress, result types) are kept by
`bounds.stored_text`: cut to their bound, with U+FFFD for what no database can hold; they never make a verb fail.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from luciole.model.execution import Enqueued, EnqueueRequest, ExecutionState, ExecutionView
from luciole.model.ids import ExecutionKey, IdSegment, JobId, NodeId, RouteId, ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.job import JobSpec, JobVersion
from luciole.model.lease import Cluster, Lease, NodeInfo
from luciole.model.outbox import Delivery, Entry, Running, Settled, Settlement, Withdrawals
from luciole.model.plan import (
    DueBatch,
    LedgerRow,
    Plan,
    PlanOutcome,
    ReadyBatch,
    ReadyRoute,
    Realigned,
    RouteBatch,
)
from luciole.model.schedule import Cursor, NewSchedule, ScheduleState, ScheduleView
from luciole.model.stride import GroupBatch, Stride, StrideOutcome
from luciole.store.capabilities import Capabilities
from luciole.store.reads import Backlog, ExecutionFilter, JobView, LedgerView, Page, Repair, ScheduleFilter, Worry


class LeaseStore(Protocol):
    """Who is alive, and who holds which shard."""

    async def now_us(self) -> Instant:
        """Return the store's clock. Read-only."""
        ...

    async def beat(self, node: NodeInfo, *, node_ttl_us: int) -> Cluster:
        """Record that a node is alive; return everybody alive and every lease.

        Safe to repeat. Two at one moment may miss each other until their next. Nodes unseen for `node_ttl_us` are
        left out; unseen for ten times as long, deleted.

        Raises:
            StoreCorrupt: lease rows are missing (a partial restore); the message says what to do.
        """
        ...

    async def leave(self, node_id: NodeId) -> None:
        """Forget a node and free all its leases at once (the fence stays). Safe to repeat."""
        ...

    async def acquire_leases(self, node_id: NodeId, shards: Sequence[Shard], *, ttl_us: int) -> tuple[Lease, ...]:
        """Take those of the shards that are free or expired by the store's clock, each with a fence one higher.

        Waits for plan transactions in flight under the old fence, so that whoever loads the shard's open entries
        after this call sees all that the former holder committed. An expired lease of the caller's own is
        taken anew too. Not repeatable blindly: a second call finds the shards held and returns the rest only.

        Returns:
            The leases taken, ordered by shard; shards that somebody holds are absent.
        """
        ...

    async def renew_leases(self, leases: Sequence[Lease], *, ttl_us: int) -> tuple[Lease, ...]:
        """Prolong leases to now + ttl, each only while (holder, fence) are still these and it has not expired (I3).

        Safe to repeat. Never waits for plan transactions.

        Returns:
            The renewed leases, ordered by shard; one that is absent is gone: forget it at once.
        """
        ...

    async def release_leases(self, leases: Sequence[Lease]) -> None:
        """Free leases that are still the caller's (holder and fence); others are ignored. Safe to repeat."""
        ...


class PlanStore(Protocol):
    """Due cursors in, executions and entries out."""

    async def due_cursors(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> DueBatch:
        """Return cursors of active schedules with `due_us <= before_us`, the most overdue first. Read-only.

        `limit` bounds the whole answer (at most `limits.DUE_MAX`); no shard starves: each gets an equal share, at
        least one, before any gets more. What comes back of a shard is a prefix of its order (due time, id).
        Cost does not depend on history nor on the number of schedules that are not due.
        """
        ...

    async def load_triggers(self, ids: Sequence[TriggerId]) -> dict[TriggerId, str]:
        """Return the canonical texts of triggers; ids that do not exist are absent. Read-only."""
        ...

    async def load_jobs(self, ids: Sequence[JobId]) -> dict[JobId, JobVersion]:
        """Return job versions; ids that do not exist, or that this version can't read, are absent. Read-only."""
        ...

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        """Make one chunk durable: executions, outbox entries, ledger rows and moved cursors of its schedules.

        All rows of one schedule commit together (I2), the chunk too where the store can. The fence of each shard
        is checked inside the transaction after any lock wait (I3). Safe to repeat: a cursor moves only while
        (fire_us, revision) are the expected ones, and an execution that exists brings no second entry (I1).

        Fires and ledger rows of a move are decided in the order of their times. Under queue_one and replace the
        entries carry `EntryFlag.RELEASES`, whatever `flags` says, and only behind such entries may one wait: behind
        an open one of an earlier policy, which could never release it, a fire becomes a ledger row. Replace
        cancels as `request_cancel` does. A ledger row extends the schedule's newest one when the reason is the
        same and no fire time between them became an execution. An exhausted schedule's cursor stands 1 us after
        its last fire time.

        Returns:
            What was created, what lost its race, and the shards whose fence was refused.

        Raises:
            InvalidValue: a schedule comes twice, a move does not go forward, or its fires are not ascending inside
                its step. Nothing was written.
            FenceError: the holder's own deadline for a lease (`Lease.trusted_until_us`) passed before all was sent;
                so does every guarded verb, and `renew_leases`. Nothing was written; look at the leases again.
        """
        ...

    async def due_groups(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> GroupBatch:
        """Count due cursors by what decides their next step, the most overdue first. Read-only.

        `limit` bounds the cursors counted in each shard (at most `limits.PLAN_BATCH_MAX`). Which cursors those are is
        told as one share for each shard, for `commit_stride`. A store for which strides are no gain may count none.
        """
        ...

    async def commit_stride(self, stride: Stride) -> StrideOutcome:
        """Make one step durable for each cursor of the shares whose group has one: the burst's `commit_plan`.

        The same promises: all rows of one schedule commit together (I2), fences are checked inside the transaction
        after any lock wait (I3), an execution that exists brings no second entry (I1). Any cursor may stay as it
        is, for `commit_plan`: those of other groups do, those that overlap has a say in (something of their schedule
        is open), and those whose execution exists. Safe to repeat: a cursor that moved is in no group of it any more.

        Returns:
            What was created, how many of the counted cursors were left, and the shards whose fence was refused.
        """
        ...

    async def zone_rules(self) -> dict[Shard, str]:
        """Return the version of the rules of zones that the cursors of each shard stand by, where it is recorded.

        Read-only.
        """
        ...

    async def active_cursors(self, shard: Shard, *, after: ScheduleId, limit: int) -> tuple[Cursor, ...]:
        """Return cursors of active schedules of a shard, in the order of their ids, after one. Read-only.

        `limit` is at most `limits.PAGE_MAX`; fewer rows than that say that there are no more.
        """
        ...

    async def realign(self, leases: Sequence[Lease], moves: Sequence[Realigned], *, rules: str | None) -> int:
        """Move cursors to where other rules of zones put their fire times; return how many moved.

        Guarded (I3), one transaction, safe to repeat. For I2 it counts as an edit: a cursor may step back, but never
        to or before a fire time that has its outcome (I1, I4); such a one stays, and so does one that moved meanwhile.
        `rules` (None: nothing) is recorded for the shards of all leases that still hold. At most `limits.PAGE_MAX`
        moves.
        """
        ...

    async def park_schedules(self, leases: Sequence[Lease], parked: Sequence[tuple[ScheduleId, Shard, str]]) -> int:
        """Stop schedules that the engine can't read, each with its reason (I7); return how many.

        Guarded (I3), safe to repeat: only active ones count, the others stay as they are.
        """
        ...


class OutboxStore(Protocol):
    """Open entries: found, delivered, settled."""

    async def ready_entries(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> ReadyBatch:
        """Return READY entries with `due_us <= before_us`, top priority first in each shard, and cancels.

        Read-only. `limit` (at most `limits.HELD_MAX`) bounds the entries, and the cancels, of each shard; shards
        come in order. Entries under way are still READY when they came from here: the caller knows what it holds
        and skips it. One whose end was asked for is among the cancels only, whatever its state (key order), though
        it may be what `next_due_us` speaks of.
        """
        ...

    async def ready_routes(
        self, shards: Sequence[Shard], before_us: Instant, *, after: RouteId, limit: int
    ) -> RouteBatch:
        """Return the routes of READY entries with `due_us <= before_us`: what they ask of executors, as `Entry.route`.

        Read-only. Only routes greater than `after` (0 and up; -1: all) are looked at, and at most `limit` (at most
        `limits.ROUTES_MAX`) of each shard and priority: the least ones. One whose first entry is due later counts
        there and is left out of the answer; one all of whose entries somebody asked to end may be in it. `after` in
        the answer says where to go on when that many were looked at anywhere.
        """
        ...

    async def route_entries(self, routes: Sequence[ReadyRoute], before_us: Instant, *, limit: int) -> tuple[Entry, ...]:
        """Return READY entries with `due_us <= before_us` of some routes (at most `limits.PAGE_MAX`). Read-only.

        At most `limit` (at most `limits.HELD_MAX`) of each, the first by due time and key; routes come in order. As
        with `ready_entries`, entries under way are among them, and those whose end was asked for are not.
        """
        ...

    async def open_entries(
        self, shards: Sequence[Shard], *, after: ExecutionKey | None, limit: int
    ) -> tuple[Entry, ...]:
        """Return HELD entries, and READY ones whose delivery is recorded, in key order after `after`. Read-only.

        What a new holder loads when it takes over; it pages until fewer than `limit` come back.
        """
        ...

    async def withdrawals(self, shards: Sequence[Shard]) -> Withdrawals:
        """Count how often something planned ahead was withdrawn from shards.

        Whoever ends or deletes a HELD entry that is not due (`request_cancel`, `put_schedules`, `set_schedule_state`)
        counts one for its shard first, and then judges by the store's clock what is not due. This answer waits for all
        of them that are under way, so that a holder whose count is the same as before the entries were planned may
        send, without looking at each, what is due by the answer's clock. Safe to repeat. A shard that is absent from
        the answer is one of which the store can't tell: each delivery of what was planned ahead there is recorded.
        """
        ...

    async def record_deliveries(
        self, leases: Sequence[Lease], deliveries: Sequence[Delivery]
    ) -> tuple[ExecutionKey, ...]:
        """Record deliveries before they are sent; return the keys that may be sent. Guarded (I3), safe to repeat.

        A delivery is recorded only while the entry is HELD or READY, its attempt the current one, nobody asked for
        its end, and the same attempt was neither recorded nor marked running for another executor.
        """
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Write the outcomes of attempts: executions, entries, attempt rows, released successors; one transaction.

        Each is guarded by its attempt token alone (I5) and may come from any node. The same settlement again (one
        whose attempt is recorded with the same outcome) is CONFIRMED, any other token REFUSED, and so is what waits
        for its predecessor. One that does not end the execution makes attempt + 1 the current one, PARKED included,
        and no delivery of that is recorded. With `releases`, a terminal one makes the first WAITING entry of the
        schedule (by key) READY in the same transaction, and bumps the cursor's revision, so that a plan at the same
        moment can't miss it.

        Returns:
            One answer for each settlement, in order.

        Raises:
            InvalidValue: a state is neither terminal nor READY, RETRY_WAIT or PARKED. Nothing was written.
        """
        ...

    async def mark_running(self, running: Sequence[Running]) -> tuple[ExecutionKey, ...]:
        """Record that attempts run (state, start, executor, progress); safe to repeat.

        Only where `record_deliveries` would allow it, but for an end that was asked for. Progress None leaves
        what is there.

        Returns:
            The keys to cancel: their end was asked for, or the attempt is not the current one any more, or is
            another executor's.
        """
        ...


class ExecutionStore(Protocol):
    """Executions by request, and their end."""

    async def enqueue(self, requests: Sequence[EnqueueRequest]) -> tuple[Enqueued, ...]:
        """Make executions and their entries durable, in one transaction; answers in order.

        Repeatable where a request carries a key: the existing execution is returned. The same request id and
        fire time again is the same execution too (so one without a key is repeatable when its `fire_us` is given).
        It is due at its fire time, and never before now + `delay_us`. That the job exists is not checked.

        Raises:
            InvalidValue: a field is over a bound, or `schedule_id` is given: overlap is decided by
                `trigger_schedule`. Nothing was written.
            PayloadTooLarge: a payload is. Nothing was written.
        """
        ...

    async def trigger_schedule(self, request: EnqueueRequest) -> Enqueued | None:
        """Create an execution of a schedule by request (a manual run, a replay, a backfill): `request.schedule_id`.

        Overlap is decided under the cursor's lock by the rules of `commit_plan`, whatever the schedule's state
        unless it is deleted. Bumps the cursor's revision, so that a plan at the same moment can't miss it.
        Repeatable as `enqueue` is.

        Returns:
            The execution (WAITING with queue_one and replace when another is open), or None: overlap forbids it.

        Raises:
            NotFound: there is no such schedule in the request's shard.
        """
        ...

    async def request_cancel(self, keys: Sequence[ExecutionKey]) -> tuple[ExecutionState | None, ...]:
        """Ask for the end of executions, durably.

        One that nobody can be running yet is CANCELLED at once, whoever holds its shard: a waiting or parked one, one
        that is HELD and not due, one that is READY and due later than `limits.CANCEL_MARGIN_US`, retries included
        (`outbox.under_way`). Another open one ends when its holder or executor hears of it. Such an end releases its
        successor as `settle` does. Safe to repeat; at most `limits.PAGE_MAX` keys.

        Returns:
            The state of each afterwards (None: no such execution), in order.
        """
        ...

    async def unpark(self, keys: Sequence[ExecutionKey]) -> int:
        """Make parked executions ready again, due now; return how many were parked. Safe to repeat."""
        ...

    async def prune(
        self, shard: Shard, before_us: Instant, *, after: ExecutionKey | None, limit: int
    ) -> Page[ExecutionKey]:
        """Delete terminal executions that finished before an instant, walking a shard in key order.

        Looks at no more than `limit` executions from `after` on and deletes what qualifies, attempts and request
        keys with them. Open ones stay, whatever their age. The call that reaches the shard's end deletes up to
        `limit` of its ledger rows whose range ended before the instant, in key order. Two walks at one moment may
        name the same rows.

        Returns:
            The deleted keys, and where to go on: the text of the last key that was looked at (None: the shard's
            end was reached, there were fewer than `limit`).
        """
        ...


class CatalogStore(Protocol):
    """What users declare: jobs, triggers, schedules."""

    async def take_ids(self, count: int) -> IdSegment:
        """Take a segment of ids that nobody else gets. Repeating it takes another."""
        ...

    async def intern_jobs(self, specs: Sequence[JobSpec]) -> tuple[JobId, ...]:
        """Return the version id of each spec, in order, storing new ones. Equal specs get equal ids. Safe to repeat."""
        ...

    async def put_schedules(
        self, schedules: Sequence[NewSchedule], *, first_id: int, replace: bool = True
    ) -> tuple[ScheduleId | None, ...]:
        """Insert or update schedules by (namespace, name), in one transaction; ids in order.

        A new one gets its id from `first_id`, `first_id + 1`, … by its position. An unchanged one stays as it is,
        cursor included. A changed one gets a new version and revision, and is withdrawn (see below). With a changed
        trigger its cursor is set to the given first fire time, and what was due under the old trigger gets an outcome
        (PAUSED for a paused one, else DISABLED): all that `overdue` counts, while the cursor is where that begins;
        else the cursor's fire time, when it is due and before the new first one. With the same trigger the cursor
        stays (a fire that is overdue is not lost by a change of the payload). An instant that has an execution never
        gets a second one (I1). A paused one stays paused, a parked one is active again, a deleted one is made anew
        under its old id, whoever owned it.
        None where the name belongs to another owner (nothing of that row changed), or exists and `replace` is False.

        To withdraw: what the planner made ahead for a due time in the future and was never tried (attempt 1) is
        deleted, execution and entry, and the cursor steps back to the first of these fire times.

        Raises:
            InvalidValue: a text is too long or can't be kept, or a name comes twice. Nothing was written.
        """
        ...

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
        """Pause, resume (with the next fire time and the ledger rows of the pause) or delete one schedule.

        Happens only while `revision` is the cursor's; False: it moved or is gone, read it again. Every other state
        than ACTIVE withdraws as `put_schedules` does; not started executions that are due stay. ACTIVE without a
        fire time is EXHAUSTED; PAUSED with one moves the cursor there (what was due before is in `ledger`). The name
        of a deleted one is free for `put_schedules`.
        """
        ...

    async def reschedule(self, namespace: str, name_prefix: str, at_us: Instant) -> int:
        """Move the next fire of every active schedule whose name starts so to one instant; return how many moved.

        The verb behind "run this selection at T"; for I2 it counts as an edit. One that is due stays: its fire time
        gets its outcome first (I4). In transactions of at most `limits.RESCHEDULE_BATCH_MAX` schedules, in the order
        of their names; when one fails, those before it have moved, and repeating moves all of them.
        """
        ...

    async def prune_schedules(
        self, shard: Shard, before_us: Instant, *, after: ScheduleId, limit: int
    ) -> Page[ScheduleId]:
        """Delete schedules that are over, DELETED or EXHAUSTED, since before an instant and left nothing behind.

        Looks at no more than `limit` (at most `limits.PRUNE_BATCH_MAX`) of a shard's schedules, by id after one. One
        that still has executions, entries or ledger rows stays until `prune` has removed them, and so does one that
        changed since the instant. A name that is declared again is a schedule of its own, with an id that nobody
        had: no fire time of the old one can come again (I1). Two walks at one moment delete each once.

        Returns:
            The deleted ids, and where to go on: the last id that was looked at (None: the shard's end was reached).
        """
        ...


class ReadStore(Protocol):
    """Read-only pages for people and programs. Costs are bounded by the page, never by the history."""

    async def list_schedules(self, query: ScheduleFilter) -> Page[ScheduleView]:
        """Return schedules ordered by (namespace, name), compared by code point."""
        ...

    async def get_schedule(self, namespace: str, name: str) -> ScheduleView | None:
        """Return one schedule, None when there is none or it is deleted."""
        ...

    async def list_executions(self, query: ExecutionFilter) -> Page[ExecutionView]:
        """Return executions; the filter's docstring says which orders exist."""
        ...

    async def get_execution(self, key: ExecutionKey) -> ExecutionView | None:
        """Return one execution with its recorded attempts, None when there is none."""
        ...

    async def execution_states(self, keys: Sequence[ExecutionKey]) -> tuple[ExecutionState | None, ...]:
        """Return the state of each execution, in order (None: no such execution); at most `limits.PAGE_MAX` keys.

        One statement however many keys: what a crowd that waits for results asks again and again.
        """
        ...

    async def find_request(self, namespace: str, key: str) -> ExecutionKey | None:
        """Return the execution that a request key names."""
        ...

    async def list_ledger(self, schedule_id: ScheduleId, shard: Shard, *, limit: int) -> tuple[LedgerView, ...]:
        """Return the latest ledger rows of a schedule, newest first."""
        ...

    async def list_jobs(self, namespace: str | None, *, limit: int) -> tuple[JobView, ...]:
        """Return the latest version of each handler's job, ordered by (namespace, handler)."""
        ...

    async def cluster(self, *, node_ttl_us: int) -> Cluster:
        """Return the nodes seen within `node_ttl_us` and every lease, as `beat` does, without being a node."""
        ...

    async def backlog(self) -> Backlog:
        """Return bounded counts of what is due and open (each counted up to `limits.PAGE_MAX * 100`)."""
        ...


@runtime_checkable
class Store(LeaseStore, PlanStore, OutboxStore, ExecutionStore, CatalogStore, ReadStore, Protocol):
    """All roles, and the life of the connection to the technology."""

    @property
    def capabilities(self) -> Capabilities:
        """What this store can do."""
        ...

    @property
    def shards(self) -> int:
        """The number of shards recorded at initialisation; known after `open`."""
        ...

    async def open(self) -> None:
        """Connect, and check the schema.

        Raises:
            SchemaMismatch: migrate first, or upgrade this process.
            StoreCorrupt: the shard count asked for is not the recorded one, or lease rows are missing.
        """
        ...

    async def migrate(self, *, shards: int | None = None) -> int:
        """Bring the schema up to date; safe when several processes do it at once; return how many steps ran."""
        ...

    async def repair(self) -> tuple[Repair, ...]:
        """Restore rows of the store's own that a partial restore left out; one answer for each kind, one transaction.

        Safe to repeat, by several at once, and while nodes run: rows that are there stay as they are. The lease of a
        lost row comes back as one that ran out (what its holder had under way is in doubt), with a fence above any
        that was given out. Works on a store that is not open; one that is not initialised has nothing to repair.

        Raises:
            StoreCorrupt: what is missing can't be told from what is there; nothing was written.
        """
        ...

    async def close(self) -> None:
        """Release every connection; safe to repeat."""
        ...

    async def wait_hint(self, timeout_us: int) -> frozenset[Shard]:
        """Wait until somebody may have made something due sooner, or until the time is over.

        A hint may be lost or false: polling stays correct without it. An empty set says "time over", or
        "anything may have changed" when it returns early.
        """
        ...

    def enqueue_sql(self, kind: str) -> Any:  # noqa: ANN401 - each store has a type of its own for it
        """Return what `tx=` needs to enqueue inside a user's transaction of this kind of connection.

        Raises:
            Unsupported: this store can't; the message lists the kinds that it can.
        """
        ...


@runtime_checkable
class Gauged(Protocol):
    """What a store may do besides: tell who waits inside it. A node's telemetry asks, with each heartbeat."""

    def gauges(self) -> dict[str, int]:
        """Return numbers by name: waits for connections and for locks, now or since the start; costs nothing."""
        ...


@runtime_checkable
class Watchful(Protocol):
    """What a store may do besides: look at the technology under it. `luciole doctor` asks."""

    async def worries(self) -> tuple[Worry, ...]:
        """Return what should worry somebody, the worst first; nothing when all is well. Read-only."""
        ...
