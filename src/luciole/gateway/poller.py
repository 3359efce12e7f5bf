"""The poller: finds ready entries and wishes for an end in the store."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from luciole import limits
from luciole.gateway.hidden import Hidden
from luciole.gateway.holds import Holds, ShardHold
from luciole.model.ids import ExecutionKey, Shard
from luciole.model.lease import Lease
from luciole.model.outbox import Entry, EntryState
from luciole.model.plan import ReadyBatch
from luciole.runtime.clock import Clock
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import OutboxStore


@dataclass(slots=True, kw_only=True)
class Poller:
    """Polls the shards of this node: at once those that a hint names, all of them twice a second.

    What came from polling stays READY in the store while it is under way, so a poll returns it again. Hence a shard
    with plenty in memory is only peeked at, for a higher priority. What it hides is looked for twice a second, and at
    once when an executor is idle or the last entry that it could have run has left memory.
    """

    store: OutboxStore
    clock: Clock
    store_clock: StoreClock
    telemetry: Telemetry
    holds: Holds
    hidden: Hidden
    idle: Callable[[], bool]  #: whether a session has credits that nothing in memory can use
    trusted: Callable[[], Sequence[Lease]]
    polled: Callable[[Iterable[Entry]], Collection[Entry]]  #: keeps those that nobody can be running
    add: Callable[[Iterable[Entry]], None]
    cancel: Callable[[Iterable[Entry]], None]
    wake: Callable[[], None]  #: pokes the loop of `tick`
    idle_pause_us: int = limits.IDLE_PAUSE_MAX_US
    _hinted: set[Shard] = field(default_factory=set)
    _next_full_us: int = 0
    _next_due_us: int | None = None  #: by the store's clock

    def hint(self, shards: Collection[Shard]) -> None:
        """Poll these shards soon; an empty collection means all."""
        if shards:
            self._hinted.update(shards)
        else:
            self._next_full_us = 0
        self.wake()

    async def tick(self) -> int:
        """Poll what was hinted at, has become due, or has not been looked at for a while; return the pause."""
        now_us = self.clock.monotonic_us()
        trusted = {lease.shard for lease in self.trusted()}
        open_ = {
            shard: hold
            for shard, hold in self.holds.shards.items()
            if shard in trusted and hold.polled_from_us <= now_us
        }
        due = self._next_due_us is not None and self._next_due_us <= self.store_clock.now_us()
        low = [shard for shard, hold in open_.items() if hold.short or (hold.more and hold.ready < limits.READY_LOW)]
        everywhere = now_us >= self._next_full_us or due
        if everywhere:
            shards: Collection[Shard] = open_
            self._next_full_us = now_us + self.idle_pause_us
            self._next_due_us = None
        else:
            shards = {shard for shard in self._hinted if shard in open_} | set(low)
        self._hinted -= set(shards)
        hungry = [shard for shard in shards if open_[shard].ready < limits.READY_REFILL]
        filled = [shard for shard in shards if open_[shard].ready >= limits.READY_REFILL]
        fed: set[Shard] = set()
        for group, beyond in ((hungry, limits.READY_REFILL), (filled, limits.READY_PEEK)):
            if group:
                fed |= await self._poll({shard: open_[shard] for shard in group}, beyond)
        await self._look_behind({shard: open_[shard] for shard in shards}, fed, everywhere=everywhere)
        return self._pause_us(trusted)

    async def _look_behind(self, holds: dict[Shard, ShardHold], fed: Collection[Shard], *, everywhere: bool) -> None:
        """Take what others hide in shards whose last poll did not come to the end of what is due."""
        idle = self.idle()
        behind = [
            shard
            for shard, hold in holds.items()
            # Of what ran out, the poll may just have brought more.
            if hold.hides and (everywhere or hold.short - hold.routes.keys() or (idle and shard not in fed))
        ]
        for hold in holds.values():
            hold.short.clear()
        if behind:
            found = await self.hidden.find(behind, self.store_clock.now_us())
            if found:
                self.add(self.polled(found))

    async def _poll(self, holds: dict[Shard, ShardHold], beyond: int) -> set[Shard]:
        """Read the top of some shards; return those of which something was news."""
        limit = beyond
        if beyond == limits.READY_REFILL:
            limit += max(hold.ready for hold in holds.values())
        before_us = self.store_clock.now_us()
        read = self.holds.begin_read()
        batch = ReadyBatch(entries=(), next_due_us=None)
        try:
            batch = await self.telemetry.timed(
                "ready_entries", self.store.ready_entries(sorted(holds), before_us, limit=limit)
            )
        finally:
            news = self.holds.end_read(read, batch.entries)
        counts = Counter(entry.key.shard for entry in batch.entries)
        for shard, hold in holds.items():
            hold.more = counts[shard] >= limit
        if batch.next_due_us is not None:
            self._next_due_us = min(self._next_due_us or batch.next_due_us, batch.next_due_us)
        if batch.cancels:
            self.cancel(batch.cancels)
        full = self._take(news, frozenset(entry.key for entry in batch.cancels))
        for shard, hold in holds.items():
            hold.hides = hold.more or shard in full
            # I6: a shard that was given up meanwhile had nothing of it looked at, and this node may take it again.
            looked_at = self.holds.shards.get(shard) is hold and shard not in full
            if looked_at and hold.complete and not hold.more:
                hold.doubtful_before_us = None  # All that was in doubt has been seen, and is being seen to.
        return {entry.key.shard for entry in news} - full

    def _take(self, news: Sequence[Entry], asked: Collection[ExecutionKey]) -> set[Shard]:
        """Take what fits into memory and is not to be ended; return the shards of which something did not fit."""
        room: dict[Shard, int] = {}
        fitting = []
        for entry in news:
            shard = entry.key.shard
            if shard not in room:
                room[shard] = self.holds.room(shard)
            room[shard] -= 1
            if room[shard] >= 0 and entry.key not in asked and entry.state is EntryState.READY:
                fitting.append(entry)
        if fitting:
            self.add(self.polled(fitting))
        return {shard for shard, left in room.items() if left < 0}

    def _pause_us(self, trusted: Collection[Shard]) -> int:
        now_us = self.clock.monotonic_us()
        waits = {shard: hold.polled_from_us - now_us for shard, hold in self.holds.shards.items() if shard in trusted}
        if any(waits.get(shard, 1) <= 0 for shard in self._hinted):
            return 0  # Hinted at while a poll was under way.
        pause_us = self._next_full_us - now_us
        if self._next_due_us is not None:
            until_us = self.store_clock.until_us(self._next_due_us)
            pause_us = min(
                pause_us, max(until_us, limits.POLL_PAUSE_MIN_US)
            )  # What comes due close together shares one.
        return max(1, min([pause_us, *(wait for wait in waits.values() if wait > 0)]))
