"""Leases and nodes over SQL."""

from collections.abc import Sequence

from luciole import limits
from luciole.model.ids import NodeId, Shard
from luciole.model.instant import Instant
from luciole.model.lease import Cluster, Lease, LeaseState, NodeInfo, trusted_until_us
from luciole.store.bounds import check_batch, check_shards
from luciole.store.sql.dialect import Lane, Role
from luciole.store.sql.migrate import check_lease_rows
from luciole.store.sql.script import Query, Row, Script

#: A node unseen for this many times its time to live is deleted.
_FORGET_FACTOR = 10


class SqlLeases(Role):
    """The role `LeaseStore`."""

    async def now_us(self) -> Instant:
        """Return the store's clock."""
        return await self._db.read(Lane.LEASE, _now_us)

    async def beat(self, node: NodeInfo, *, node_ttl_us: int) -> Cluster:
        """Record that a node is alive; return everybody alive and every lease."""
        return await self._db.write(Lane.LEASE, _beat, node, node_ttl_us, self.shards)

    async def cluster(self, *, node_ttl_us: int) -> Cluster:
        """Return everybody alive and every lease, without being a node."""
        return await self._db.read(Lane.READ, _cluster, node_ttl_us, self.shards)

    async def leave(self, node_id: NodeId) -> None:
        """Forget a node and free all its leases at once."""
        await self._db.write(Lane.LEASE, _leave, node_id)
        self._db.hint(frozenset())

    async def acquire_leases(self, node_id: NodeId, shards: Sequence[Shard], *, ttl_us: int) -> tuple[Lease, ...]:
        """Take those of the shards that are free or expired, each with a fence one higher."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_shards(shards, self.shards)
        return await self._db.write(Lane.LEASE, _acquire, node_id, shards, ttl_us)

    async def renew_leases(self, leases: Sequence[Lease], *, ttl_us: int) -> tuple[Lease, ...]:
        """Prolong leases, each only while holder and fence are still these and it has not expired."""
        check_batch("leases", leases, limits.SHARDS_MAX)
        return await self._db.write(Lane.LEASE, _renew, leases, ttl_us)

    async def release_leases(self, leases: Sequence[Lease]) -> None:
        """Free leases that are still the caller's."""
        check_batch("leases", leases, limits.SHARDS_MAX)
        await self._db.write(Lane.LEASE, _release, leases)
        self._db.hint(frozenset(lease.shard for lease in leases))


def check_fences(leases: Sequence[Lease]) -> Script[frozenset[Shard]]:
    """Return the shards whose lease is still the caller's, and keep it so until the transaction ends."""
    # I3: holder and fence are compared together, inside the transaction, after any lock wait.
    rows = yield Query("check_fences", rows=_lease_rows(leases), until_us=trusted_until_us(leases))
    return frozenset(row[0] for row in rows)


def _lease_rows(leases: Sequence[Lease]) -> list[tuple[Shard, NodeId, int]]:
    return sorted((lease.shard, lease.holder, lease.fence) for lease in leases)


def _now_us() -> Script[Instant]:
    rows = yield Query("clock", alone=True)
    return int(rows[0][0])


def _cluster(node_ttl_us: int, shards: int) -> Script[Cluster]:
    rows = yield Query("cluster", {"node_ttl_us": node_ttl_us}, alone=True)
    return _cluster_of(rows, shards)


def _cluster_of(rows: Sequence[Row], shards: int) -> Cluster:
    """Return what `beat` and `cluster` answer: leases in the first five columns, or else a node in the others."""
    leases = sorted(tuple(row[:5]) for row in rows if row[0] is not None)
    check_lease_rows(len(leases), shards)
    return Cluster(
        now_us=leases[0][4],
        nodes=tuple(
            NodeInfo(
                node_id=node_id,
                host=host,
                pid=pid,
                address=address,
                version=version,
                tzdata=tzdata,
                started_us=started_us,
                seen_us=seen_us,
                telemetry=telemetry,
            )
            for node_id, host, pid, address, version, tzdata, started_us, seen_us, telemetry in sorted(
                tuple(row[5:]) for row in rows if row[0] is None
            )
        ),
        leases=tuple(
            LeaseState(shard=shard, holder=holder, fence=fence, expires_us=expires_us)
            for shard, holder, fence, expires_us, _ in leases
        ),
    )


def _beat(node: NodeInfo, node_ttl_us: int, shards: int) -> Script[Cluster]:
    rows = yield Query(
        "beat",
        {
            "node_id": node.node_id,
            "host": node.host,
            "pid": node.pid,
            "address": node.address,
            "version": node.version,
            "tzdata": node.tzdata,
            "started_us": node.started_us,
            "telemetry": node.telemetry,
            "node_ttl_us": node_ttl_us,
            "forget_after_us": _FORGET_FACTOR * node_ttl_us,
        },
        alone=True,
    )
    return _cluster_of(rows, shards)


def _leave(node_id: NodeId) -> Script[None]:
    yield Query("leave", {"node_id": node_id})


def _acquire(node_id: NodeId, shards: Sequence[Shard], ttl_us: int) -> Script[tuple[Lease, ...]]:
    free = yield Query("lock_free_leases", rows=[(shard,) for shard in sorted(set(shards))])
    taken = yield Query("take_leases", {"node_id": node_id, "ttl_us": ttl_us}, [(row[0],) for row in free])
    return tuple(
        Lease(shard=shard, holder=node_id, fence=fence, expires_us=expires_us)
        for shard, fence, expires_us in sorted(map(tuple, taken))
    )


def _renew(leases: Sequence[Lease], ttl_us: int) -> Script[tuple[Lease, ...]]:
    # I3: an expired lease is never renewed, only taken anew with a new fence.
    holders = {lease.shard: lease.holder for lease in leases}
    until_us = trusted_until_us(leases)
    renewed = yield Query("renew_leases", {"ttl_us": ttl_us}, _lease_rows(leases), alone=True, until_us=until_us)
    return tuple(
        Lease(shard=shard, holder=holders[shard], fence=fence, expires_us=expires_us)
        for shard, fence, expires_us in sorted(map(tuple, renewed))
    )


def _release(leases: Sequence[Lease]) -> Script[None]:
    yield Query("release_leases", rows=_lease_rows(leases))
