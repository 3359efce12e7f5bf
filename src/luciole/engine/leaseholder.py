"""Leases: this node's fair share of the shards, trusted only until its own deadline."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from luciole.errors import FenceError
from luciole.model.ids import NodeId, Shard
from luciole.model.lease import Cluster, Lease, LeaseState
from luciole.runtime.clock import Clock
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import LeaseStore

_log = logging.getLogger("luciole.leases")


class Taken(NamedTuple):
    """A lease that was just taken, and how the shard was left."""

    lease: Lease
    clean: bool  #: its former holder released it (or there was none), so all it delivered is on record


class _Hold(NamedTuple):
    lease: Lease
    deadline_us: int  #: by the host's monotonic clock: renewal sent + time to live - margin


@dataclass(slots=True, kw_only=True)
class LeaseHolder:
    """Holds leases: renews them, gives the excess up, takes what is free, forgets what it can't trust.

    A lease is trusted until this node's own deadline for it, which comes before the store lets anybody else take it;
    a node that is told nothing for so long stops writing by itself.
    """

    store: LeaseStore
    node_id: NodeId
    clock: Clock
    store_clock: StoreClock
    telemetry: Telemetry
    ttl_us: int
    margin_us: int
    renew_pause_us: int
    node_ttl_us: int
    cluster: Callable[[], Cluster | None]
    fit: Callable[[], bool]
    taken: Callable[[Sequence[Taken]], None]  #: told of new leases
    lost: Callable[[frozenset[Shard]], None]  #: told of shards that are this node's no more
    #: Awaited before leases are released; returns the shards of which everything delivered is on record.
    closing: Callable[[Sequence[Lease]], Awaitable[frozenset[Shard]]]
    ignore_deadline: bool = False  #: a test hook: with it only the store's fence stands between two holders
    _held: dict[Shard, _Hold] = field(default_factory=dict)
    _abandoned: dict[Shard, int] = field(default_factory=dict)  #: since when, by the store
    _retired: bool = False
    _renewed_us: int = 0

    def trusted(self) -> tuple[Lease, ...]:
        """Return the leases that may be written under right now, ordered by shard."""
        if not self.ignore_deadline:
            self._expire()
        return tuple(self._told(hold) for _, hold in sorted(self._held.items()))

    def _told(self, hold: _Hold) -> Lease:
        """Return a lease with the deadline past which a store sends nothing under it."""
        # I3: this process may be stopped anywhere between the look at its leases and the socket.
        return hold.lease if self.ignore_deadline else replace(hold.lease, trusted_until_us=hold.deadline_us)

    def forget(self, shards: Iterable[Shard]) -> None:
        """Forget leases that the store refused."""
        gone = frozenset(shard for shard in shards if self._held.pop(shard, None) is not None)
        if gone:
            self.telemetry.count("leases_lost", len(gone))
            self.lost(gone)

    async def tick(self) -> int:
        """Renew, then come closer to the fair share; return the pause."""
        if self._retired or not self.fit():
            return self.renew_pause_us  # Not renewed: others take over what this node can't serve.
        begun_us = self.clock.monotonic_us()
        if begun_us - self._renewed_us >= self.renew_pause_us * 9 // 10:
            await self._renew(begun_us)
            self._renewed_us = begun_us
        cluster = self.cluster()
        if cluster is not None:
            await self._balance(cluster)
        pause_us = self._renewed_us + self.renew_pause_us - self.clock.monotonic_us()
        return max(0, min(pause_us, self._until_expiry_us(cluster)))

    async def retire(self) -> None:
        """Give everything up and take nothing any more."""
        self._retired = True
        await self._release(tuple(self._told(hold) for hold in self._held.values()))

    def may_leave(self) -> bool:
        """Whether freeing every lease that the store has as this node's hides nothing from their next holders."""
        cluster = self.cluster()
        if cluster is not None:
            for state in cluster.leases:
                since_us = self._abandoned.get(state.shard, cluster.now_us)
                if state.holder != self.node_id and since_us < cluster.now_us:
                    del self._abandoned[state.shard]
        return not self._held and not self._abandoned

    def _expire(self) -> None:
        now_us = self.clock.monotonic_us()
        # I3: the store would still refuse, but a node past its own deadline does not even try.
        late = [shard for shard, hold in self._held.items() if hold.deadline_us <= now_us]
        if late:
            _log.warning("not renewed in time: shards %s are given up", sorted(late))
            self._abandon(late)
            self.forget(late)

    def _abandon(self, shards: Iterable[Shard]) -> None:
        """Note that the store may have leases as this node's until somebody else takes them."""
        now_us = self.store_clock.now_us()
        for shard in shards:
            self._abandoned[shard] = now_us

    async def _renew(self, sent_us: int) -> None:
        leases = self.trusted()
        if not leases:
            return
        try:
            renewed = await self.telemetry.timed("renew_leases", self.store.renew_leases(leases, ttl_us=self.ttl_us))
        except FenceError:
            self.trusted()  # Stopped for too long on the way: what is over is given up, and taken anew.
            return
        deadline_us = sent_us + self.ttl_us - self.margin_us
        kept = {lease.shard: lease for lease in renewed}
        for lease in leases:
            hold = self._held.get(lease.shard)
            if hold is None or hold.lease.fence != lease.fence:
                continue  # Forgotten while the renewal was under way: it stays forgotten.
            if lease.shard in kept:
                self._held[lease.shard] = _Hold(kept[lease.shard], deadline_us)
            elif not self.ignore_deadline:
                self.forget((lease.shard,))

    async def _balance(self, cluster: Cluster) -> None:
        alive = self._alive(cluster)
        share = fair_share(alive, self.node_id, len(cluster.leases))
        most = -(-len(cluster.leases) // max(1, len(alive)))
        excess = len(self._held) - most
        if excess > 0:
            # A newcomer has not got its share. Only what is over the largest fair share moves, so that two nodes
            # which see different clusters for a moment don't pass shards to and fro.
            await self._release(tuple(self._told(self._held[shard]) for shard in sorted(self._held)[-excess:]))
        elif len(self._held) < share:
            await self._acquire(cluster, alive, share - len(self._held))

    async def _acquire(self, cluster: Cluster, alive: Sequence[NodeId], wanted: int) -> None:
        now_us = self.store_clock.now_us()
        free = [state for state in cluster.leases if self._is_free(state, now_us)]
        if not free:
            return
        # Nodes that look at the same moment begin at different places.
        start = alive.index(self.node_id) * len(free) // len(alive) if self.node_id in alive else 0
        chosen = {state.shard: state for state in (free[start:] + free[:start])[:wanted]}
        sent_us = self.clock.monotonic_us()
        former = dict(self._abandoned)
        self._abandon(chosen)  # Whatever becomes of the answer.
        leases = await self.telemetry.timed(
            "acquire_leases", self.store.acquire_leases(self.node_id, sorted(chosen), ttl_us=self.ttl_us)
        )
        taken = {lease.shard for lease in leases}
        self._abandoned = {shard: since_us for shard, since_us in former.items() if shard not in taken}
        fresh = []
        for lease in leases:
            self._held[lease.shard] = _Hold(lease, sent_us + self.ttl_us - self.margin_us)
            before = chosen[lease.shard]
            fresh.append(Taken(lease, clean=before.holder is None and lease.fence == before.fence + 1))
        if fresh:
            self.telemetry.count("leases_taken", len(fresh))
            self.taken(fresh)

    async def _release(self, leases: Sequence[Lease]) -> None:
        if not leases:
            return
        for lease in leases:
            self._held.pop(lease.shard, None)
        self._abandon(lease.shard for lease in leases)
        # From here on nothing of these shards is planned or delivered; what was delivered goes on record.
        clean = await self.closing(leases)
        # A free lease tells its next holder that all is on record. Where it is not, this one runs out instead.
        released = [lease for lease in leases if lease.shard in clean]
        await self.telemetry.timed("release_leases", self.store.release_leases(released))
        for lease in released:
            self._abandoned.pop(lease.shard, None)

    def _alive(self, cluster: Cluster) -> list[NodeId]:
        now_us = self.store_clock.now_us()
        return sorted(
            node.node_id
            for node in cluster.nodes
            if node.node_id == self.node_id or node.seen_us + self.node_ttl_us > now_us
        )

    def _is_free(self, state: LeaseState, now_us: int) -> bool:
        if state.shard in self._held:
            return False
        return state.holder is None or state.holder == self.node_id or state.expires_us <= now_us

    def _until_expiry_us(self, cluster: Cluster | None) -> int:
        """Return the time until the first lease of another node runs out, as far as this node knows."""
        if cluster is None:
            return self.renew_pause_us
        now_us = self.store_clock.now_us()
        ends = [state.expires_us - now_us for state in cluster.leases if state.holder not in {None, self.node_id}]
        return min((end for end in ends if end > 0), default=self.renew_pause_us)


def fair_share(alive: Sequence[NodeId], node_id: NodeId, shards: int) -> int:
    """Return how many shards a node should hold: an equal part, the first nodes by id one more."""
    if node_id not in alive:
        return 0
    each, extra = divmod(shards, len(alive))
    return each + (alive.index(node_id) < extra)
