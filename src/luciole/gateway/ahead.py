"""What was planned ahead: asks at its due time whether it still stands, for all of it at once."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from luciole import limits
from luciole.gateway.holds import Holds
from luciole.model.ids import Shard
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.outbox import Withdrawals
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import OutboxStore


@dataclass(slots=True, kw_only=True)
class Ahead:
    """Lets what was planned ahead pass when it is due.

    An edit, a pause or a cancel may have withdrawn some of it. To put each delivery on record first took longer than
    to plan at the due time; so the store counts withdrawals by shard, and one question tells that there were none.
    """

    store: OutboxStore
    store_clock: StoreClock
    telemetry: Telemetry
    holds: Holds
    trusted: Callable[[], Sequence[Lease]]
    wake_delivery: Callable[[], None]
    plans_ahead: bool
    idle_pause_us: int = limits.REST_US

    async def tick(self) -> int:
        """Ask when something planned ahead is due, or before the first of a shard is planned; return the pause."""
        due_us = next_ahead_us(self.holds)
        is_due = due_us is not None and self.store_clock.until_us(due_us) <= 0
        shards = sorted({lease.shard for lease in self.trusted()} & self.holds.shards.keys())
        is_new = self.plans_ahead and not all(self.holds.shards[shard].asked for shard in shards)
        if shards and (is_due or is_new):
            asked = await self.telemetry.timed("withdrawals", self.store.withdrawals(shards))
            stand(self.holds, shards, asked)
            self.wake_delivery()
            due_us = next_ahead_us(self.holds)
        if due_us is None:
            return self.idle_pause_us
        # What comes due close together shares one question.
        return max(self.store_clock.until_us(due_us), limits.POLL_PAUSE_MIN_US)


def next_ahead_us(holds: Holds) -> Instant | None:
    """Return when the first of what was planned ahead is due that is not known to stand."""
    return holds.lines.next_ahead_us(holds.standing_us)


def stand(holds: Holds, shards: Collection[Shard], answer: Withdrawals) -> None:
    """Let what was planned ahead and is due pass: where nothing was withdrawn, without a doubt.

    The story it must get right: entries are planned, one of them is withdrawn, and their holder hears of it only if it
    asks. It asks at their due time, behind withdrawals under way, whether there were any since it asked last; what it
    knew then, or was being planned then, may be one of those that are gone.

    Args:
        holds: the memory.
        shards: what was asked for.
        answer: of the store.
    """
    for shard, hold in holds.shards.items():
        hold.asked |= shard in shards
        revision = answer.revisions.get(shard)
        if revision is None or revision != hold.withdrawals:
            hold.doubted |= hold.ahead
            for read in holds.reads:
                read.withdrawn.add(shard)
        hold.withdrawals = revision
    holds.standing_us = max(holds.standing_us, answer.now_us)
