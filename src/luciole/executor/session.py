"""One live session with one node: frames in, frames out, heartbeats and the lease that they renew."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from luciole import limits
from luciole.errors import LucioleError, ProtocolMismatch, Unavailable
from luciole.executor.credits import Account
from luciole.model.ids import ExecutionKey
from luciole.model.instant import Instant
from luciole.model.outbox import Report
from luciole.runtime.clock import Clock
from luciole.wire.connection import Connection
from luciole.wire.messages import (
    PROTOCOL_MAX,
    PROTOCOL_MIN,
    Acknowledge,
    Beat,
    BeatAnswer,
    Cancel,
    Confirm,
    Deliver,
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

ResultT = TypeVar("ResultT")


class SessionOwner(Protocol):
    """What a session tells its executor, and asks of it."""

    def on_deliver(self, session: "Session", message: Deliver) -> None:
        """Attempts came."""
        ...

    def on_confirm(self, session: "Session", message: Confirm) -> None:
        """Reports are durable."""
        ...

    def on_cancel(self, message: Cancel) -> None:
        """Attempts are to end."""
        ...

    def on_demand(self, session: "Session") -> None:
        """The node's account has changed."""
        ...

    def on_heard(self, session: "Session", now_us: Instant, asked_us: int) -> None:
        """The node answered: the store's clock."""
        ...

    def on_peers(self, peers: Sequence[str]) -> None:
        """The node told the addresses of the other nodes."""
        ...

    def on_kept(self, session: "Session", tokens: Sequence[tuple[ExecutionKey, int]]) -> None:
        """The node looks after these attempts from here on."""
        ...

    def reports_for(self, session: "Session", count_max: int) -> list[Report]:
        """Return the next reports to send."""
        ...

    def held(self) -> tuple[Held, ...]:
        """Return all attempts that the executor holds."""
        ...


