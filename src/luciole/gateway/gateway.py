"""The gateway as a whole: its parts, who tells whom, and their loops."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from luciole.gateway.ahead import Ahead
from luciole.gateway.dispatcher import Dispatcher
from luciole.gateway.flights import Flights
from luciole.gateway.hidden import Hidden
from luciole.gateway.holds import Holds
from luciole.gateway.jobs import JobShelf
from luciole.gateway.local import LocalGateway
from luciole.gateway.outcomes import Outcomes
from luciole.gateway.poller import Poller
from luciole.gateway.recovery import Recovery
from luciole.gateway.reporter import Reporter
from luciole.gateway.running import RunRecorder
from luciole.gateway.session import Session
from luciole.gateway.sessions import Sessions
from luciole.gateway.unparker import Unparker
from luciole.model.ids import NodeId, Shard
from luciole.model.lease import Cluster, Lease
from luciole.model.retrying import Lost
from luciole.model.routing import Route
from luciole.runtime.chance import Chance
from luciole.runtime.clock import Clock
from luciole.runtime.lifecycle import LoopGroup
from luciole.runtime.probe import Probe
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.settings import Settings
from luciole.store.spi import Store

#: Settle calls that may be under way at once.
_REPORTERS = ("report-0", "report-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the gateway is given by its node."""

    node_id: NodeId
    settings: Settings
    store: Store
    clock: Clock
    store_clock: StoreClock
    telemetry: Telemetry
    chance: Chance
    loops: LoopGroup
    cluster: Callable[[], Cluster | None]
    trusted: Callable[[], Sequence[Lease]]
    lose: Callable[[Lost], None]  #: takes attempts that have to be taken back
    probe: Probe | None = None


