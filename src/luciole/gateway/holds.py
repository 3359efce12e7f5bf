"""Holds: the open entries of this node's shards, in memory until they are settled."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from luciole import limits
from luciole.gateway.flights import Flights
from luciole.gateway.jobs import JobShelf
from luciole.gateway.lines import Lines
from luciole.model.ids import ExecutionKey, RouteId, Shard
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.outbox import Entry, EntryState


@dataclass(slots=True, kw_only=True)
class ShardHold:
    """One shard that this node holds."""

    lease: Lease
    entries: dict[ExecutionKey, Entry] = field(default_factory=dict)  #: waiting and in flight
    ready: int = 0  #: those of them that polling finds too
    routes: Counter[RouteId] = field(default_factory=Counter)  #: the same by what they ask of an executor
    more: bool = False  #: the last poll was cut: the store has more that is due
    hides: bool = False  #: what came behind in the last poll is not in memory: it was cut, or did not fit
    short: set[RouteId] = field(default_factory=set)  #: routes that ran out in memory while it hides something
    #: After a crash of the former holder: an unrecorded first attempt that was due by then may be running.
    doubtful_before_us: Instant | None = None
    polled_from_us: int = 0  #: no polling before it (monotonic): executors still announce what they run
    complete: bool = False  #: all that a former holder left behind is accounted for
    suspended_us: int = 0  #: since when it is not held (monotonic)
    #: Known, neither in line nor in flight: in doubt, or on its way to be taken back or ended.
    astray: set[ExecutionKey] = field(default_factory=set)
    #: Planned before they were due, so that they may have been withdrawn since; until they are due.
    ahead: set[ExecutionKey] = field(default_factory=set)
    #: Those of them that may be among those that were withdrawn: each delivery of these is put on record.
    doubted: set[ExecutionKey] = field(default_factory=set)
    #: How often something was withdrawn, read before any of `ahead` was planned that is not doubted; None: not read.
    withdrawals: int | None = None
    asked: bool = False  #: whether the store was asked for it


class Read:
    """What happened while a read was under way: rows of it that are no longer true, or may not be."""

    __slots__ = ("begun_us", "gone", "withdrawn")

    def __init__(self, begun_us: Instant | None) -> None:
        self.begun_us = begun_us
        self.gone: set[ExecutionKey] = set()
        self.withdrawn: set[Shard] = set()  #: shards of which something planned ahead was withdrawn


class Holds:
    """The table of held entries by shard, and the lines in which those wait that nobody has.

    Args:
        jobs: says what a job version asks of an executor.
        flights: which of the entries an executor has.
        held_max: entries of one shard at most.
    """

    def __init__(self, jobs: JobShelf, flights: Flights, *, held_max: int = limits.HELD_MAX) -> None:
        self.shards: dict[Shard, ShardHold] = {}
        self.lines = Lines(jobs, self.waits)
        self.reserved: set[ExecutionKey] = set()  #: promised to a session, and not sent before it is on record
        self._suspended: dict[Shard, ShardHold] = {}
        self._flights = flights
        self._held_max = held_max
        self.standing_us = limits.INSTANT_MIN_US  #: what is due by then can't be withdrawn any more
        self.reads: list[Read] = []  #: under way

    def __len__(self) -> int:
        return sum(len(hold.entries) for hold in self.shards.values())

    def open(self, lease: Lease, *, doubtful_before_us: Instant | None, polled_from_us: int) -> None:
        """Begin to hold a shard."""
        self.shards[lease.shard] = ShardHold(
            lease=lease, doubtful_before_us=doubtful_before_us, polled_from_us=polled_from_us
        )

    def suspend(self, shards: Iterable[Shard], now_us: int) -> None:
        """Deliver nothing of these shards any more; their next holder loads them, unless it is this node again.

        Args:
            shards: those that are not held any more.
            now_us: the monotonic clock; what was suspended long ago is dropped.
        """
        for shard, hold in tuple(self._suspended.items()):
            if now_us - hold.suspended_us > limits.SUSPENDED_MAX_US:
                del self._suspended[shard]
        for shard in frozenset(shards) & self.shards.keys():
            self._suspended[shard] = self.shards.pop(shard)
            self._suspended[shard].suspended_us = now_us
        self.lines.purge()

    def clean(self, shard: Shard) -> bool:
        """Whether everything of a shard that may run is in flight from here or on record."""
        hold = self.shards.get(shard)
        return hold is not None and hold.complete and hold.doubtful_before_us is None and not hold.astray

    def resume(self, lease: Lease, now_us: Instant) -> bool:
        """Go on with a suspended shard, if nobody held it meanwhile and all its entries were accounted for."""
        hold = self._suspended.pop(lease.shard, None)
        # I3: a fence one higher than the last says that no other holder came between.
        if hold is None or lease.fence != hold.lease.fence + 1 or hold.astray or not hold.complete:
            return False
        hold.lease = lease
        self.shards[lease.shard] = hold
        hold.doubted |= hold.ahead  # What was withdrawn meanwhile was not asked for.
        for entry in hold.entries.values():
            if self.waits(entry):
                self.lines.add(entry, now_us, ahead=entry.key in hold.ahead)
        return True

    def room(self, shard: Shard, *, behind: bool = False) -> int:
        """Return how many more entries of a shard memory may hold.

        Args:
            shard: any.
            behind: of those that others hide, and that no executor has room for yet.
        """
        hold = self.shards.get(shard)
        most = 2 * self._held_max if behind else self._held_max
        return 0 if hold is None else max(0, most - len(hold.entries))

    def entry(self, key: ExecutionKey) -> Entry | None:
        """Return the entry of an execution as it is known here."""
        hold = self.shards.get(key.shard)
        return None if hold is None else hold.entries.get(key)

    def waits(self, entry: Entry) -> bool:
        """Whether an entry is as the table has it, and no executor has it."""
        key = entry.key
        hold = self.shards.get(key.shard)
        if hold is None or hold.entries.get(key) is not entry:
            return False
        return key not in self._flights and key not in self.reserved and key not in hold.astray

    def begin_read(self, now_us: Instant | None = None) -> Read:
        """Note that rows are about to be read from the store, or to be made from now on (the store's clock)."""
        read = Read(now_us)
        self.reads.append(read)
        return read

    def end_read(self, read: Read, entries: Sequence[Entry]) -> list[Entry]:
        """Return the entries of a read that are news, without those that were settled while it was under way.

        An entry that is read, settled and then taken from the stale read would be delivered again with a token that
        was already used.
        """
        self.reads.remove(read)
        news = []
        for entry in entries:
            key = entry.key
            hold = self.shards.get(key.shard)
            if hold is None or key in hold.entries or key in read.gone:
                continue
            news.append(entry)
            if read.begun_us is not None and entry.due_us > read.begun_us and entry.attempt == 1:
                hold.ahead.add(key)
            if key.shard in read.withdrawn:
                hold.doubted.add(key)
        return news

    def ripen(self, now_us: Instant) -> Instant | None:
        """Put what has become due in line; return when there is more, but for what is not known to stand."""
        for entry in self.lines.ripen(now_us, self.standing_us):
            self.shards[entry.key.shard].ahead.discard(entry.key)
        return self.lines.next_us(self.standing_us)

    def keep(self, entry: Entry) -> bool:
        """Remember an entry without putting it in line (somebody has it, or it is in doubt); False: not our shard."""
        hold = self.shards.get(entry.key.shard)
        if hold is None:
            return False
        former = hold.entries.get(entry.key)
        hold.entries[entry.key] = entry
        _count(hold, entry, 1)
        if former is not None:
            _count(hold, former, -1)
        return True

    def stray(self, key: ExecutionKey) -> None:
        """Note that an entry is out of line until it is replaced or forgotten."""
        hold = self.shards.get(key.shard) or self._suspended.get(key.shard)
        if hold is not None and key in hold.entries:
            hold.astray.add(key)

    def add(self, entries: Iterable[Entry], now_us: Instant) -> None:
        """Put entries in line; those that are known, or of shards that are not held, are passed over."""
        shards = self.shards
        for entry in entries:
            key = entry.key
            hold = shards.get(key.shard)
            if hold is None or key in hold.entries:
                continue
            hold.entries[key] = entry
            if entry.state is EntryState.READY:
                hold.ready += 1
                hold.routes[entry.route] += 1
            if entry.due_us <= now_us and key not in hold.ahead:
                self.lines.line_up(entry)  # As nearly always.
            else:
                self._queue(entry, now_us)

    def replace(self, entry: Entry, now_us: Instant) -> None:
        """Put the next attempt of a known execution in line."""
        if self.keep(entry):
            self.shards[entry.key.shard].astray.discard(entry.key)
            self._queue(entry, now_us)

    def forget(self, key: ExecutionKey, attempt: int | None = None) -> bool:
        """Forget an entry that is settled; return whether its shard has room that the store could fill.

        Args:
            key: its execution.
            attempt: which was settled: an entry that is known with another one stays. None: whatever is known.
        """
        hold = self.shards.get(key.shard) or self._suspended.get(key.shard)
        entry = None if hold is None else hold.entries.get(key)
        if entry is not None and attempt is not None and entry.attempt != attempt:
            return False
        for read in self.reads:
            read.gone.add(key)
        if hold is None:
            return False
        hold.ahead.discard(key)
        hold.doubted.discard(key)
        hold.astray.discard(key)
        if entry is not None:
            del hold.entries[key]
            _count(hold, entry, -1)
        return bool(hold.short) or (hold.more and hold.ready < limits.READY_LOW)

    def _queue(self, entry: Entry, now_us: Instant) -> None:
        hold = self.shards[entry.key.shard]
        if entry.due_us > now_us and entry.attempt == 1:
            hold.ahead.add(entry.key)
        if entry.key in hold.ahead and hold.withdrawals is None:
            hold.doubted.add(entry.key)
        self.lines.add(entry, now_us, ahead=entry.key in hold.ahead)


def _count(hold: ShardHold, entry: Entry, change: int) -> None:
    """Keep count of the ready entries of a shard in memory."""
    if entry.state is EntryState.READY:
        hold.ready += change
        hold.routes[entry.route] += change
        if not hold.routes[entry.route]:
            del hold.routes[entry.route]
            if hold.hides:
                hold.short.add(entry.route)
