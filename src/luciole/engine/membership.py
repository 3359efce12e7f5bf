"""Membership: one heartbeat row a node, and what it brings back."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from luciole import limits
from luciole.model.lease import Cluster, NodeInfo
from luciole.runtime.clock import Clock
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import LeaseStore

_log = logging.getLogger("luciole.membership")


@dataclass(slots=True, kw_only=True)
class Membership:
    """Keeps this node among the living, and knows the others."""

    store: LeaseStore
    node: NodeInfo
    clock: Clock
    store_clock: StoreClock
    telemetry: Telemetry
    beat_pause_us: int
    node_ttl_us: int
    fit: Callable[[], bool]  #: whether this node's loops make progress: one that is stuck must not look alive
    heard: Callable[[], None]  #: told after each heartbeat
    cluster: Cluster | None = None
    _beats: int = 0

    async def start(self) -> None:
        """Beat once, and check what must hold before anything runs.

        Raises:
            ClockSkew: this host's clock is absurdly far from the store's.
            StoreCorrupt: lease rows are missing.
        """
        await self._beat()
        self.store_clock.refuse_skew()

    async def tick(self) -> int:
        """Beat once, unless this node is stuck; return the pause until the next."""
        if not self.fit():
            _log.error("a loop makes no progress: this node leaves its place to others until it does")
            return self.beat_pause_us
        begun_us = self.clock.monotonic_us()
        await self._beat()
        self.heard()
        return max(0, begun_us + self.beat_pause_us - self.clock.monotonic_us())

    async def _ask_time(self) -> None:
        """Take a sample of the store's clock that no commit has aged.

        What a heartbeat brings is as old as its commit took; by so much every enqueue would start late. One such
        sample is always among the latest few that count.
        """
        sent_us = self.clock.monotonic_us()
        store_us = await self.store.now_us()
        self.store_clock.observe(store_us, sent_us=sent_us, received_us=self.clock.monotonic_us())

    async def leave(self) -> None:
        """Take this node out, so that nobody waits for its leases to expire."""
        await self.telemetry.timed("leave", self.store.leave(self.node.node_id))

    async def _beat(self) -> None:
        info = replace(self.node, telemetry=self.telemetry.text())
        sent_us = self.clock.monotonic_us()
        cluster = await self.telemetry.timed("beat", self.store.beat(info, node_ttl_us=self.node_ttl_us))
        self.store_clock.observe(cluster.now_us, sent_us=sent_us, received_us=self.clock.monotonic_us())
        if self._beats % limits.CLOCK_ASK_BEATS == 0:
            await self._ask_time()
        self._beats += 1
        known = frozenset(node.node_id for node in self.cluster.nodes) if self.cluster else frozenset()
        alive = frozenset(node.node_id for node in cluster.nodes)
        if alive != known:
            _log.info("nodes alive: %s", ", ".join(sorted(alive)))
        self.cluster = cluster
