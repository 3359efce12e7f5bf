"""One session: a live connection to an executor, its credits, and what it has."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from luciole import limits
from luciole.errors import Rejected
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import Entry
from luciole.model.routing import Offer
from luciole.runtime.clock import Clock
from luciole.wire.connection import Connection
from luciole.wire.messages import BeatAnswer, Deliver, Delivered, Held, Hello, Message, Welcome

_log = logging.getLogger("luciole.session")

#: Told of an attempt that could not be put on the wire, and why.
#: What waits for no payload. A session begins with its welcome, whatever it has to be told at once.
_FIRST = (Welcome, BeatAnswer)

Undeliverable = Callable[["Session", Delivered, Exception], None]


class Flight:
    """One attempt on its way: delivered by this node, or taken over from a former holder by its announcement."""

    __slots__ = ("cancelled", "delivered_us", "entry", "foreign", "marked", "orphaned_until_us", "progress", "session")

    def __init__(self, entry: Entry, session: "Session", delivered_us: int | None, *, foreign: bool = False) -> None:
        self.entry = entry
        self.session = session
        self.delivered_us = delivered_us  #: by the host's monotonic clock; None until it was sent
        self.foreign = foreign  #: another node or an earlier session delivered it
        self.marked = False  #: its run is on record
        self.progress: str | None = None  #: the last one on record
        self.cancelled = False  #: its executor was asked to end it
        self.orphaned_until_us: int | None = None  #: its session is gone; by the monotonic clock


class Session:
    """What a node knows of one executor while it is connected.

    Messages are pushed without waiting and written by a task of the session, what has gathered in one frame, so
    that one slow executor holds nobody up. Answers to heartbeats pass whatever payloads wait: behind them they would
    come too late on a slow line, the session would end, and its work would be delivered again, for ever.
    """

    def __init__(self, connection: Connection, hello: Hello, clock: Clock) -> None:
        heard_us = clock.monotonic_us()
        self._clock = clock
        self.connection = connection
        self.executor_id = hello.executor_id
        self.namespace = hello.namespace
        self.handlers = frozenset(hello.handlers)
        self.labels = frozenset(hello.labels)
        self.slots = min(max(hello.slots, 0), limits.SLOTS_MAX)
        self.host = hello.host
        self.pid = hello.pid
        self.credits = 0
        self.draining = False
        self.closed = False
        self.heard_us = heard_us  #: the last message, by the host's monotonic clock
        self.beat_us = heard_us  #: the last heartbeat, same clock
        self.flights: dict[ExecutionKey, Flight] = {}
        self.announced: dict[ExecutionKey, Held] = {}  #: by its last heartbeat, and not a flight of this node
        self.told_waiting = 0  #: the demand it was last told
        self.written = asyncio.Event()  #: set when the writer has ended
        self._answers: list[Message] = []
        self._outgoing: deque[Message] = deque()
        self._wake = asyncio.Event()

    def offer(self) -> Offer:
        """Return what it can take, for routing."""
        return Offer(self.executor_id, self.namespace, self.handlers, self.labels, self.credits)

    def change_credits(self, credits_: int) -> int:
        """Add or take back credits; return how many were taken back."""
        if credits_ >= 0:
            self.credits = min(self.credits + credits_, self.slots)
            return 0
        unused = min(-credits_, self.credits)
        self.credits -= unused
        return unused

    def push(self, message: Message) -> None:
        """Send a message soon, in order, but for the welcome and answers to heartbeats, which come first."""
        if not self.closed:
            (self._answers if isinstance(message, _FIRST) else self._outgoing).append(message)
            self._wake.set()

    async def write(self, undeliverable: Undeliverable) -> None:
        """Send what is pushed until the session is closed.

        Raises:
            Unavailable: the connection is gone.
        """
        try:
            while self._answers or self._outgoing or not self.closed:
                if frame := self._take():
                    await self._send(frame, undeliverable)
                    self._note_sent(frame)
                else:
                    self._wake.clear()
                    await self._wake.wait()
        finally:
            self.written.set()

    def close(self) -> None:
        """Let the writer end once it has sent what was pushed."""
        self.closed = True
        self._wake.set()

    def _take(self) -> Sequence[Message]:
        """Take what is sent next: the answers, or else what has gathered, up to a bound of payloads."""
        if self._answers:  # Without company: a frame is read when all of it has come.
            answers, self._answers = self._answers, []
            return answers
        frame: list[Message] = []
        room = limits.SEND_BYTES_MAX
        while self._outgoing and len(frame) < limits.FRAME_MESSAGES_MAX:
            message = self._outgoing[0]
            if isinstance(message, Deliver):
                room -= message.payload_bytes
            if frame and room < 0:
                break
            frame.append(self._outgoing.popleft())
        return frame

    def _note_sent(self, frame: Sequence[Message]) -> None:
        """Let what an executor can have count as delivered from now on: before, it could not speak of it."""
        now_us = self._clock.monotonic_us()
        for message in frame:
            for attempt in message.attempts if isinstance(message, Deliver) else ():
                flight = self.flights.get(attempt.key)
                if flight is not None and flight.entry.attempt == attempt.attempt:
                    flight.delivered_us = now_us

    async def _send(self, frame: Sequence[Message], undeliverable: Undeliverable) -> None:
        try:
            await self.connection.send(frame)
        except Rejected as problem:
            # What can't be encoded, and nothing else: a connection that breaks is no fault of what was sent.
            for part in self._apart(frame, problem, undeliverable):
                await self._send(part, undeliverable)

    def _apart(
        self, frame: Sequence[Message], problem: Rejected, undeliverable: Undeliverable
    ) -> Iterator[Sequence[Message]]:
        """Take a frame apart that can't be sent: into messages, deliveries into halves, down to the one at fault."""
        only = frame[0]
        if len(frame) > 1:
            yield from ((message,) for message in frame)
        elif isinstance(only, Deliver) and len(only.attempts) > 1:
            middle = len(only.attempts) // 2
            yield (Deliver(attempts=only.attempts[:middle]),)
            yield (Deliver(attempts=only.attempts[middle:]),)
        elif isinstance(only, Deliver):
            undeliverable(self, only.attempts[0], problem)
        else:
            _log.error("a %s for executor %s can't be sent: %s", type(only).__name__, self.executor_id, problem)
