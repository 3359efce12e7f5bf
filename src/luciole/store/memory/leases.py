"""Who is alive, and who holds which shard."""

from collections.abc import Sequence
from dataclasses import replace

from luciole import limits
from luciole.errors import StoreCorrupt
from luciole.model.ids import NodeId, Shard
from luciole.model.instant import Instant
from luciole.model.lease import LOST_HOLDER, Cluster, Lease, LeaseState, NodeInfo
from luciole.store.bounds import check_batch, check_shards, check_trusted
from luciole.store.memory.client import MemoryClient
from luciole.store.reads import Repair, restored_leases

#: A node unseen for so many times its time to live is forgotten.
FORGET_AFTER_TTLS = 10


class MemoryLeases(MemoryClient):
    """The `LeaseStore` role."""

    async def now_us(self) -> Instant:
        """Return the store's clock."""
        with self._transaction() as now_us:
            return now_us

    async def beat(self, node: NodeInfo, *, node_ttl_us: int) -> Cluster:
        """Record that a node is alive; return everybody alive and every lease."""
        with self._transaction() as now_us:
            nodes = self._state.nodes
            cluster = self._cluster(now_us, node_ttl_us)  # Where rows are missing, nothing is written either.
            nodes[node.node_id] = replace(node, seen_us=now_us)
            for other in list(nodes.values()):
                if now_us - other.seen_us >= FORGET_AFTER_TTLS * node_ttl_us:
                    del nodes[other.node_id]
            return replace(cluster, nodes=self._alive(now_us, node_ttl_us))

    async def cluster(self, *, node_ttl_us: int) -> Cluster:
        """Return everybody alive and every lease, without being a node."""
        with self._transaction() as now_us:
            return self._cluster(now_us, node_ttl_us)

    async def leave(self, node_id: NodeId) -> None:
        """Forget a node and free all its leases at once; the fence stays."""
        with self._transaction():
            self._state.nodes.pop(node_id, None)
            for row in list(self._state.leases.values()):
                if row.holder == node_id:
                    self._free_lease(row)

    async def acquire_leases(self, node_id: NodeId, shards: Sequence[Shard], *, ttl_us: int) -> tuple[Lease, ...]:
        """Take those of the shards that are free or expired, each with a fence one higher."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        with self._transaction() as now_us:
            check_shards(shards, self._state.shards)
            taken = []
            for shard in sorted(set(shards)):
                row = self._state.leases.get(shard)
                if row and (row.holder is None or row.expires_us <= now_us):
                    # I3: an expired lease is never renewed, only taken anew with a new fence.
                    taken.append(Lease(shard=shard, holder=node_id, fence=row.fence + 1, expires_us=now_us + ttl_us))
                    self._write_lease(taken[-1])
            return tuple(taken)

    async def renew_leases(self, leases: Sequence[Lease], *, ttl_us: int) -> tuple[Lease, ...]:
        """Prolong leases to now + ttl, each only while it is still the caller's and has not expired."""
        check_batch("leases", leases, limits.SHARDS_MAX)
        with self._transaction() as now_us:
            check_trusted(leases, self._clock.monotonic_us())
            held = {lease.shard: lease for lease in leases if self._state.holds(lease, now_us)}
            renewed = tuple(replace(held[shard], expires_us=now_us + ttl_us) for shard in sorted(held))
            for lease in renewed:
                self._write_lease(lease)
            return renewed

    async def release_leases(self, leases: Sequence[Lease]) -> None:
        """Free leases that are still the caller's; others are ignored."""
        check_batch("leases", leases, limits.SHARDS_MAX)
        with self._transaction():
            for lease in leases:
                row = self._state.leases.get(lease.shard)
                if row and (row.holder, row.fence) == (lease.holder, lease.fence):
                    self._free_lease(row)

    async def repair(self) -> tuple[Repair, ...]:
        """Restore lost lease rows as leases that ran out."""
        with self._transaction() as now_us:
            leases = self._state.leases
            missing = sorted(set(range(self._state.shards)) - leases.keys())
            if not missing:
                return ()
            # I3: fences count take-overs, so the clock is far ahead of each that was ever given out.
            fence = max([now_us, *(row.fence + 1 for row in leases.values())])
            for shard in missing:
                leases[shard] = LeaseState(shard=shard, holder=LOST_HOLDER, fence=fence, expires_us=0)
            return (restored_leases(missing, self._state.shards, fence),)

    def _cluster(self, now_us: Instant, node_ttl_us: int) -> Cluster:
        missing = self._state.shards - len(self._state.leases)
        if missing:
            raise StoreCorrupt(
                f"{missing} of {self._state.shards} lease rows are missing (a partial restore?): "
                "run `luciole migrate --repair`"
            )
        leases = tuple(self._state.leases[shard] for shard in sorted(self._state.leases))
        return Cluster(now_us=now_us, nodes=self._alive(now_us, node_ttl_us), leases=leases)

    def _alive(self, now_us: Instant, node_ttl_us: int) -> tuple[NodeInfo, ...]:
        alive = [node for node in self._state.nodes.values() if now_us - node.seen_us < node_ttl_us]
        return tuple(sorted(alive, key=lambda node: node.node_id))

    def _write_lease(self, lease: Lease) -> None:
        self._state.leases[lease.shard] = LeaseState(
            shard=lease.shard, holder=lease.holder, fence=lease.fence, expires_us=lease.expires_us
        )

    def _free_lease(self, row: LeaseState) -> None:
        self._state.leases[row.shard] = replace(row, holder=None, expires_us=0)
