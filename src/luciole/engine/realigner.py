"""The realigner: brings cursors to where newer rules of zones put their fire times."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from luciole import limits
from luciole.engine.triggers import TriggerShelf
from luciole.model.ids import ScheduleId, Shard
from luciole.model.lease import Lease
from luciole.model.realigning import is_newer, realigned
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import PlanStore


@dataclass(slots=True, kw_only=True)
class Realigner:
    """Looks once at each shard that this node takes, a page of it a tick.

    The record of a shard names the rules that its cursors stand by, which are those of whoever plans it. A holder with
    newer ones goes through its cursors before it records its own. One with older ones only records its own, so that
    the next holder with newer ones goes through the shard again: in a rolling upgrade no cursor is left behind.
    """

    store: PlanStore
    telemetry: Telemetry
    trusted: Callable[[], Sequence[Lease]]
    rules: str  #: the version that this process has
    pause_us: int = limits.LOCAL_PAUSE_MAX_US
    triggers: TriggerShelf = field(default_factory=TriggerShelf)
    _looked: dict[Shard, int] = field(default_factory=dict)  #: shards that need no look, with the fence of that time
    _walked: dict[Shard, tuple[int, ScheduleId]] = field(default_factory=dict)  #: fence, and how far

    async def tick(self) -> int:
        """Look at new shards, or at one page of those that stand by older rules; return the pause."""
        leases = [lease for lease in self.trusted() if self._looked.get(lease.shard) != lease.fence]
        if not leases:
            return self.pause_us
        walking = next((lease for lease in leases if self._walked.get(lease.shard, (0, 0))[0] == lease.fence), None)
        if walking is not None:
            await self._walk(walking)
            return 0
        recorded = await self.telemetry.timed("zone_rules", self.store.zone_rules())
        unknown = []
        for lease in leases:
            rules = recorded.get(lease.shard, self.rules)
            if is_newer(self.rules, rules):
                self._walked[lease.shard] = (lease.fence, 0)
            else:
                self._looked[lease.shard] = lease.fence
                if recorded.get(lease.shard) != self.rules:
                    unknown.append(lease)
        if unknown:
            await self.store.realign(unknown, (), rules=self.rules)
        return 0

    async def _walk(self, lease: Lease) -> None:
        after = self._walked[lease.shard][1]
        cursors = await self.store.active_cursors(lease.shard, after=after, limit=limits.PAGE_MAX)
        triggers = await self.triggers.load(self.store, self.telemetry, {cursor.trigger_id for cursor in cursors})
        moves = []
        for cursor in cursors:
            trigger = triggers.get(cursor.trigger_id)
            # One that can't be read is the planner's to park (I7).
            move = None if trigger is None or isinstance(trigger, str) else realigned(cursor, trigger)
            if move:
                moves.append(move)
        is_last = len(cursors) < limits.PAGE_MAX
        if moves or is_last:
            moved = await self.store.realign([lease], moves, rules=self.rules if is_last else None)
            self.telemetry.count("cursors_realigned", moved)
        if is_last:
            self._looked[lease.shard] = lease.fence
            del self._walked[lease.shard]
        else:
            self._walked[lease.shard] = (lease.fence, cursors[-1].schedule_id)
