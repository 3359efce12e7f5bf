"""The batch verbs over single items."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from luciole import limits
from luciole.errors import InvalidValue, Unsupported
from luciole.model.execution import Enqueued, EnqueueRequest, ExecutionState, ExecutionView
from luciole.model.ids import NO_SCHEDULE, ExecutionKey, IdSegment, JobId, NodeId, RouteId, ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.job import JobSpec, JobVersion
from luciole.model.lease import Cluster, Lease, NodeInfo
from luciole.model.outbox import Delivery, Entry, Running, Settled, Settlement, Withdrawals
from luciole.model.plan import (
    DueBatch,
    LedgerRow,
    Move,
    Plan,
    PlanOutcome,
    ReadyBatch,
    ReadyRoute,
    Realigned,
    RouteBatch,
)
from luciole.model.schedule import Cursor, NewSchedule, ScheduleState, ScheduleView
from luciole.model.stride import DueGroup, GroupBatch, Share, Stride, StrideOutcome, group_of, step_move
from luciole.store.bounds import (
    check_batch,
    check_job,
    check_limit,
    check_plan,
    check_request,
    check_schedules,
    check_settlements,
    check_shards,
    check_stride,
    seen_routes,
)
from luciole.store.capabilities import Capabilities
from luciole.store.reads import Backlog, ExecutionFilter, JobView, LedgerView, Page, Repair, ScheduleFilter
from luciole.store.single.items import SingleItems


class Items:
    """What every role stands on: the store of single items."""

    def __init__(self, items: SingleItems) -> None:
        """Put the batch verbs in front of a store of single items."""
        self._items = items

    def _extra(self, verb: str) -> Any:  # noqa: ANN401 - each verb has a type of its own
        """Return a verb that a minimal store need not have.

        Raises:
            Unsupported: it hasn't.
        """
        method = getattr(self._items, verb, None)
        if method is None:
            raise Unsupported(
                f"{verb}: the store {self._items.capabilities.name} has no such verb; add it to the store"
            )
        return method

    async def _if_there(self, verb: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - same
        """Call a verb that a minimal store need not have, and that has nothing to do where it is missing."""
        method = getattr(self._items, verb, None)
        return None if method is None else await method(*args, **kwargs)


class LeasesOneByOne(Items):
    """The `LeaseStore` role."""

    async def now_us(self) -> Instant:
        """Return the store's clock."""
        return await self._items.now_us()

    async def beat(self, node: NodeInfo, *, node_ttl_us: int) -> Cluster:
        """Record that a node is alive; return everybody alive and every lease."""
        return await self._items.beat(node, node_ttl_us=node_ttl_us)

    async def cluster(self, *, node_ttl_us: int) -> Cluster:
        """Return the same without being a node."""
        return await self._items.cluster(node_ttl_us=node_ttl_us)

    async def leave(self, node_id: NodeId) -> None:
        """Forget a node and free all its leases at once."""
        await self._items.leave(node_id)

    async def acquire_leases(self, node_id: NodeId, shards: Sequence[Shard], *, ttl_us: int) -> tuple[Lease, ...]:
        """Take those of the shards that are free or expired."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_shards(shards, self._items.shards)
        taken = [await self._items.acquire_lease(node_id, shard, ttl_us=ttl_us) for shard in sorted(set(shards))]
        return tuple(lease for lease in taken if lease is not None)

    async def renew_leases(self, leases: Sequence[Lease], *, ttl_us: int) -> tuple[Lease, ...]:
        """Prolong leases, each only while it is still the caller's and has not expired."""
        check_batch("leases", leases, limits.SHARDS_MAX)
        renewed = [await self._items.renew_lease(lease, ttl_us=ttl_us) for lease in leases]
        found = {lease.shard: lease for lease in renewed if lease is not None}
        return tuple(found[shard] for shard in sorted(found))

    async def release_leases(self, leases: Sequence[Lease]) -> None:
        """Free leases that are still the caller's."""
        check_batch("leases", leases, limits.SHARDS_MAX)
        for lease in leases:
            await self._items.release_lease(lease)


