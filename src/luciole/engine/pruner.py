"""The pruner: deletes terminal executions that retention no longer keeps, a page at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from luciole import limits
from luciole.model.ids import ExecutionKey, Shard, parse_execution_key
from luciole.model.lease import Lease
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import ExecutionStore


@dataclass(slots=True, kw_only=True)
class Pruner:
    """Walks the shards that this node holds, one bounded page a tick, and rests between two walks."""

    store: ExecutionStore
    store_clock: StoreClock
    telemetry: Telemetry
    trusted: Callable[[], Sequence[Lease]]
    retention_us: int
    walk_pause_us: int = limits.PRUNE_WALK_PAUSE_US
    page_pause_us: int = limits.PRUNE_PAGE_PAUSE_US
    _shard: Shard | None = None  #: where the walk is; None between two walks
    _after: ExecutionKey | None = None

    async def tick(self) -> int:
        """Prune one page; return the pause."""
        shards = sorted(lease.shard for lease in self.trusted())
        if self._shard is None or self._shard not in shards:
            self._shard = next((shard for shard in shards if self._shard is None or shard > self._shard), None)
            self._after = None
        if self._shard is None:
            return self.walk_pause_us
        page = await self.telemetry.timed(
            "prune",
            self.store.prune(
                self._shard,
                self.store_clock.now_us() - self.retention_us,
                after=self._after,
                limit=limits.PRUNE_BATCH_MAX,
            ),
        )
        self.telemetry.count("pruned", len(page.rows))
        self._after = None if page.next is None else parse_execution_key(page.next)
        if page.next is None:
            self._shard = next((shard for shard in shards if shard > self._shard), None)
            if self._shard is None:
                return self.walk_pause_us
        return self.page_pause_us
