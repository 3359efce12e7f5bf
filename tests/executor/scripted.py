"""A node that a test plays by hand, and an executor that talks to it over a connection in one process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from luciole.errors import Unavailable
from luciole.executor.executor import Executor, ExecutorSettings
from luciole.executor.registry import HandlerRegistry
from luciole.gateway.local import local_pair
from luciole.limits import SECOND_US
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import Report
from luciole.runtime.clock import Clock, SystemClock
from luciole.wire.connection import Connection
from luciole.wire.messages import (
    Beat,
    BeatAnswer,
    Cancel,
    Confirm,
    Deliver,
    Delivered,
    Demand,
    Grant,
    Hello,
    Message,
    Reports,
    Verdict,
    Welcome,
)

MessageT = TypeVar("MessageT")

#: What a test waits for at most before it is called broken.
PATIENCE_S = 20


def a_key(number: int = 1) -> ExecutionKey:
    return ExecutionKey(number % 32, 0, 1_767_225_000_000_000 + number, -number)


def an_attempt(handler: str, payload: bytes = b"", *, number: int = 1, attempt: int = 1, **fields: object) -> Delivered:
    key = a_key(number)
    known: dict[str, Any] = {
        "content_type": "application/json", "fire_us": key.fire_us, "due_us": key.fire_us, "timeout_us": None,
        "deadline_us": None, "run_in": None,
    }  # fmt: skip
    return Delivered(key=key, attempt=attempt, handler=handler, payload=payload, **{**known, **fields})


class ScriptedNode:
    """One node; its store's clock is the test's."""

    def __init__(self, clock: Clock, node_id: str = "a" * 16, *, ttl_us: int = 30 * SECOND_US) -> None:
        self.node_id = node_id
        self.ttl_us = ttl_us
        self.clock = clock
        self.credits = 0
        self.answers_beats = True
        self.confirms = True
        self.kept: tuple[tuple[ExecutionKey, int], ...] = ()
        self.peers: tuple[str, ...] = ()
        self.hellos: list[Hello] = []
        self.beats: list[Beat] = []
        self.seen: list[Message] = []
        self.reports: list[Report] = []
        self.reachable = True
        self.connection: Connection | None = None
        self._changed = asyncio.Condition()

    async def dial(self) -> Connection:
        if not self.reachable:
            raise Unavailable(f"no node at {self.node_id}")
        ours, theirs = local_pair()
        self._task = asyncio.create_task(self.serve(ours))
        return theirs

    async def send(self, *frame: Message) -> None:
        assert self.connection is not None
        await self.connection.send(frame)

    async def deliver(self, *attempts: Delivered) -> None:
        self.credits -= len(attempts)
        await self.send(Deliver(attempts=attempts))

    async def cancel(self, number: int = 1, *, attempt: int = 1, reason: str = "cancelled", hard: bool = False) -> None:
        await self.send(Cancel(attempts=((a_key(number), attempt),), reason=reason, hard=hard))

    async def confirm(self, *reports: Report) -> None:
        await self.send(Confirm(verdicts=tuple((one.key, one.attempt, Verdict.DURABLE) for one in reports)))

    async def answer(self, beat: Beat) -> None:
        now_us = self.clock.now_us()
        await self.send(BeatAnswer(now_us=now_us, number=beat.number, peers=self.peers, kept=self.kept))

    async def until(self, wanted: Callable[[], object]) -> None:
        """Wait until a condition on what this node has seen holds."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(wanted)

    async def next_report(self) -> Report:
        await self.until(lambda: self.reports)
        return self.reports.pop(0)

    async def run(self, attempt: Delivered) -> Report:
        """Deliver one attempt and return how it ended."""
        await self.until(lambda: self.credits > 0)
        await self.deliver(attempt)
        return await self.next_report()

    async def serve(self, connection: Connection) -> None:
        """Be the node's end of a connection until it ends."""
        self.connection = connection
        try:
            while frame := await connection.receive():
                for message in frame:
                    await self._take(connection, message)
                async with self._changed:
                    self._changed.notify_all()
        except Unavailable:
            return

    async def _take(self, connection: Connection, message: Message) -> None:
        self.seen.append(message)
        now_us = self.clock.now_us()
        if isinstance(message, Hello):
            self.hellos.append(message)
            self.credits = 0
            welcome = Welcome(
                protocol=1,
                node_id=self.node_id,
                now_us=now_us,
                session_ttl_us=self.ttl_us,
                peers=self.peers,
                kept=self.kept,
            )
            await connection.send((welcome,))
        elif isinstance(message, Grant):
            unused = min(self.credits, max(0, -message.credits))
            self.credits += message.credits if message.credits > 0 else -unused
            if message.credits < 0:
                await connection.send((Demand(waiting=0, unused=unused),))
        elif isinstance(message, Reports):
            self.reports += message.reports
            if self.confirms:
                await self.confirm(*message.reports)
        elif isinstance(message, Beat):
            self.beats.append(message)
            if self.answers_beats:
                await connection.send(
                    (BeatAnswer(now_us=now_us, number=message.number, peers=self.peers, kept=self.kept),)
                )


@asynccontextmanager
async def an_executor(
    registry: HandlerRegistry,
    nodes: Sequence[ScriptedNode],
    *,
    known: int | None = None,
    clock: Clock | None = None,
    settings: ExecutorSettings | None = None,
) -> AsyncIterator[Executor]:
    """Run an executor that reaches these nodes, each at its own id, and was told of the first `known` of them."""
    by_address = {node.node_id: node for node in nodes}
    executor = Executor(registry, clock=clock or SystemClock(), settings=settings, chance=lambda: 0.5)

    async def dial(address: str) -> Connection:
        return await by_address[address].dial()

    running = asyncio.create_task(executor.run(dial, [node.node_id for node in nodes[:known]]))
    greeted = asyncio.create_task(nodes[0].until(lambda: nodes[0].hellos))
    try:
        await asyncio.wait((running, greeted), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
        yield executor
    finally:
        running.cancel()
        greeted.cancel()
        ends = await asyncio.gather(running, return_exceptions=True)
    if isinstance(ends[0], Exception):
        raise ends[0]
