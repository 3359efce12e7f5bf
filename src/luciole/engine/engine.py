"""The engine as a whole: its parts, who tells whom, and their loops."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from luciole import limits
from luciole.engine.commits import Opening
from luciole.engine.leaseholder import LeaseHolder, Taken
from luciole.engine.membership import Membership
from luciole.engine.planner import Planner
from luciole.engine.pruner import Pruner
from luciole.engine.realigner import Realigner
from luciole.engine.rescuer import LoadJobs, Rescuer
from luciole.model.ids import Shard
from luciole.model.lease import Cluster, Lease, NodeInfo
from luciole.model.outbox import Entry, Settled, Settlement
from luciole.runtime.backoff import Backoff
from luciole.runtime.clock import Clock
from luciole.runtime.lifecycle import LoopGroup
from luciole.runtime.probe import Probe
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.settings import Settings
from luciole.store.spi import Gauged, Store

#: Loops whose standstill makes a node unfit to hold shards.
_VITAL = ("plan", "deliver", "ahead", "record", "poll", "recover", "report-0", "report-1", "rescue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What the engine asks of the gateway, which it does not know."""

    begin: Callable[[], Opening]  #: told before entries are made durable
    add: Callable[[Opening, Sequence[Entry]], None]  #: takes them afterwards; called once for each `begin`
    room: Callable[[Shard], int]  #: how many more of a shard fit into memory
    reload: Callable[[Iterable[Shard]], None]  #: told of shards that may have entries no memory knows
    take_over: Callable[[Sequence[Taken]], None]  #: told of new leases
    forget: Callable[[Iterable[Shard]], None]  #: told of shards that are held no more
    close: Callable[[Sequence[Lease]], Awaitable[frozenset[Shard]]]  #: awaited before leases are released
    hint: Callable[[frozenset[Shard]], None]  #: told of shards where something may have become ready
    jobs: LoadJobs
    settled: Callable[[Entry, Settlement, Settled], None]  #: told what became of a rescue
    heard: Callable[[], None]  #: told after each heartbeat of this node


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the engine is given by its node."""

    node: NodeInfo
    settings: Settings
    store: Store
    clock: Clock
    store_clock: StoreClock
    telemetry: Telemetry
    loops: LoopGroup
    probe: Probe | None = None
    ignore_deadline: bool = False  #: a test hook: see `LeaseHolder`


class Engine:
    """The scheduler's half of a node."""

    def __init__(self, around: Surroundings, delivery: Delivery) -> None:
        self._around = around
        self._delivery = delivery
        self._plan_hinted_us = -limits.PLAN_HINT_PAUSE_US
        self._plan_hint_owed = False
        self._stall_seen_us: int | None = None
        self._backlog: dict[str, int] = {}
        self.membership = self._make_membership()
        self.leases = self._make_leases()
        self.rescuer = self._make_rescuer()
        self.planner = self._make_planner()
        self.pruner = Pruner(
            store=around.store,
            store_clock=around.store_clock,
            telemetry=around.telemetry,
            trusted=self.leases.trusted,
            retention_us=around.settings.retention_us,
            walk_pause_us=max(limits.PRUNE_WALK_PAUSE_US, around.settings.max_idle_wakeup_us),
        )
        self.realigner = Realigner(
            store=around.store,
            telemetry=around.telemetry,
            trusted=self.leases.trusted,
            rules=around.node.tzdata,
            pause_us=around.settings.local_pause_us,
        )
        self._add_loops()
        self._add_gauges()

    def cluster(self) -> Cluster | None:
        """Return the cluster as the last heartbeat brought it."""
        return self.membership.cluster

    def fit(self) -> bool:
        """Whether the loops that a shard depends on make progress."""
        loops = self._around.loops
        return all(loops[name].stalled_us() < self._around.settings.stuck_after_us for name in _VITAL)

    async def hear_hints(self) -> int:
        """Wait for one hint of the store and pass it on; a tick of its own loop."""
        clock = self._around.clock
        begun_us = clock.monotonic_us()
        wait_us = max(limits.HINT_WAIT_US, self._around.settings.max_idle_wakeup_us)
        if self._plan_hint_owed:
            wait_us = max(1, min(wait_us, self._plan_hinted_us + limits.PLAN_HINT_PAUSE_US - begun_us))
        shards = await self._around.store.wait_hint(wait_us)
        now_us = clock.monotonic_us()
        if shards or now_us - begun_us < wait_us:
            self._delivery.hint(shards)
            self._plan_hint_owed = True
        # Most hints are of enqueues, which bring the planner nothing: some of them share one look.
        if self._plan_hint_owed and now_us - self._plan_hinted_us >= limits.PLAN_HINT_PAUSE_US:
            self._plan_hinted_us = now_us
            self._plan_hint_owed = False
            self._around.loops.poke("plan")
        return 0

    async def note_stall(self) -> int:
        """Note by how much this loop's own pause was overrun: what blocks the event loop shows here."""
        now_us = self._around.clock.monotonic_us()
        pause_us = self._around.settings.lease_ttl_us // limits.STALL_LOOKS
        if self._stall_seen_us is not None:
            late_us = now_us - self._stall_seen_us - pause_us
            self._around.telemetry.note("event_loop_stall", max(0, late_us))
        self._stall_seen_us = now_us
        return pause_us

    async def count_backlog(self) -> int:
        """Ask the store what is due and open, for the telemetry; a tick of its own loop."""
        backlog = await self._around.telemetry.timed("backlog", self._around.store.backlog())
        now_us = self._around.store_clock.now_us()
        oldest = {"due": backlog.oldest_due_us, "ready": backlog.oldest_ready_us}
        self._backlog = {
            "due_schedules": backlog.due_schedules,
            "open_entries": backlog.open_entries,
            "ready_due": backlog.ready_due,
            "parked": backlog.parked,
        } | {f"oldest_{name}_age_us": now_us - at_us for name, at_us in oldest.items() if at_us is not None}
        return self._backlog_pause_us()

    def _backlog_pause_us(self) -> int:
        return max(limits.BACKLOG_PAUSE_US, self._around.settings.max_idle_wakeup_us)

    def _heard(self) -> None:
        self._around.loops.poke("leases")
        self._delivery.heard()

    def _make_membership(self) -> Membership:
        around = self._around
        return Membership(
            store=around.store,
            node=around.node,
            clock=around.clock,
            store_clock=around.store_clock,
            telemetry=around.telemetry,
            beat_pause_us=around.settings.heartbeat_pause_us,
            node_ttl_us=around.settings.node_ttl_us,
            fit=self.fit,
            heard=self._heard,
        )

    def _make_leases(self) -> LeaseHolder:
        around = self._around
        return LeaseHolder(
            store=around.store,
            node_id=around.node.node_id,
            clock=around.clock,
            store_clock=around.store_clock,
            telemetry=around.telemetry,
            ttl_us=around.settings.lease_ttl_us,
            margin_us=around.settings.lease_margin_us,
            renew_pause_us=around.settings.lease_renew_pause_us,
            node_ttl_us=around.settings.node_ttl_us,
            cluster=self.cluster,
            fit=self.fit,
            taken=self._take_over,
            lost=self._delivery.forget,
            closing=self._delivery.close,
            ignore_deadline=around.ignore_deadline,
        )

    def _make_rescuer(self) -> Rescuer:
        around = self._around
        return Rescuer(
            store=around.store,
            store_clock=around.store_clock,
            telemetry=around.telemetry,
            trusted=self.leases.trusted,
            jobs=self._delivery.jobs,
            settled=self._delivery.settled,
            wake=lambda: around.loops.poke("rescue"),
        )

    def _make_planner(self) -> Planner:
        around = self._around
        return Planner(
            store=around.store,
            leases=self.leases,
            store_clock=around.store_clock,
            telemetry=around.telemetry,
            begin=self._delivery.begin,
            deliver=self._delivery.add,
            room=self._delivery.room,
            recover=self._delivery.reload,
            progress=self._note_planning,
            batch_min=around.settings.batch_size,
            due_max=around.settings.max_due_records_per_tick,
            idle_pause_us=around.settings.max_idle_wakeup_us,
            plan_ahead_us=around.settings.plan_ahead_us,
            probe=around.probe,
        )

    def _take_over(self, taken: Sequence[Taken]) -> None:
        self._delivery.take_over(taken)
        self._around.loops.poke("plan")

    def _note_planning(self) -> None:
        self._around.loops["plan"].progress()

    def _add_loops(self) -> None:
        loops, settings = self._around.loops, self._around.settings
        # What keeps a lease is tried again before it is over.
        hasty = Backoff(max_us=settings.lease_renew_pause_us // 2)
        loops.add("membership", self.membership.tick, backoff=hasty, pause_max_us=settings.heartbeat_pause_us)
        loops.add("leases", self.leases.tick, backoff=hasty, pause_max_us=settings.lease_renew_pause_us)
        loops.add("plan", self.planner.tick, pause_max_us=settings.max_idle_wakeup_us)
        loops.add("rescue", self.rescuer.tick, pause_max_us=settings.local_pause_us)
        loops.add("prune", self.pruner.tick, pause_max_us=self.pruner.walk_pause_us)
        loops.add("realign", self.realigner.tick, pause_max_us=settings.local_pause_us)
        loops.add("hints", self.hear_hints, listens=True)
        loops.add("backlog", self.count_backlog, pause_max_us=self._backlog_pause_us())
        loops.add("stalls", self.note_stall, pause_max_us=settings.lease_ttl_us)

    def _add_gauges(self) -> None:
        gauge = self._around.telemetry.gauge
        loops = self._around.loops
        store = self._around.store
        if isinstance(store, Gauged):
            gauge("store", store.gauges)
        gauge("backlog", lambda: self._backlog)
        gauge("shards", lambda: len(self.leases.trusted()))
        gauge("plan_batch", lambda: self.planner.batch)
        gauge("rescues_waiting", lambda: self.rescuer.waiting)
        gauge("clock_offset_us", self._around.store_clock.wall_offset_us)
        gauge("clock_jumps", lambda: self._around.store_clock.jumps)
        gauge("loop_age_us", lambda: {loop.name: loop.stalled_us() for loop in loops})
        gauge("loop_failures", lambda: {loop.name: loop.failures for loop in loops if loop.failures})