class Session:
    """The executor's end of one session.

    Args:
        address: where the node was found.
        connection: what carries the frames; closed by whoever opened it.
        clock: the time.
        owner: hears everything.
    """

    def __init__(self, address: str, connection: Connection, clock: Clock, owner: SessionOwner) -> None:
        self.address = address
        self.node_id = ""
        self.account = Account()
        self.lease_us = 0  #: by the monotonic clock: unless an answer comes before, the session is over
        self.ttl_us = 0
        self._connection = connection
        self._clock = clock
        self._owner = owner
        self._queued = asyncio.Event()
        self._beat_now = asyncio.Event()
        self._beats = 0
        self._asked: dict[int, int] = {}  # By number: when each heartbeat that waits for its answer was sent.
        self._acknowledged: list[tuple[ExecutionKey, int]] = []
        self._granting = 0
        self._recalling = 0
        self._drain: Drain | None = None
        self._beat_due = False
        self._rest: Sequence[Message] = ()

    async def open(self, hello: Hello) -> None:
        """Introduce the executor and learn who answers.

        Raises:
            Rejected: the node refuses: the error that its code names.
            Unavailable: the node is gone, or says nothing in time.
        """
        sent_us = self._clock.monotonic_us()
        await within(self._clock, limits.CONNECT_TIMEOUT_US, self._connection.send((hello,)))
        frame = await within(self._clock, limits.CONNECT_TIMEOUT_US, self._connection.receive())
        first = frame[0] if frame else None
        if isinstance(first, Refuse):
            raise _error(first)
        if not isinstance(first, Welcome):
            raise Unavailable(f"the node at {self.address} closed the connection instead of an answer")
        if not PROTOCOL_MIN <= first.protocol <= PROTOCOL_MAX:
            raise ProtocolMismatch(f"the node at {self.address} chose protocol {first.protocol}, unknown here; upgrade")
        self.node_id = first.node_id
        self.ttl_us = first.session_ttl_us
        self.lease_us = sent_us + self.ttl_us
        self._owner.on_heard(self, first.now_us, sent_us)
        self._owner.on_peers(first.peers)
        self._rest = frame[1:]
        self._welcome = first

    async def run(self) -> None:
        """Serve until the node closes, the connection breaks, or the lease is over."""
        if self._welcome.kept:
            self._owner.on_kept(self, self._welcome.kept)
        self._take(self._rest)
        tasks = [asyncio.create_task(each) for each in (self._read(), self._write(), self._beat())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    def grant(self, change: int) -> int:
        """Give the node more credits, or ask for some back; return how many are free again at once.

        Credits that have not been sent yet need no asking.
        """
        if change >= 0:
            self.account.granted += change
            self._granting += change
            freed = 0
        else:
            freed = min(self._granting, -change)
            self._granting -= freed
            self.account.granted -= freed
            self.account.recalled += -change - freed
            self._recalling += -change - freed
        self._queued.set()
        return freed

    def poke(self) -> None:
        """There are reports to send."""
        self._queued.set()

    def beat(self) -> None:
        """Send a heartbeat now: others should learn what this executor holds."""
        self._beat_now.set()

    def drain(self, grace_us: int) -> None:
        """Tell the node that the executor is about to stop."""
        self.account.open = False
        self._drain = Drain(grace_us=grace_us)
        self._queued.set()

    async def _read(self) -> None:
        while frame := await self._connection.receive():
            self._take(frame)

    def _take(self, frame: Sequence[Message]) -> None:
        for message in frame:
            match message:
                case Deliver():
                    self._acknowledged += [(one.key, one.attempt) for one in message.attempts]
                    self._queued.set()
                    self._owner.on_deliver(self, message)
                case Confirm():
                    self._owner.on_confirm(self, message)
                case Demand():
                    self.account.waiting = message.waiting
                    self.account.granted -= message.unused
                    self.account.recalled = 0
                    self._owner.on_demand(self)
                case Cancel():
                    self._owner.on_cancel(message)
                case BeatAnswer():
                    self._hear(message)
                case Drain():
                    self.account.open = False
                    self._owner.on_demand(self)
                case Refuse():
                    raise _error(message)
                case _:
                    pass  # A newer node may say more than this version knows.

    def _hear(self, answer: BeatAnswer) -> None:
        asked_us = self._asked.pop(answer.number, None)
        if asked_us is not None:
            # The lease runs from the question: the node counts from later, so it gives up later.
            self.lease_us = asked_us + self.ttl_us
            self._owner.on_heard(self, answer.now_us, asked_us)
        self._owner.on_peers(answer.peers)
        if answer.kept:
            self._owner.on_kept(self, answer.kept)

    async def _write(self) -> None:
        while True:
            await self._queued.wait()
            self._queued.clear()
            frame = self._frame()
            if frame:
                await self._connection.send(frame)

    def _frame(self) -> list[Message]:
        """Return what is sent next: a heartbeat that is due, or else whatever is queued now."""
        if self._beat_due:  # Without company: a frame is read when all of it has come.
            self._beat_due = False
            self._beats += 1
            self._asked[self._beats] = self._clock.monotonic_us()
            self._queued.set()  # There may be more.
            return [Beat(held=self._owner.held(), number=self._beats)]
        frame: list[Message] = []
        if self._acknowledged:
            frame.append(Acknowledge(attempts=tuple(self._acknowledged)))
            self._acknowledged.clear()
        reports = self._owner.reports_for(self, limits.REPORT_BATCH_MAX)
        if reports:
            frame.append(Reports(reports=tuple(reports)))
            self._queued.set()  # There may be more.
        if self._recalling:
            frame.append(Grant(credits=-self._recalling))
            self._recalling = 0
        if self._granting:
            frame.append(Grant(credits=self._granting))
            self._granting = 0
        if self._drain is not None:
            frame.append(self._drain)
            self._drain = None
        return frame

    async def _beat(self) -> None:
        while (left_us := self.lease_us - self._clock.monotonic_us()) > 0:
            await self._clock.wait(self._beat_now, min(left_us, self.ttl_us // limits.SESSION_BEATS))
            self._beat_now.clear()
            self._beat_due = True
            self._queued.set()
        raise Unavailable(f"the node {self.node_id} at {self.address} answered no heartbeat for {self.ttl_us:,} us")


async def within(clock: Clock, timeout_us: int, work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Return what some work returns.

    Raises:
        Unavailable: it took too long; it is cancelled.
    """
    task = asyncio.ensure_future(work)
    done = asyncio.Event()
    task.add_done_callback(lambda _: done.set())
    try:
        if not await clock.wait(done, timeout_us):
            raise Unavailable(f"no answer within {timeout_us / limits.SECOND_US:g} s")
        return task.result()
    finally:
        task.cancel()


def _error(refuse: Refuse) -> LucioleError:
    """Return the error that a refusal names; one that this version does not know may pass by itself."""
    rest = [LucioleError]
    while rest:
        kind = rest.pop()
        if kind.code == refuse.code:
            return kind(refuse.message)
        rest += kind.__subclasses__()
    return Unavailable(f"{refuse.code}: {refuse.message}")
