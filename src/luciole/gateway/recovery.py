"""Recovery: what a former holder or a lost session left behind is given time to be announced, then taken back.

The story it must get right: a holder delivers an attempt and dies. Its executor lives on and runs it. The new holder
finds the entry open and must neither deliver it again while it runs, nor wait for ever for an executor that died too.
So it waits a grace in which executors announce what they hold; what nobody announces is lost.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from luciole import limits
from luciole.gateway.flights import Flights
from luciole.gateway.holds import Holds
from luciole.gateway.session import Flight, Session
from luciole.gateway.strangers import read_stranger
from luciole.model.ids import ExecutionKey, Shard
from luciole.model.job import EntryFlag
from luciole.model.lease import Lease
from luciole.model.outbox import Entry, EntryState
from luciole.model.retrying import Lost
from luciole.runtime.clock import Clock
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import Store
from luciole.wire.messages import BeatAnswer, Cancel, Held

_log = logging.getLogger("luciole.recovery")

#: An attempt, by execution and token.
Attempt = tuple[ExecutionKey, int]


@dataclass(slots=True)
class _Load:
    """A shard whose open entries are being loaded, or are in doubt until the grace is over."""

    fence: int
    until_us: int  #: the end of the grace, monotonic
    loaded: bool = False
    doubtful: list[Entry] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Recovery:
    """Loads the open entries of shards that were taken over, and finds out who runs them."""

    store: Store
    clock: Clock
    store_clock: StoreClock
    telemetry: Telemetry
    holds: Holds
    flights: Flights
    sessions: Callable[[], Sequence[Session]]
    peers: Callable[[], tuple[str, ...]]
    lose: Callable[[Lost], None]
    add: Callable[[Iterable[Entry]], None]  #: puts entries in line
    wake: Callable[[], None]  #: pokes the loop of `tick`
    wake_polling: Callable[[], None]
    grace_us: int = limits.TAKE_OVER_GRACE_US
    idle_pause_us: int = limits.REST_US
    _loads: dict[Shard, _Load] = field(default_factory=dict)
    _reloads: set[Shard] = field(default_factory=set)
    _strangers: dict[ExecutionKey, tuple[Session, Held]] = field(default_factory=dict)

    def take_over(self, lease: Lease, *, clean: bool) -> None:
        """Begin to hold a shard that was just taken, or go on with it.

        Args:
            lease: the new lease.
            clean: its former holder released it, so that every delivery of his is on record.
        """
        if self.holds.resume(lease, self.store_clock.now_us()):
            self.reload((lease.shard,))  # What was planned while it was suspended.
            self.wake_polling()
            return
        now_us = self.clock.monotonic_us()
        fresh = lease.fence == 1  # Nobody ever held it.
        until_us = now_us if fresh else now_us + self.grace_us
        self.holds.open(
            lease,
            doubtful_before_us=None if clean else self.store_clock.now_us(),
            polled_from_us=now_us if clean else until_us,
        )
        self._loads[lease.shard] = _Load(lease.fence, until_us)
        self._adopt_announced(lease.shard)
        self.wake()
        self.wake_polling()

    def reload(self, shards: Iterable[Shard]) -> None:
        """Look for entries of held shards that no memory knows, because the answer of a plan was lost.

        This node has held the shard all the time, so nobody else delivered them.
        """
        self._reloads.update(shards)
        self.wake()

    def forget(self, shards: Iterable[Shard]) -> None:
        """Forget shards that are somebody else's now; their flights go on, and report to whom they please."""
        gone = frozenset(shards)
        for shard in gone:
            self._loads.pop(shard, None)
        self._reloads -= gone
        self.holds.suspend(gone, self.clock.monotonic_us())

    def polled(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return those of the entries that polling found which nobody can be running; see to the others.

        A first attempt that is not on record may run in an executor of the former holder, if that one crashed.
        """
        free = []
        for entry in entries:
            hold = self.holds.shards.get(entry.key.shard)
            if hold is None:
                continue
            doubtful_us = hold.doubtful_before_us
            first = entry.attempt == 1 and not entry.flags & EntryFlag.AT_MOST_ONCE
            crashed = doubtful_us is not None and first and entry.due_us <= doubtful_us
            if not entry.delivered and not crashed:
                free.append(entry)
            elif not hold.complete:
                continue  # It is among the open entries that are being loaded, or is looked at again after them.
            elif self.holds.keep(entry) and not self._adopt_known(entry):
                # Its token may have been used, so that it needs a new one: one token goes to one session only.
                error = "its node is gone, and nobody announced it"
                self.lose(Lost(entry, None, error, delivered=entry.delivered))
        return free

    def announce(
        self, session: Session, held: Sequence[Held], *, first: bool = False
    ) -> tuple[list[Attempt], tuple[Attempt, ...]]:
        """Hear what an executor holds.

        Args:
            session: whose announcement.
            held: all that it holds.
            first: it has just connected. Later, what this node does not know has mostly just been settled, and is
                looked up only when it is announced again.

        Returns:
            Attempts with an old token, which it should end; and those of other sessions that are this node's now.
        """
        stale: list[Attempt] = []
        kept: list[Attempt] = []
        before, session.announced = session.announced, {}
        for run in held:
            flight = self.flights.get(run.key)
            if flight is None:
                session.announced[run.key] = run
                again = run.key in before and before[run.key].attempt == run.attempt
                flight = self._adopt(session, run, look_up=first or again)
            if flight is None:
                entry = self.holds.entry(run.key)
                if entry is not None and entry.attempt > run.attempt:
                    stale.append((run.key, run.attempt))
            elif flight.entry.attempt > run.attempt:
                stale.append((run.key, run.attempt))
            elif (
                flight.entry.attempt == run.attempt
                and self._speaks_for(session, flight)
                and flight.foreign
                and run.key.shard in self.holds.shards
            ):
                kept.append((run.key, run.attempt))
        return stale, tuple(kept)

    def miss(self, session: Session, held: Sequence[Held]) -> None:
        """Find flights that an executor ought to hold and does not speak of any more.

        Its heartbeat may have crossed with a delivery or a confirmation; what was delivered before the heartbeat before
        this one did not.
        """
        spoken = {run.key for run in held}
        for flight in tuple(session.flights.values()):
            delivered_us = flight.delivered_us
            if delivered_us is None or delivered_us >= session.beat_us - limits.SECOND_US:
                continue
            if flight.entry.key not in spoken:
                self.flights.orphan(flight, self.clock.monotonic_us())
                self.wake()

    async def tick(self) -> int:
        """Load, verify, and give up what is overdue; return the pause."""
        await self._load()
        await self._reload()
        await self._verify_strangers()
        now_us = self.clock.monotonic_us()
        self._end_graces(now_us)
        self._end_orphans(now_us)
        ends = [load.until_us for load in self._loads.values()]
        orphan_us = self.flights.next_orphan_us()
        if orphan_us is not None:
            ends.append(orphan_us)
        return max(1, min([end - now_us for end in ends] + [self.idle_pause_us]))

    def _adopt_announced(self, shard: Shard) -> None:
        for session in self.sessions():
            for run in tuple(session.announced.values()):
                if run.key.shard == shard and run.key not in self.flights:
                    self._adopt(session, run)

    def _adopt(self, session: Session, run: Held, *, look_up: bool = True) -> Flight | None:
        """Take an announced attempt of a held shard as a flight, or have it looked up first."""
        if run.key.shard not in self.holds.shards:
            return None  # Its holder answers.
        entry = self.holds.entry(run.key)
        if entry is None:
            if look_up:
                self._strangers[run.key] = session, run
                self.wake()
            return None
        if entry.attempt != run.attempt:
            return None
        flight = Flight(entry, session, self.clock.monotonic_us(), foreign=True)
        self.flights.begin(flight)
        self.holds.shards[run.key.shard].astray.discard(run.key)
        session.announced.pop(run.key, None)
        self.telemetry.count("adopted")
        return flight

    def _speaks_for(self, session: Session, flight: Flight) -> bool:
        """Whether a session may speak for a flight; an executor that came back does."""
        if flight.session is session:
            return True
        if flight.session.executor_id == session.executor_id or flight.orphaned_until_us is not None:
            self.flights.move(flight, session)
            return True
        return False  # One token goes to one session only.

    async def _load(self) -> None:
        """Read the open entries of all shards that were taken and not loaded yet."""
        fences = {shard: load.fence for shard, load in self._loads.items() if not load.loaded}
        async for news in self._read_open(sorted(fences)):
            for entry in news:
                self._sort(entry)
        for shard, fence in fences.items():
            load = self._loads.get(shard)
            if load is not None and load.fence == fence:
                load.loaded = True

    async def _reload(self) -> None:
        """Read the open entries of shards that may have some which no memory knows; they were never delivered."""
        # What a former holder left is known first, so that the rest is this node's own.
        shards = sorted(shard for shard in self._reloads if shard not in self._loads or self._loads[shard].loaded)
        self._reloads -= set(shards)
        try:
            async for news in self._read_open(shards):
                self.add(entry for entry in news if entry.state is EntryState.HELD)
        except BaseException:
            self._reloads.update(shards)
            raise

    async def _read_open(self, shards: Sequence[Shard]) -> AsyncIterator[Sequence[Entry]]:
        """Yield what is news among the open entries of shards, page by page."""
        after: ExecutionKey | None = None
        while shards:
            read = self.holds.begin_read()
            page: Sequence[Entry] = ()
            try:
                page = await self.telemetry.timed(
                    "open_entries", self.store.open_entries(shards, after=after, limit=limits.PAGE_MAX)
                )
            finally:
                news = self.holds.end_read(read, page)
            yield news
            if len(page) < limits.PAGE_MAX:
                return
            after = page[-1].key

    def _sort(self, entry: Entry) -> None:
        """Find out what an open entry means that this node did not know."""
        load = self._loads.get(entry.key.shard)
        if load is None or not self.holds.keep(entry):
            return
        flight = self.flights.get(entry.key)
        if flight is not None and flight.entry.attempt == entry.attempt:
            flight.entry = entry  # It was delivered under an earlier lease of this very node.
            return
        if not self._adopt_known(entry):
            self.holds.stray(entry.key)
            load.doubtful.append(entry)

    def _adopt_known(self, entry: Entry) -> bool:
        """Make an entry in memory the flight of the session that announced it, if one did."""
        for session in self.sessions():
            run = session.announced.get(entry.key)
            if run is not None and run.attempt == entry.attempt:
                self._adopt(session, run)
                self._tell_kept(session, entry)
                return True
        return False

    async def _verify_strangers(self) -> None:
        """Look up announced attempts that are not among the loaded entries: unrecorded first attempts, mostly."""
        while self._strangers:
            key, (session, run) = next(iter(self._strangers.items()))
            entry = await read_stranger(self.store, self.telemetry, key)
            self._strangers.pop(key, None)
            if session.closed or key in self.flights:
                continue
            if entry is None or entry.attempt != run.attempt:
                session.push(Cancel(attempts=((key, run.attempt),), reason="stale"))
            elif self.holds.keep(entry) and self._adopt(session, run) is not None:
                self._tell_kept(session, entry)

    def _tell_kept(self, session: Session, entry: Entry) -> None:
        """Tell an executor at once that an attempt lives on here; its old session's lease may soon be over."""
        kept = ((entry.key, entry.attempt),)
        session.push(BeatAnswer(now_us=self.store_clock.now_us(), peers=self.peers(), kept=kept))

    def _end_graces(self, now_us: int) -> None:
        for shard, load in tuple(self._loads.items()):
            if not load.loaded or load.until_us > now_us:
                continue
            del self._loads[shard]
            hold = self.holds.shards.get(shard)
            if hold is None or hold.lease.fence != load.fence:
                continue
            for entry in load.doubtful:
                if entry.key in self.flights or self.holds.entry(entry.key) is not entry:
                    continue  # Announced meanwhile, or settled.
                self.lose(Lost(entry, None, "nobody announced it after its node was gone", entry.delivered))
            hold.complete = True
            self.wake_polling()

    def _end_orphans(self, now_us: int) -> None:
        for flight in tuple(self.flights.overdue_orphans(now_us)):
            entry = flight.entry
            self.flights.end(entry.key, entry.attempt)
            self.holds.stray(entry.key)
            if entry.key.shard in self.holds.shards:
                self.lose(
                    Lost(
                        entry, flight.session.executor_id, "its executor is gone and did not come back", delivered=True
                    )
                )
