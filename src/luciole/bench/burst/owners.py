"""Who holds which shard in a burst, and how shards change hands while it runs."""

from collections.abc import Iterable

from luciole import limits
from luciole.bench.verdict import InvalidRun
from luciole.model.ids import NodeId, Shard
from luciole.model.lease import Lease
from luciole.runtime.chance import new_process_id
from luciole.store.spi import Store

_LEASE_TTL_US = 10 * limits.MINUTE_US


class Owners:
    """Takes leases for the schedulers, as their nodes would."""

    def __init__(self, store: Store, shards: int) -> None:
        self._store = store
        self._shards = range(shards)
        self._nodes: list[NodeId] = []
        self.leases: dict[Shard, Lease] = {}

    def join(self) -> NodeId:
        """Return the identity of one more node."""
        self._nodes.append(new_process_id())
        return self._nodes[-1]

    async def take_all(self, node_id: NodeId) -> list[Lease]:
        """Take every shard, which must be free.

        Raises:
            InvalidRun: somebody else holds one.
        """
        leases = await self._store.acquire_leases(node_id, self._shards, ttl_us=_LEASE_TTL_US)
        if len(leases) != len(self._shards):
            raise InvalidRun(f"only {len(leases)} of {len(self._shards)} leases could be taken: who else is here?")
        self.leases = {lease.shard: lease for lease in leases}
        return list(leases)

    async def take_over(self, node_id: NodeId, shards: Iterable[Shard]) -> list[Lease]:
        """Let leases run out and take their shards for another node, under a higher fence (I3).

        Whoever held them is not told: it learns of it from a refused write, or never.
        """
        wanted = sorted(shards)
        await self._store.renew_leases([self.leases[shard] for shard in wanted], ttl_us=1)
        taken: dict[Shard, Lease] = {}
        while len(taken) < len(wanted):  # They have run out by the next look of the store's clock.
            left = [shard for shard in wanted if shard not in taken]
            leases = await self._store.acquire_leases(node_id, left, ttl_us=_LEASE_TTL_US)
            taken |= {lease.shard: lease for lease in leases}
        self.leases |= taken
        return [taken[shard] for shard in wanted]

    async def release(self) -> None:
        """Give everything back."""
        await self._store.release_leases(list(self.leases.values()))
        for node_id in self._nodes:
            await self._store.leave(node_id)
