"""Sessions: executors come, announce what they hold, and are heard until they fall silent."""

import asyncio
import hmac
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from luciole import limits
from luciole.errors import AuthenticationFailed, LucioleError, ProtocolMismatch, Rejected, Unavailable
from luciole.gateway.flights import Flights
from luciole.gateway.recovery import Recovery
from luciole.gateway.reporter import Reporter
from luciole.gateway.session import Session, Undeliverable
from luciole.gateway.unparker import Unparker
from luciole.model.ids import ExecutionKey, ExecutorId, NodeId
from luciole.model.outbox import Running
from luciole.runtime.clock import Clock
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.wire.connection import Connection
from luciole.wire.messages import (
    PROTOCOL_MAX,
    PROTOCOL_MIN,
    Acknowledge,
    Beat,
    BeatAnswer,
    Cancel,
    Demand,
    Drain,
    Grant,
    Held,
    Hello,
    Message,
    Refuse,
    Reports,
    Welcome,
)

_log = logging.getLogger("luciole.sessions")


@dataclass(slots=True, kw_only=True)
class Sessions:
    """All sessions of one node."""

    node_id: NodeId
    clock: Clock
    store_clock: StoreClock
    telemetry: Telemetry
    reporter: Reporter
    recovery: Recovery
    flights: Flights
    unparker: Unparker
    undeliverable: Undeliverable
    peers: Callable[[], tuple[str, ...]]  #: addresses of the other nodes
    wake_delivery: Callable[[], None]
    running: Callable[[Running], None]  #: takes runs that belong on record
    token: str | None = None  #: what executors must show; None: nothing
    session_ttl_us: int = limits.SESSION_TTL_US
    reconnect_grace_us: int = limits.RECONNECT_GRACE_US
    by_executor: dict[ExecutorId, Session] = field(default_factory=dict)
    draining: bool = False
    _told_peers: tuple[str, ...] = ()

    def all(self) -> Sequence[Session]:
        """Return the live sessions."""
        return tuple(self.by_executor.values())

    async def serve(self, connection: Connection, *, trusted: bool = False) -> None:
        """Run the node's end of one connection until it ends, whatever comes over it.

        Args:
            connection: a new connection; it is closed at the end.
            trusted: it comes from this very process and needs no token.
        """
        session: Session | None = None
        try:
            session = await self._welcome(connection, trusted=trusted)
            if session is not None:
                await self._talk(session)
        except Unavailable as error:
            _log.info("session of executor %s ended: %s", "?" if session is None else session.executor_id, error)
        except Exception:  # noqa: BLE001 - what one executor provokes ends its session and nothing else
            _log.exception("session of executor %s failed", "?" if session is None else session.executor_id)
        finally:
            if session is not None:
                self._close(session)
            await connection.close()

    async def watch(self) -> int:
        """Close sessions that fell silent; return the pause."""
        silent_us = self.clock.monotonic_us() - self.session_ttl_us
        for session in self.all():
            if session.heard_us <= silent_us:
                _log.warning("executor %s has fallen silent: its session is closed", session.executor_id)
                self.telemetry.count("sessions_silent")
                self._close(session)
                await session.connection.close()
        return self.session_ttl_us // limits.SESSION_WATCHES

    def tell_peers(self) -> None:
        """Tell executors of nodes that have come, at once: this one may be gone before their next heartbeat."""
        peers = self.peers()
        if not set(peers) <= set(self._told_peers):
            for session in self.all():
                session.push(BeatAnswer(now_us=self.store_clock.now_us(), peers=peers))
        self._told_peers = peers

    def drain(self, grace_us: int) -> None:
        """Ask executors to take nothing new from here, and refuse new sessions."""
        self.draining = True
        for session in self.all():
            session.draining = True
            session.push(Drain(grace_us=grace_us))

    async def close(self) -> None:
        """End all sessions in order, once what was pushed has been sent."""
        self.draining = True
        sessions = self.all()
        for session in sessions:
            session.close()
        for session in sessions:
            await session.written.wait()
            await session.connection.close()

    async def _welcome(self, connection: Connection, *, trusted: bool) -> Session | None:
        first = asyncio.ensure_future(connection.receive())
        frame: Sequence[Message] = ()
        arrived = asyncio.Event()
        first.add_done_callback(lambda _: arrived.set())
        if not await self.clock.wait(arrived, limits.HELLO_WAIT_US):
            first.cancel()
            _log.warning("a connection did not introduce itself and is closed")
            return None
        frame = first.result()
        if not frame:
            return None
        try:
            hello = self._check_hello(frame[0], trusted=trusted)
        except LucioleError as refusal:
            _log.warning("an executor is refused: %s", refusal)
            self.telemetry.count("sessions_refused")
            await connection.send((Refuse(code=refusal.code, message=str(refusal)),))
            return None
        session = Session(connection, hello, self.clock)
        former = self.by_executor.pop(session.executor_id, None)
        if former is not None:  # It came back before its end was noticed.
            self._close(former)
            await former.connection.close()
        others = [one.handlers for one in self.all() if one.namespace == session.namespace]
        self.unparker.welcome(session.namespace, session.handlers.difference(*others))
        self.by_executor[session.executor_id] = session
        stale, kept = self.recovery.announce(session, hello.held, first=True)
        session.push(
            Welcome(
                protocol=min(hello.protocol_max, PROTOCOL_MAX),
                node_id=self.node_id,
                now_us=self.store_clock.now_us(),
                session_ttl_us=self.session_ttl_us,
                peers=self.peers(),
                kept=kept,
            )
        )
        self._cancel_stale(session, stale)
        for message in frame[1:]:
            self._hear(session, message)
        _log.info("executor %s (%s) joins with %d slots", session.executor_id, session.host, session.slots)
        self.wake_delivery()
        return session

    def _check_hello(self, message: Message, *, trusted: bool) -> Hello:
        if not isinstance(message, Hello):
            raise Rejected(f"the first message is a {type(message).__name__}; an executor begins with Hello")
        if message.protocol_min > PROTOCOL_MAX or message.protocol_max < PROTOCOL_MIN:
            raise ProtocolMismatch(
                f"protocol: the executor speaks {message.protocol_min} to {message.protocol_max}, this node "
                f"{PROTOCOL_MIN} to {PROTOCOL_MAX}; upgrade the older of the two"
            )
        if self.token is not None and not trusted:
            shown = message.token or ""
            if not hmac.compare_digest(shown.encode("utf-8", "replace"), self.token.encode("utf-8", "replace")):
                raise AuthenticationFailed("token: it is missing or not the one of this node (LUCIOLE_TOKEN)")
        if self.draining:
            raise Unavailable("this node is about to stop; connect to another")
        if len(self.by_executor) >= limits.SESSIONS_MAX:
            raise Unavailable(f"this node has {limits.SESSIONS_MAX} sessions, its most; connect to another")
        return message

    async def _talk(self, session: Session) -> None:
        """Read and write until either ends; then end the other."""
        reading = asyncio.ensure_future(self._read(session))
        writing = asyncio.ensure_future(session.write(self.undeliverable))
        try:
            await asyncio.wait((reading, writing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (reading, writing):
                task.cancel()
            results = await asyncio.gather(reading, writing, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _read(self, session: Session) -> None:
        while not session.closed:
            frame = await session.connection.receive()
            if not frame:
                return
            for message in frame:
                self._hear(session, message)
            await self.reporter.room()  # I10: what can't be settled yet is not read either.
            session.heard_us = self.clock.monotonic_us()

    def _hear(self, session: Session, message: Message) -> None:
        match message:
            case Grant():
                unused = session.change_credits(message.credits)
                if message.credits < 0:
                    session.push(Demand(waiting=session.told_waiting, unused=unused))
                self.wake_delivery()
            case Acknowledge():
                self.telemetry.count("acknowledged", len(message.attempts))
            case Reports():
                self.reporter.collect(session, message.reports)
            case Beat():
                self._hear_beat(session, message.held, message.number)
            case Drain():
                session.draining = True
            case _:
                raise Rejected(f"an executor does not send {type(message).__name__}")

    def _hear_beat(self, session: Session, held: Sequence[Held], number: int) -> None:
        stale, kept = self.recovery.announce(session, held)
        answer = BeatAnswer(now_us=self.store_clock.now_us(), number=number, peers=self.peers(), kept=kept)
        session.push(answer)
        self._cancel_stale(session, stale)
        self.recovery.miss(session, held)
        self._mark_running(session, held)
        session.beat_us = self.clock.monotonic_us()

    def _cancel_stale(self, session: Session, stale: Sequence[tuple[ExecutionKey, int]]) -> None:
        if stale:
            self.telemetry.count("announcements_stale", len(stale))
            session.push(Cancel(attempts=tuple(stale), reason="stale"))

    def _mark_running(self, session: Session, held: Sequence[Held]) -> None:
        """Put runs of over a second on record, once and whenever they tell of progress."""
        long_us = self.store_clock.now_us() - limits.RUN_MARKED_AFTER_US
        for run in held:
            if run.started_us is None or run.started_us > long_us:
                continue
            flight = self.flights.of_attempt(run.key, run.attempt)
            if flight is not None and (not flight.marked or flight.progress != run.progress):
                flight.marked = True
                flight.progress = run.progress
                self.running(Running(run.key, run.attempt, session.executor_id, run.started_us, run.progress))

    def _close(self, session: Session) -> None:
        """Forget a session; what it has is given time to come back."""
        session.close()
        if self.by_executor.get(session.executor_id) is session:
            del self.by_executor[session.executor_id]
        until_us = self.clock.monotonic_us() + self.reconnect_grace_us
        for flight in tuple(session.flights.values()):
            self.flights.orphan(flight, until_us)
        self.recovery.wake()