class PlansOneByOne(Items):
    """The `PlanStore` role."""

    async def due_cursors(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> DueBatch:
        """Return cursors of active schedules that are due."""
        check_limit("limit", limit, limits.DUE_MAX)
        check_shards(shards, self._items.shards)
        return await self._items.due_cursors(shards, before_us, limit=limit)

    async def load_triggers(self, ids: Sequence[TriggerId]) -> dict[TriggerId, str]:
        """Return the canonical texts of triggers."""
        check_batch("ids", ids, limits.DUE_MAX)
        texts = {number: await self._items.load_trigger(number) for number in ids}
        return {number: text for number, text in texts.items() if text is not None}

    async def load_jobs(self, ids: Sequence[JobId]) -> dict[JobId, JobVersion]:
        """Return job versions; those that can't be read are absent."""
        check_batch("ids", ids, limits.DUE_MAX)
        versions = {number: await self._items.load_job(number) for number in ids}
        return {number: version for number, version in versions.items() if version is not None}

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        """Commit one move after the other; each schedule is whole (I2)."""
        check_plan(plan, limits.PLAN_BATCH_MAX)
        leases = {lease.shard: lease for lease in plan.leases}
        outcomes = [await self._items.commit_move(move, leases.get(move.cursor.shard)) for move in plan.moves]
        return PlanOutcome(
            entries=tuple(entry for outcome in outcomes for entry in outcome.entries),
            created=sum(outcome.created for outcome in outcomes),
            skipped=sum(outcome.skipped for outcome in outcomes),
            lost=tuple(schedule_id for outcome in outcomes for schedule_id in outcome.lost),
            refused=frozenset[Shard]().union(*(outcome.refused for outcome in outcomes)),
        )

    async def due_groups(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> GroupBatch:
        """Count due cursors by what decides their next step."""
        check_limit("limit", limit, limits.PLAN_BATCH_MAX)
        check_shards(shards, self._items.shards)
        shares: list[Share] = []
        groups: Counter[DueGroup] = Counter()
        for shard in sorted(set(shards)):
            cursors = (await self._items.due_cursors([shard], before_us, limit=limit)).cursors
            groups.update(map(group_of, cursors))
            if cursors:
                shares.append(Share(shard, len(cursors), cursors[-1].due_us, cursors[-1].schedule_id))
        more = any(share.cursors >= limit for share in shares)
        return GroupBatch(shares=tuple(shares), groups=dict(groups), more=more)

    async def commit_stride(self, stride: Stride) -> StrideOutcome:
        """Commit the step of one cursor after the other."""
        check_stride(stride, limits.PLAN_BATCH_MAX)
        steps = {step.group: step for step in stride.steps}
        moves: list[Move] = []
        for share in stride.shares:
            due = await self._items.due_cursors([share.shard], share.through_us, limit=share.cursors)
            moves += (
                step_move(cursor, steps[group_of(cursor)], ready=share.shard in stride.ready)
                for cursor in due.cursors
                if group_of(cursor) in steps and (cursor.due_us, cursor.schedule_id) <= share[2:]
            )
        done = await self.commit_plan(Plan(moves=tuple(moves), leases=stride.leases))
        left = stride.cursors(done.refused) - done.created
        return StrideOutcome(entries=done.entries, created=done.created, left=left, refused=done.refused)

    async def zone_rules(self) -> dict[Shard, str]:
        """Return the recorded rules of zones, where the store records any."""
        return await self._if_there("zone_rules") or {}

    async def active_cursors(self, shard: Shard, *, after: ScheduleId, limit: int) -> tuple[Cursor, ...]:
        """Return cursors of active schedules of a shard, where the store can."""
        rows: tuple[Cursor, ...] = await self._extra("active_cursors")(shard, after=after, limit=limit)
        return rows

    async def realign(self, leases: Sequence[Lease], moves: Sequence[Realigned], *, rules: str | None) -> int:
        """Move cursors to where other rules of zones put their fire times, where the store can."""
        return await self._if_there("realign", leases, moves, rules=rules) or 0

    async def park_schedules(self, leases: Sequence[Lease], parked: Sequence[tuple[ScheduleId, Shard, str]]) -> int:
        """Stop schedules that can't be read, each with its reason (I7)."""
        check_batch("parked", parked, limits.DUE_MAX)
        held = {lease.shard: lease for lease in leases}
        return sum(
            [
                await self._items.park_schedule(held.get(shard), schedule_id, shard, reason)
                for schedule_id, shard, reason in parked
            ]
        )


class OutboxOneByOne(Items):
    """The `OutboxStore` role."""

    async def ready_entries(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> ReadyBatch:
        """Return READY entries that are due, and cancels."""
        check_limit("limit", limit, limits.HELD_MAX)
        check_shards(shards, self._items.shards)
        return await self._items.ready_entries(shards, before_us, limit=limit)

    async def ready_routes(
        self, shards: Sequence[Shard], before_us: Instant, *, after: RouteId, limit: int
    ) -> RouteBatch:
        """Return what ready entries ask of executors, as far as one read of each shard reaches."""
        check_limit("limit", limit, limits.ROUTES_MAX)
        check_shards(shards, self._items.shards)
        firsts: dict[ReadyRoute, Instant] = {}
        for entry in await self._ready(shards, before_us):
            if entry.route > after:
                place = ReadyRoute(entry.key.shard, entry.priority, entry.route)
                firsts[place] = min(entry.due_us, firsts.get(place, entry.due_us))
        return seen_routes(sorted((*place, due_us) for place, due_us in firsts.items()), before_us, limit)

    async def route_entries(self, routes: Sequence[ReadyRoute], before_us: Instant, *, limit: int) -> tuple[Entry, ...]:
        """Return ready entries of some routes, as far as one read of each shard reaches."""
        check_batch("routes", routes, limits.PAGE_MAX)
        check_limit("limit", limit, limits.HELD_MAX)
        check_shards([route.shard for route in routes], self._items.shards)
        found: dict[ReadyRoute, list[Entry]] = {route: [] for route in sorted(set(routes))}
        for entry in await self._ready(sorted({route.shard for route in routes}), before_us):
            found.get(ReadyRoute(entry.key.shard, entry.priority, entry.route), []).append(entry)
        return tuple(
            entry
            for entries in found.values()
            for entry in sorted(entries, key=lambda entry: (entry.due_us, entry.key))[:limit]
        )

    async def _ready(self, shards: Sequence[Shard], before_us: Instant) -> list[Entry]:
        ready: list[Entry] = []
        for shard in sorted(set(shards)):
            ready += (await self._items.ready_entries([shard], before_us, limit=limits.HELD_MAX)).entries
        return ready

    async def open_entries(
        self, shards: Sequence[Shard], *, after: ExecutionKey | None, limit: int
    ) -> tuple[Entry, ...]:
        """Return what a new holder loads."""
        check_limit("limit", limit, limits.HELD_MAX)
        check_shards(shards, self._items.shards)
        return await self._items.open_entries(shards, after=after, limit=limit)

    async def withdrawals(self, shards: Sequence[Shard]) -> Withdrawals:
        """Count how often something planned ahead was withdrawn from shards, where the store can tell."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_shards(shards, self._items.shards)
        found: Withdrawals | None = await self._if_there("withdrawals", shards)
        return Withdrawals(await self._items.now_us(), {}) if found is None else found

    async def record_deliveries(
        self, leases: Sequence[Lease], deliveries: Sequence[Delivery]
    ) -> tuple[ExecutionKey, ...]:
        """Record deliveries before they are sent; return the keys that may be sent."""
        check_batch("deliveries", deliveries, limits.DELIVER_BATCH_MAX)
        held = {lease.shard: lease for lease in leases}
        allowed = [
            delivery.key
            for delivery in deliveries
            if await self._items.record_delivery(held.get(delivery.key.shard), delivery)
        ]
        return tuple(dict.fromkeys(allowed))

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Write the outcomes of attempts, one after the other."""
        check_settlements(settlements)
        return tuple([await self._items.settle_one(settlement) for settlement in settlements])

    async def mark_running(self, running: Sequence[Running]) -> tuple[ExecutionKey, ...]:
        """Record that attempts run; return the keys to cancel."""
        check_batch("running", running, limits.REPORT_BATCH_MAX)
        ended = [mark.key for mark in running if await self._items.mark_one_running(mark)]
        return tuple(dict.fromkeys(ended))


class ExecutionsOneByOne(Items):
    """The `ExecutionStore` role."""

    async def enqueue(self, requests: Sequence[EnqueueRequest]) -> tuple[Enqueued, ...]:
        """Make executions and their entries durable, one after the other."""
        check_batch("requests", requests, limits.ENQUEUE_BATCH_MAX)
        for request in requests:
            check_request(request, self._items.shards)
            if request.schedule_id != NO_SCHEDULE:
                raise InvalidValue("schedule_id: an execution of a schedule comes by `trigger_schedule`")
        return tuple([await self._items.enqueue_one(request) for request in requests])

    async def trigger_schedule(self, request: EnqueueRequest) -> Enqueued | None:
        """Create an execution of a schedule by request, where the store can."""
        check_request(request, self._items.shards)
        answer: Enqueued | None = await self._extra("trigger_schedule")(request)
        return answer

    async def request_cancel(self, keys: Sequence[ExecutionKey]) -> tuple[ExecutionState | None, ...]:
        """Ask for the end of executions; return the state of each afterwards."""
        check_batch("keys", keys, limits.PAGE_MAX)
        return tuple([await self._items.cancel_one(key) for key in keys])

    async def unpark(self, keys: Sequence[ExecutionKey]) -> int:
        """Make parked executions ready again, where the store can (`unpark_one(key) -> bool`)."""
        check_batch("keys", keys, limits.PAGE_MAX)
        return sum([await self._extra("unpark_one")(key) for key in keys])

    async def prune(
        self, shard: Shard, before_us: Instant, *, after: ExecutionKey | None, limit: int
    ) -> Page[ExecutionKey]:
        """Delete what retention no longer keeps; a store that can't prune keeps everything."""
        check_limit("limit", limit, limits.PRUNE_BATCH_MAX)
        check_shards([shard], self._items.shards)
        page: Page[ExecutionKey] | None = await self._if_there("prune", shard, before_us, after=after, limit=limit)
        return page or Page(rows=(), next=None)


class CatalogOneByOne(Items):
    """The `CatalogStore` role."""

    async def prune_schedules(
        self, shard: Shard, before_us: Instant, *, after: ScheduleId, limit: int
    ) -> Page[ScheduleId]:
        """Delete schedules that are over; a store that can't prune keeps everything."""
        check_limit("limit", limit, limits.PRUNE_BATCH_MAX)
        check_shards([shard], self._items.shards)
        page: Page[ScheduleId] | None = await self._if_there(
            "prune_schedules", shard, before_us, after=after, limit=limit
        )
        return page or Page(rows=(), next=None)

    async def take_ids(self, count: int) -> IdSegment:
        """Take a segment of ids that nobody else gets."""
        check_limit("count", count, limits.ID_SEGMENT_MAX)
        return IdSegment(first=await self._items.take_ids(count), count=count)

    async def intern_jobs(self, specs: Sequence[JobSpec]) -> tuple[JobId, ...]:
        """Return the version id of each spec, storing new ones."""
        check_batch("specs", specs, limits.REGISTER_BATCH_MAX)
        for spec in specs:
            check_job(spec)
        return tuple([await self._items.intern_job(spec) for spec in specs])

    async def put_schedules(
        self, schedules: Sequence[NewSchedule], *, first_id: int, replace: bool = True
    ) -> tuple[ScheduleId | None, ...]:
        """Insert or update schedules by name, one after the other."""
        check_schedules(schedules)
        return tuple(
            [
                await self._items.put_schedule(schedule, new_id=first_id + position, replace=replace)
                for position, schedule in enumerate(schedules)
            ]
        )

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
        """Pause, resume or delete one schedule, where the store can."""
        done: bool = await self._extra("set_schedule_state")(
            schedule_id, state, reason=reason, fire_us=fire_us, due_us=due_us, revision=revision, ledger=ledger
        )
        return done

    async def reschedule(self, namespace: str, name_prefix: str, at_us: Instant) -> int:
        """Move the next fire of a selection to one instant, where the store can."""
        moved: int = await self._extra("reschedule")(namespace, name_prefix, at_us)
        return moved


class ReadsOneByOne(Items):
    """The `ReadStore` role."""

    async def list_schedules(self, query: ScheduleFilter) -> Page[ScheduleView]:
        """Return schedules ordered by (namespace, name)."""
        check_limit("limit", query.limit, limits.PAGE_MAX)
        return await self._items.list_schedules(query)

    async def get_schedule(self, namespace: str, name: str) -> ScheduleView | None:
        """Return one schedule, None when there is none."""
        # Of all names that begin so, the name itself is the first.
        query = ScheduleFilter(namespace=namespace, name_prefix=name, limit=1)
        rows = (await self._items.list_schedules(query)).rows
        return rows[0] if rows and rows[0].spec.name == name else None

    async def list_executions(self, query: ExecutionFilter) -> Page[ExecutionView]:
        """Return executions, where the store can."""
        page: Page[ExecutionView] = await self._extra("list_executions")(query)
        return page

    async def get_execution(self, key: ExecutionKey) -> ExecutionView | None:
        """Return one execution, None when there is none."""
        return await self._items.get_execution(key)

    async def execution_states(self, keys: Sequence[ExecutionKey]) -> tuple[ExecutionState | None, ...]:
        """Return the state of each execution, in order."""
        check_batch("keys", keys, limits.PAGE_MAX)
        views = [await self._items.get_execution(key) for key in keys]
        return tuple(None if view is None else view.state for view in views)

    async def find_request(self, namespace: str, key: str) -> ExecutionKey | None:
        """Return the execution that a request key names, where the store can."""
        found: ExecutionKey | None = await self._extra("find_request")(namespace, key)
        return found

    async def list_ledger(self, schedule_id: ScheduleId, shard: Shard, *, limit: int) -> tuple[LedgerView, ...]:
        """Return the latest ledger rows of a schedule, where the store can."""
        rows: tuple[LedgerView, ...] = await self._extra("list_ledger")(schedule_id, shard, limit=limit)
        return rows

    async def list_jobs(self, namespace: str | None, *, limit: int) -> tuple[JobView, ...]:
        """Return the latest version of each handler's job, where the store can."""
        rows: tuple[JobView, ...] = await self._extra("list_jobs")(namespace, limit=limit)
        return rows

    async def backlog(self) -> Backlog:
        """Return counts of what is due and open, where the store can."""
        counts: Backlog = await self._extra("backlog")()
        return counts


class OneByOne(LeasesOneByOne, PlansOneByOne, OutboxOneByOne, ExecutionsOneByOne, CatalogOneByOne, ReadsOneByOne):
    """A whole `Store` over a store of single items."""

    @property
    def capabilities(self) -> Capabilities:
        """What this store can do."""
        return self._items.capabilities

    @property
    def shards(self) -> int:
        """The number of shards; known after `open`."""
        return self._items.shards

    async def open(self) -> None:
        """Connect, where there is something to connect to."""
        await self._if_there("open")

    async def migrate(self, *, shards: int | None = None) -> int:
        """Bring the schema up to date, where there is one."""
        return await self._if_there("migrate", shards=shards) or 0

    async def repair(self) -> tuple[Repair, ...]:
        """Restore rows of the store's own that are missing, where the store can."""
        return await self._if_there("repair") or ()

    async def close(self) -> None:
        """Release every connection, where there is one."""
        await self._if_there("close")

    async def wait_hint(self, timeout_us: int) -> frozenset[Shard]:
        """Wait until somebody may have made something due sooner, or until the time is over."""
        return await self._items.wait_hint(timeout_us)

    def enqueue_sql(self, kind: str) -> Any:  # noqa: ANN401 - each store has a type of its own for it
        """Return what `tx=` needs, where the store can."""
        return self._extra("enqueue_sql")(kind)