class Gateway:
    """The server end of executors."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self.jobs = JobShelf(around.store, around.telemetry)
        self.flights = Flights()
        self.holds = Holds(self.jobs, self.flights, held_max=around.settings.held_max)
        self.outcomes = self._make_outcomes()
        self.reporter = self._make_reporter()
        self.dispatcher = self._make_dispatcher()
        self.recovery = self._make_recovery()
        self.ahead = self._make_ahead()
        self.poller = self._make_poller()
        self.runs = self._make_runs()
        self.unparker = Unparker(store=around.store, telemetry=around.telemetry, wake=self._wake("unpark"))
        self.sessions = self._make_sessions()
        self.local = LocalGateway(partial(self.sessions.serve, trusted=True))
        self._add_loops()
        self._add_gauges()

    def peers(self) -> tuple[str, ...]:
        """Return where the gateways of the other live nodes listen."""
        cluster = self._around.cluster()
        nodes = () if cluster is None else cluster.nodes
        return tuple(
            node.address for node in nodes if node.address is not None and node.node_id != self._around.node_id
        )

    async def close_shards(self, leases: Sequence[Lease]) -> frozenset[Shard]:
        """Stop delivering shards that are about to be released, and put what is under way on record.

        Returns:
            Those of which everything that may run is on record.
        """
        clean = frozenset(lease.shard for lease in leases if self.holds.clean(lease.shard))
        self.recovery.forget(lease.shard for lease in leases)
        await self.dispatcher.record_flights(leases)
        return clean

    def _all_sessions(self) -> Sequence[Session]:
        return self.sessions.all()

    def _lose(self, lost: Lost) -> None:
        self.holds.stray(lost.entry.key)
        self._around.lose(lost)

    def _wake(self, name: str) -> Callable[[], None]:
        return partial(self._around.loops.poke, name)

    def _wake_reporters(self) -> None:
        for name in _REPORTERS:
            self._around.loops.poke(name)

    def _known_elsewhere(self, route: Route) -> bool:
        """Say whether an executor of another node knows a handler, as the nodes tell with their heartbeats."""
        cluster = self._around.cluster()
        for node in () if cluster is None else cluster.nodes:
            if node.node_id == self._around.node_id:
                continue
            try:
                handlers = json.loads(node.telemetry)["gauges"]["handlers"]
                if route.handler in handlers.get(route.namespace, ()):
                    return True
            except (ValueError, KeyError, TypeError, AttributeError):
                return True  # A node of another version: who can't be understood is not overruled.
        return False

    def _handlers(self) -> dict[str, list[str]]:
        known: dict[str, set[str]] = {}
        for session in self.sessions.all():
            known.setdefault(session.namespace, set()).update(session.handlers)
        return {namespace: sorted(handlers) for namespace, handlers in sorted(known.items())}

    def _make_outcomes(self) -> Outcomes:
        return Outcomes(
            holds=self.holds,
            flights=self.flights,
            store_clock=self._around.store_clock,
            telemetry=self._around.telemetry,
            wake_delivery=self._wake("deliver"),
            wake_polling=self._wake("poll"),
        )

    def _make_reporter(self) -> Reporter:
        around = self._around
        return Reporter(
            store=around.store,
            store_clock=around.store_clock,
            telemetry=around.telemetry,
            flights=self.flights,
            jobs=self.jobs,
            outcomes=self.outcomes,
            chance=around.chance,
            wake=self._wake_reporters,
            probe=around.probe,
        )

    def _make_dispatcher(self) -> Dispatcher:
        around = self._around
        return Dispatcher(
            store=around.store,
            clock=around.clock,
            store_clock=around.store_clock,
            telemetry=around.telemetry,
            holds=self.holds,
            flights=self.flights,
            jobs=self.jobs,
            reporter=self.reporter,
            sessions=self._all_sessions,
            trusted=around.trusted,
            known_elsewhere=self._known_elsewhere,
            lose=self._lose,
            wake=self._wake("deliver"),
            wake_recording=self._wake("record"),
            wake_ahead=self._wake("ahead"),
            unknown_grace_us=around.settings.unknown_handler_grace_us,
            probe=around.probe,
        )

    def _make_recovery(self) -> Recovery:
        around = self._around
        return Recovery(
            store=around.store,
            clock=around.clock,
            store_clock=around.store_clock,
            telemetry=around.telemetry,
            holds=self.holds,
            flights=self.flights,
            sessions=self._all_sessions,
            peers=self.peers,
            lose=self._lose,
            add=self.dispatcher.add,
            wake=self._wake("recover"),
            wake_polling=self._wake("poll"),
            grace_us=around.settings.reconnect_grace_us,
        )

    def _make_ahead(self) -> Ahead:
        around = self._around
        return Ahead(
            store=around.store,
            store_clock=around.store_clock,
            telemetry=around.telemetry,
            holds=self.holds,
            trusted=around.trusted,
            wake_delivery=self._wake("deliver"),
            plans_ahead=around.settings.plan_ahead_us > 0,
        )

    def _make_poller(self) -> Poller:
        around = self._around
        return Poller(
            store=around.store,
            clock=around.clock,
            store_clock=around.store_clock,
            telemetry=around.telemetry,
            holds=self.holds,
            hidden=Hidden(
                store=around.store,
                telemetry=around.telemetry,
                holds=self.holds,
                jobs=self.jobs,
                sessions=self._all_sessions,
            ),
            idle=self.dispatcher.has_idle,
            trusted=around.trusted,
            polled=self.recovery.polled,
            add=self.dispatcher.add,
            cancel=self.dispatcher.cancel,
            wake=self._wake("poll"),
            idle_pause_us=around.settings.max_idle_wakeup_us,
        )

    def _make_runs(self) -> RunRecorder:
        around = self._around
        return RunRecorder(
            store=around.store,
            telemetry=around.telemetry,
            flights=self.flights,
            wake=self._wake("runs"),
        )

    def _make_sessions(self) -> Sessions:
        around = self._around
        return Sessions(
            node_id=around.node_id,
            clock=around.clock,
            store_clock=around.store_clock,
            telemetry=around.telemetry,
            reporter=self.reporter,
            recovery=self.recovery,
            flights=self.flights,
            unparker=self.unparker,
            undeliverable=self.dispatcher.undeliverable,
            peers=self.peers,
            wake_delivery=self._wake("deliver"),
            running=self.runs.add,
            token=around.settings.token,
            session_ttl_us=around.settings.session_ttl_us,
            reconnect_grace_us=around.settings.reconnect_grace_us,
        )

    def _add_loops(self) -> None:
        loops = self._around.loops
        local_us = self._around.settings.local_pause_us
        loops.add("poll", self.poller.tick, pause_max_us=self._around.settings.max_idle_wakeup_us)
        # What the others wait for happens in this process, where no wake-up gets lost.
        for name in _REPORTERS:
            loops.add(name, self.reporter.tick, pause_max_us=local_us)
        loops.add("deliver", self.dispatcher.tick, pause_max_us=local_us)
        loops.add("ahead", self.ahead.tick, pause_max_us=local_us)
        loops.add("record", self.dispatcher.record, pause_max_us=local_us)
        loops.add("recover", self.recovery.tick, pause_max_us=local_us)
        loops.add("unpark", self.unparker.tick, pause_max_us=local_us)
        loops.add("runs", self.runs.tick, pause_max_us=local_us)
        loops.add("sessions", self.sessions.watch, pause_max_us=self._around.settings.session_ttl_us)

    def _add_gauges(self) -> None:
        gauge = self._around.telemetry.gauge
        gauge("handlers", self._handlers)
        gauge("sessions", lambda: len(self.sessions.by_executor))
        gauge("slots", lambda: sum(session.slots for session in self.sessions.all()))
        gauge("credits", lambda: sum(session.credits for session in self.sessions.all()))
        gauge("held", lambda: len(self.holds))
        gauge("in_flight", lambda: len(self.flights))
        gauge("orphans", lambda: self.flights.orphans)
        gauge("unsettled", lambda: self.reporter.waiting)
