"""A node: the engine's and the gateway's loops around one store, started and stopped together."""

import asyncio
import logging
import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version

from luciole import limits
from luciole.engine import engine
from luciole.engine.leaseholder import Taken
from luciole.gateway import gateway
from luciole.gateway.holds import Read
from luciole.model.ids import NodeId, Shard
from luciole.model.lease import Cluster, Lease, NodeInfo
from luciole.model.outbox import Entry
from luciole.model.retrying import Lost
from luciole.runtime.chance import Chance, new_process_id, system_chance
from luciole.runtime.clock import Clock, SystemClock
from luciole.runtime.lifecycle import Lifecycle, LoopGroup, Part, end_within
from luciole.runtime.probe import Probe
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.settings import Settings
from luciole.store.spi import Store

_log = logging.getLogger("luciole.node")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a node is given instead of looking for it; the defaults are the real world."""

    clock: Clock = field(default_factory=SystemClock)
    chance: Chance = field(default_factory=system_chance)
    node_id: NodeId = field(default_factory=new_process_id)  #: random for each start, never a host's name
    probe: Probe | None = None
    ignore_deadline: bool = False  #: a test hook: see `LeaseHolder`


class Node:
    """One scheduler process.

    `sessions.serve` takes the connections of executors, `connect` those of this process.

    Args:
        settings: the knobs.
        store: an open store.
        surroundings: time, randomness, identity.
    """

    def __init__(self, settings: Settings, store: Store, surroundings: Surroundings | None = None) -> None:
        around = surroundings or Surroundings()
        self.settings = settings
        self.node_id = around.node_id
        self.clock = around.clock
        self.telemetry = Telemetry(around.clock)
        self.store_clock = StoreClock(clock=around.clock)
        self.loops = LoopGroup(around.clock, around.chance, owner=around.node_id)
        self._lifecycle = Lifecycle(clock=around.clock)
        self.gateway = gateway.Gateway(self._gateway_surroundings(settings, store, around))
        self.engine = engine.Engine(self._engine_surroundings(settings, store, around), self._delivery())
        self.sessions = self.gateway.sessions
        self.connect = self.gateway.local.connect

    async def start(self) -> None:
        """Join the cluster and start all loops; all or nothing.

        Raises:
            ClockSkew: this host's clock is absurdly far from the store's.
            StoreCorrupt: lease rows are missing; the message names the repair.
            StoreUnavailable: the store can't be reached.
        """
        membership = self.engine.membership
        await self._lifecycle.start(
            (
                Part(name="membership", start=membership.start, stop=self._leave),
                Part(
                    name="loops",
                    start=self.loops.start,
                    stop=partial(self.loops.stop, grace_us=limits.LOOP_STOP_GRACE_US),
                ),
                Part(name="sessions", stop=self._end_sessions),
            )
        )
        _log.info("node %s has started", self.node_id)

    async def drain(self, grace_us: int) -> None:
        """Give the shards up at once, take nothing new, and wait for what executors here still run.

        Args:
            grace_us: how long to wait at most; what runs on after it is found by the shards' next holders.
        """
        self.engine.planner.running = False
        self.gateway.dispatcher.running = False
        self.sessions.drain(grace_us)
        end_us = self.clock.monotonic_us() + grace_us
        await end_within(self.clock, (asyncio.ensure_future(self._retire()),), grace_us)
        while len(self.gateway.flights) + self.gateway.reporter.waiting and self.clock.monotonic_us() < end_us:
            await self.clock.sleep(limits.DRAIN_LOOK_US)

    async def stop(self) -> None:
        """End everything in order and leave the cluster; without a `drain` before it, what runs is taken over."""
        await self._lifecycle.stop()
        _log.info("node %s has stopped", self.node_id)

    def cluster(self) -> Cluster | None:
        """Return the cluster as the last heartbeat brought it."""
        return self.engine.cluster()

    async def _leave(self) -> None:
        if self.engine.leases.may_leave():
            await self.engine.membership.leave()

    async def _retire(self) -> None:
        try:
            await self.engine.leases.retire()
        except Exception as error:  # noqa: BLE001 - they expire by themselves
            _log.warning("the leases could not be released: %s", error)

    async def _end_sessions(self) -> None:
        await self.sessions.close()
        await self.gateway.local.close()

    def _take_over(self, taken: Sequence[Taken]) -> None:
        for lease, clean in taken:
            self.gateway.recovery.take_over(lease, clean=clean)
        self.loops.poke("ahead")

    def _begin_plan(self) -> Read:
        return self.gateway.holds.begin_read(self.store_clock.now_us())

    def _add_planned(self, opening: object, entries: Sequence[Entry]) -> None:
        assert isinstance(opening, Read)
        news = self.gateway.holds.end_read(opening, entries)
        if news:
            self.gateway.dispatcher.add(news)

    def _lose(self, lost: Lost) -> None:
        self.engine.rescuer.take(lost)

    def _trusted(self) -> Sequence[Lease]:
        return self.engine.leases.trusted()

    def _forget(self, shards: Iterable[Shard]) -> None:
        self.gateway.recovery.forget(shards)

    def _delivery(self) -> engine.Delivery:
        return engine.Delivery(
            begin=self._begin_plan,
            add=self._add_planned,
            room=self.gateway.holds.room,
            reload=self.gateway.recovery.reload,
            take_over=self._take_over,
            forget=self._forget,
            close=self.gateway.close_shards,
            hint=self.gateway.poller.hint,
            jobs=self.gateway.jobs.load,
            settled=self.gateway.outcomes.apply,
            heard=self.gateway.sessions.tell_peers,
        )

    def _gateway_surroundings(self, settings: Settings, store: Store, around: Surroundings) -> gateway.Surroundings:
        return gateway.Surroundings(
            node_id=around.node_id,
            settings=settings,
            store=store,
            clock=around.clock,
            store_clock=self.store_clock,
            telemetry=self.telemetry,
            chance=around.chance,
            loops=self.loops,
            cluster=self.cluster,
            trusted=self._trusted,
            lose=self._lose,
            probe=around.probe,
        )

    def _engine_surroundings(self, settings: Settings, store: Store, around: Surroundings) -> engine.Surroundings:
        info = NodeInfo(
            node_id=around.node_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            address=settings.advertise or settings.listen,
            version=version("luciole"),
            tzdata=version("tzdata"),
            started_us=around.clock.now_us(),
        )
        return engine.Surroundings(
            node=info,
            settings=settings,
            store=store,
            clock=around.clock,
            store_clock=self.store_clock,
            telemetry=self.telemetry,
            loops=self.loops,
            probe=around.probe,
            ignore_deadline=around.ignore_deadline,
        )
