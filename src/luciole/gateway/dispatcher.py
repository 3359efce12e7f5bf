"""The dispatcher: entries of this node's shards go to the sessions that can run them."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from luciole import limits
from luciole.gateway.ahead import next_ahead_us
from luciole.gateway.flights import Flights
from luciole.gateway.holds import Holds
from luciole.gateway.jobs import JobShelf
from luciole.gateway.reporter import Reporter
from luciole.gateway.session import Flight, Session
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey, Shard
from luciole.model.instant import Instant
from luciole.model.job import EntryFlag
from luciole.model.lease import Lease
from luciole.model.outbox import Delivery, Entry
from luciole.model.retrying import Lost, settle_unstarted
from luciole.model.routing import Line, Route, assign, can_serve
from luciole.runtime.clock import Clock
from luciole.runtime.probe import Probe, Stage
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import OutboxStore
from luciole.wire.messages import Cancel, Deliver, Delivered, Demand, SharedPayloads

#: How the reason begins for which an execution is parked that no executor knows.
UNKNOWN_HANDLER = "no executor knows the handler"

_log = logging.getLogger("luciole.dispatcher")


@dataclass(slots=True, kw_only=True)
class Dispatcher:
    """Delivers what waits to sessions with free credits; only a trusted holder of a shard delivers its entries."""

    store: OutboxStore
    clock: Clock
    store_clock: StoreClock
    telemetry: Telemetry
    holds: Holds
    flights: Flights
    jobs: JobShelf
    reporter: Reporter
    sessions: Callable[[], Sequence[Session]]
    trusted: Callable[[], Sequence[Lease]]
    known_elsewhere: Callable[[Route], bool]  #: whether an executor of another node knows a handler
    lose: Callable[[Lost], None]  #: takes attempts that have to be taken back
    wake: Callable[[], None]  #: pokes the loop of `tick`
    wake_recording: Callable[[], None]  #: pokes the loop of `record`
    wake_ahead: Callable[[], None]  #: pokes the loop that asks whether what was planned ahead stands
    idle_pause_us: int = limits.REST_US
    unknown_grace_us: int = limits.UNKNOWN_HANDLER_GRACE_US
    probe: Probe | None = None
    running: bool = True  #: False: deliver nothing (draining, or a bench that opens the gate later)
    _recording: list[tuple[Session, Entry]] = field(default_factory=list)
    _deadlines: list[tuple[Instant, ExecutionKey, int]] = field(default_factory=list)
    _unknown_since_us: dict[Route, int] = field(default_factory=dict)
    _turn: int = 0

    def add(self, entries: Iterable[Entry]) -> None:
        """Take entries that are durable; those of shards that are not held are passed over."""
        self.holds.add(entries, self.store_clock.now_us())
        self.wake()
        if next_ahead_us(self.holds) is not None:
            self.wake_ahead()

    async def tick(self) -> int:
        """Deliver what can be delivered; return the pause until the next entry is due."""
        # I3: what is not trusted any more is not delivered; asking makes the holder give it up.
        self.trusted()
        now_us = self.store_clock.now_us()
        next_due_us = self.holds.ripen(now_us)
        await self._read_jobs()
        self._pass_deadlines(now_us)
        if self.running:
            self._deliver_lines()
        pause_us = self.idle_pause_us
        if next_due_us is not None:
            pause_us = min(pause_us, self.store_clock.until_us(next_due_us))
        if self._deadlines:
            pause_us = min(pause_us, self.store_clock.until_us(self._deadlines[0][0]))
        for since_us in self._unknown_since_us.values():
            grace_us = since_us + self.unknown_grace_us - self.clock.monotonic_us()
            pause_us = min(pause_us, grace_us if grace_us > 0 else limits.LOCAL_PAUSE_MAX_US)
        if self.holds.lines.unread_jobs():
            return 0
        return max(1, pause_us)

    async def record(self) -> int:
        """Put deliveries on record that must be there before they are sent, then send them."""
        batch, self._recording = (
            self._recording[: limits.DELIVER_BATCH_MAX],
            self._recording[limits.DELIVER_BATCH_MAX :],
        )
        if not batch:
            return self.idle_pause_us
        leases = {lease.shard: lease for lease in self.trusted()}
        now_us = self.store_clock.now_us()
        deliveries = [
            Delivery(entry.key, entry.attempt, session.executor_id, now_us)
            for session, entry in batch
            # A shard that was lost and taken anew has its entries anew.
            if entry.key.shard in leases and self.holds.entry(entry.key) is entry
        ]
        guards = [leases[shard] for shard in sorted({delivery.key.shard for delivery in deliveries})]
        try:
            allowed = frozenset(
                await self.telemetry.timed("record_deliveries", self.store.record_deliveries(guards, deliveries))
                if deliveries
                else ()
            )
        except BaseException:
            self._recording = batch + self._recording  # Safe to repeat.
            raise
        by_session: dict[Session, list[Entry]] = {}
        for session, entry in batch:
            self.holds.reserved.discard(entry.key)
            if entry.key in allowed:
                self._send_recorded(session, entry, by_session)
                continue
            session.credits += 1
            if self.holds.entry(entry.key) is entry:
                self._take_back(entry, leases.get(entry.key.shard))
        for session, entries in by_session.items():
            self._send(session, entries)
        return 0 if self._recording else self.idle_pause_us

    def _take_back(self, entry: Entry, lease: Lease | None) -> None:
        """See to an entry whose delivery could not be recorded under a lease."""
        if lease is None or self.holds.shards[entry.key.shard].lease.fence != lease.fence:
            # The shard was lost and taken anew meanwhile, so the fence alone refused it; nobody else knows of it.
            self.holds.lines.add(entry, self.store_clock.now_us())
            self.wake()
            return
        # Settled, withdrawn, or its end was asked for: what is still open is found by polling.
        self.holds.forget(entry.key)

    def cancel(self, entries: Iterable[Entry]) -> None:
        """End what somebody asked to end: pass it on to the executor, or settle what none has."""
        for entry in entries:
            flight = self.flights.of_attempt(entry.key, entry.attempt)
            if flight is None:
                if not any(waiting.key == entry.key for _, waiting in self._recording):
                    self._settle_unstarted(entry, ExecutionState.CANCELLED, "cancelled before it started")
            elif not flight.cancelled:
                flight.cancelled = True
                flight.entry = flight.entry._replace(cancel=True)
                if flight.orphaned_until_us is None:
                    flight.session.push(Cancel(attempts=((entry.key, entry.attempt),), reason="cancelled"))

    async def record_flights(self, leases: Sequence[Lease]) -> None:
        """Put first attempts under way on record, so that their shards' next holders can tell them."""
        shards = {lease.shard for lease in leases}
        now_us = self.store_clock.now_us()
        deliveries = [
            Delivery(entry.key, entry.attempt, flight.session.executor_id, now_us)
            for flight in self.flights.all()
            if (entry := flight.entry).key.shard in shards and not entry.delivered
        ]
        for start in range(0, len(deliveries), limits.DELIVER_BATCH_MAX):
            chunk = deliveries[start : start + limits.DELIVER_BATCH_MAX]
            await self.telemetry.timed("record_deliveries", self.store.record_deliveries(leases, chunk))

    def undeliverable(self, session: Session, attempt: Delivered, problem: Exception) -> None:
        """Fail an attempt that could not be put on the wire, so that it blocks nothing (I7)."""
        _log.error("execution %s can't be sent: %s", attempt.key.text(), problem)
        session.credits += 1
        self.reporter.fail(attempt.key, attempt.attempt, f"it can't be sent to an executor: {problem}")

    async def _read_jobs(self) -> None:
        unread = self.holds.lines.unread_jobs()[: limits.JOBS_READ_MAX]
        if not unread:
            return
        await self.jobs.load(unread)
        for entry in self.holds.lines.jobs_read(unread):
            # I7: it waits, visible, for a version of this program that can read it.
            self._settle_unstarted(entry, ExecutionState.PARKED, f"job version {entry.job_id} can't be read")

    def _deliver_lines(self) -> None:
        lines = self.holds.lines.counts()
        sessions = [session for session in self.sessions() if not session.draining]
        if lines:
            offers = [session.offer() for session in sessions]
            self._turn += 1
            for share in assign(lines, offers, turn=self._turn):
                self._deliver(sessions[share.offer], self.holds.lines.draw(lines[share.line], share.entries))
        self._tell_demand(self.holds.lines.counts(), sessions)

    def _deliver(self, session: Session, entries: Sequence[Entry]) -> None:
        """Send what may be sent at once; queue what must be on record first."""
        now_us = self.store_clock.now_us()
        direct = []
        for entry in entries:
            if entry.deadline_us is not None and entry.deadline_us <= now_us:
                self._settle_unstarted(entry, ExecutionState.CANCELLED, "its deadline passed before it started")
            elif entry.cancel:
                self._settle_unstarted(entry, ExecutionState.CANCELLED, "cancelled before it started")
            elif (
                entry.attempt > 1
                or entry.flags & EntryFlag.AT_MOST_ONCE
                or entry.key in self.holds.shards[entry.key.shard].doubted
            ):
                session.credits -= 1  # It comes back when the record is refused.
                self.holds.reserved.add(entry.key)
                self._recording.append((session, entry))
                self.wake_recording()
            else:
                direct.append(entry)
        if direct:
            session.credits -= len(direct)
            self._send(session, direct)

    def _send_recorded(self, session: Session, entry: Entry, by_session: dict[Session, list[Entry]]) -> None:
        recorded = entry._replace(delivered=True)
        if not self.holds.keep(recorded):
            # The shard is not held any more. Whoever holds it next finds the record and rescues the attempt; this
            # node too, which then must not go on as if nothing had been recorded.
            self.holds.stray(entry.key)
            return
        if session.closed:
            # On record for an executor that is gone, and never sent: lost without counting against the handler.
            self.lose(Lost(recorded, session.executor_id, "its executor left before it was sent", delivered=False))
        else:
            by_session.setdefault(session, []).append(recorded)

    def _send(self, session: Session, entries: Sequence[Entry]) -> None:
        attempts = []
        shared = SharedPayloads()
        for entry in entries:
            job = self.jobs.get(entry.job_id)
            if job is None:
                session.credits += 1
                self.holds.lines.line_up(entry)  # Its version fell out of memory and is read again.
                continue
            spec = job[0]
            attempts.append(
                Delivered(
                    entry.key,
                    entry.attempt,
                    spec.handler,
                    spec.payload if entry.payload is None else shared.of(entry.payload),
                    spec.content_type if entry.content_type is None else entry.content_type,
                    entry.key.fire_us,
                    entry.due_us,
                    spec.timeout_us,
                    entry.deadline_us,
                    spec.run_in,
                )
            )
            self.flights.begin(Flight(entry, session, None))
            if entry.deadline_us is not None:
                heappush(self._deadlines, (entry.deadline_us, entry.key, entry.attempt))
        for part in _parts(attempts):
            session.push(Deliver(attempts=part))
        self.telemetry.count("delivered", len(attempts))
        if self.probe is not None:
            self.probe.stamp(Stage.DELIVER, [attempt.key for attempt in attempts], self.store_clock.now_us())

    def _pass_deadlines(self, now_us: Instant) -> None:
        while self._deadlines and self._deadlines[0][0] <= now_us:
            _, key, attempt = heappop(self._deadlines)
            flight = self.flights.of_attempt(key, attempt)
            if flight is not None and not flight.cancelled:
                flight.cancelled = True
                flight.session.push(Cancel(attempts=((key, attempt),), reason="deadline"))

    def _settle_unstarted(self, entry: Entry, state: ExecutionState, error: str) -> None:
        self.holds.stray(entry.key)
        self.reporter.settle(settle_unstarted(entry, state=state, now_us=self.store_clock.now_us(), error=error), entry)

    def _tell_demand(self, lines: Sequence[Line], sessions: Sequence[Session]) -> None:
        """Tell sessions without credits how much waits for them; look for lines that nobody can serve."""
        for session in sessions:
            waiting = 0
            if session.credits <= 0:
                offer = session.offer()
                waiting = sum(line.waiting for line in lines if can_serve(offer, line.route))
            # Told when it begins, ends, or has doubled or halved: a hint, not a count.
            told = session.told_waiting
            if (waiting == 0) != (told == 0) or waiting > 2 * told or 2 * waiting < told:
                session.told_waiting = waiting
                session.push(Demand(waiting=waiting))
        self._park_unknown(lines, sessions)

    def _park_unknown(self, lines: Sequence[Line], sessions: Sequence[Session]) -> None:
        """Put aside what no executor anywhere has known for a while, so that it is seen and blocks nothing (I7).

        While there is no executor at all nothing is parked: they are restarting, not ignorant.
        """
        now_us = self.clock.monotonic_us()
        offers = [session.offer() for session in sessions]
        unknown = {
            line.route
            for line in lines
            if offers and not any(offer.handlers and can_serve(offer, line.route) for offer in offers)
        }
        for route in tuple(self._unknown_since_us):
            if route not in unknown:
                del self._unknown_since_us[route]
        for line in lines:
            if line.route not in unknown:
                continue
            since_us = self._unknown_since_us.setdefault(line.route, now_us)
            if now_us - since_us < self.unknown_grace_us or self.known_elsewhere(line.route):
                continue
            for entry in self.holds.lines.draw(line, line.waiting):
                error = f"{UNKNOWN_HANDLER} {line.route.handler!r} of namespace {line.route.namespace!r}"
                if line.route.labels:
                    error += f" with the labels {sorted(line.route.labels)}"
                self._settle_unstarted(entry, ExecutionState.PARKED, error)

    def has_idle(self) -> bool:
        """Whether a session has credits that nothing in line could use when it was last looked at."""
        return any(session.credits > 0 and not session.draining for session in self.sessions())

    def shards(self) -> tuple[Shard, ...]:
        """Return the shards whose entries it delivers."""
        return tuple(sorted(self.holds.shards))


def _parts(attempts: Sequence[Delivered]) -> Iterator[tuple[Delivered, ...]]:
    """Divide attempts into messages that are bounded in count and in bytes, unless one alone is over."""
    start = size = 0
    counted: set[int] = set()  # A payload that several attempts share travels once.
    for place, attempt in enumerate(attempts):
        more = 0 if id(attempt.payload) in counted else len(attempt.payload)
        if place - start == limits.DELIVER_BATCH_MAX or (more and size and size + more > limits.SEND_BYTES_MAX):
            yield tuple(attempts[start:place])
            start, size, more = place, 0, len(attempt.payload)
            counted.clear()
        size += more
        counted.add(id(attempt.payload))
    if start < len(attempts):
        yield tuple(attempts[start:])
