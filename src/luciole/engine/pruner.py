"""The pruner: deletes executions, and then schedules, that retention no longer keeps, a page at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from luciole import limits
from luciole.model.ids import ExecutionKey, ScheduleId, Shard, parse_execution_key
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import Store


@dataclass(slots=True, kw_only=True)
class Pruner:
    """Walks the shards that this node holds, one bounded page a tick, and rests between two walks."""

    store: Store
    store_clock: StoreClock
    telemetry: Telemetry
    trusted: Callable[[], Sequence[Lease]]
    retention_us: int
    walk_pause_us: int = limits.PRUNE_WALK_PAUSE_US
    page_pause_us: int = limits.PRUNE_PAGE_PAUSE_US
    _shard: Shard | None = None  #: where the walk is; None between two walks
    _after: ExecutionKey | None = None
    _schedule: ScheduleId | None = None  #: None while the walk is among the shard's executions

    async def tick(self) -> int:
        """Prune one page; return the pause."""
        shards = sorted(lease.shard for lease in self.trusted())
        if self._shard is None or self._shard not in shards:
            self._move_on(shards)
        if self._shard is None:
            return self.walk_pause_us
        before_us = self.store_clock.now_us() - self.retention_us
        if self._schedule is None:
            await self._prune_executions(self._shard, before_us)
        elif await self._prune_schedules(self._shard, self._schedule, before_us):
            self._move_on(shards)
        return self._pause_us()

    def _pause_us(self) -> int:
        return self.walk_pause_us if self._shard is None else self.page_pause_us

    def _move_on(self, shards: Sequence[Shard]) -> None:
        self._shard = next((shard for shard in shards if self._shard is None or shard > self._shard), None)
        self._after = self._schedule = None

    async def _prune_executions(self, shard: Shard, before_us: Instant) -> None:
        page = await self.telemetry.timed(
            "prune", self.store.prune(shard, before_us, after=self._after, limit=limits.PRUNE_BATCH_MAX)
        )
        self.telemetry.count("pruned", len(page.rows))
        self._after = None if page.next is None else parse_execution_key(page.next)
        if page.next is None:
            self._schedule = 0  # What held schedules that are over may be gone now.

    async def _prune_schedules(self, shard: Shard, after: ScheduleId, before_us: Instant) -> bool:
        """Prune a page of schedules; return whether it was the shard's last."""
        page = await self.telemetry.timed(
            "prune_schedules",
            self.store.prune_schedules(shard, before_us, after=after, limit=limits.PRUNE_BATCH_MAX),
        )
        self.telemetry.count("pruned_schedules", len(page.rows))
        if page.next is not None:
            self._schedule = int(page.next)
        return page.next is None
