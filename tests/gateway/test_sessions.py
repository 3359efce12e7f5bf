"""The door of the gateway: who comes in, who is told to leave, and what one executor can do to the others."""

import asyncio
from collections.abc import Sequence

import pytest

from luciole import limits
from luciole.errors import InvalidValue, StoreUnavailable, Unavailable
from luciole.gateway.session import Session
from luciole.limits import MS_US, SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.job import JobSpec
from luciole.model.outbox import AttemptOutcome, Report, Settled, Settlement
from luciole.store.memory import MemoryStore
from luciole.store.spi import Store
from luciole.testing import FakeClock
from luciole.wire.connection import Connection
from luciole.wire.messages import (
    Beat,
    BeatAnswer,
    Confirm,
    Deliver,
    Demand,
    Grant,
    Hello,
    Message,
    Refuse,
    Reports,
    SharedPayloads,
    Verdict,
    Welcome,
)
from tests.engine.scripted import ScriptedExecutor, SmallCluster, linger
from tests.executor.scripted import an_attempt

E1, E2 = "1" * 16, "2" * 16


class Wire:
    """An executor's end of a connection, played by the test; `bad` handlers can't be put on the wire."""

    def __init__(self, incoming: Sequence[Message], bad: str = "") -> None:
        self.incoming = [tuple(incoming)]
        self.sent: list[Message] = []
        self.bad = bad
        self.closed = False

    async def send(self, frame: Sequence[Message]) -> None:
        for message in frame:
            if isinstance(message, Deliver) and any(one.handler == self.bad for one in message.attempts):
                raise InvalidValue("this can't be encoded")
        self.sent += frame

    async def receive(self) -> Sequence[Message]:
        if self.incoming:
            return self.incoming.pop(0)
        raise Unavailable("the connection broke")

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("hello", "code"),
    [
        (Hello(executor_id=E1, handlers=(), slots=1, token="wrong"), "authentication_failed"),
        (Hello(executor_id=E1, handlers=(), slots=1), "authentication_failed"),
        (
            Hello(executor_id=E1, handlers=(), slots=1, token="right", protocol_min=9, protocol_max=9),
            "protocol_mismatch",
        ),
        (Grant(credits=1), "rejected"),
        (Hello(executor_id=E1, handlers=(), slots=1, token="right"), None),
    ],
)
async def test_an_executor_is_refused_with_the_reason_or_welcomed(hello: Message, code: str | None) -> None:
    cluster = SmallCluster()
    node = await cluster.start(token="right")
    wire = Wire([hello])
    await node.sessions.serve(wire)
    await cluster.stop()
    assert wire.closed
    if code is None:
        assert isinstance(wire.sent[0], Welcome)
    else:
        (refusal,) = wire.sent
        assert isinstance(refusal, Refuse)
        assert refusal.code == code


async def test_who_does_not_introduce_himself_is_shown_the_door() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    link = await node.connect()
    await cluster.clock.advance(limits.HELLO_WAIT_US)
    assert await link.receive() == ()
    await cluster.stop()


async def test_one_delivery_that_cannot_be_encoded_fails_alone() -> None:
    # I7: one bad row never blocks its batch.
    cluster = SmallCluster()
    node = await cluster.start()
    keys = [await cluster.enqueue(JobSpec(handler="good")) for _ in range(5)]
    bad = await cluster.enqueue(JobSpec(handler="bad"))
    keys += [await cluster.enqueue(JobSpec(handler="good")) for _ in range(5)]
    wire = Wire([], bad="bad")
    node.gateway.dispatcher.running = False
    link = await node.connect()
    hello = Hello(executor_id=E1, handlers=("good", "bad"), slots=100)
    await link.send((hello, Grant(credits=100)))
    await cluster.clock.settle()
    session = node.sessions.by_executor[E1]
    session.connection = wire
    node.gateway.dispatcher.running = True
    node.loops.poke("deliver")
    await cluster.clock.advance(1 * SECOND_US)
    sent = {one.key for message in wire.sent if isinstance(message, Deliver) for one in message.attempts}
    view = await cluster.view(bad)
    await cluster.stop()
    assert sent == set(keys)
    assert view.state is ExecutionState.FAILED
    assert "can't be sent" in (view.error or "")


class SlowWire(Wire):
    """A connection that lets one frame pass at a time, when the test says so."""

    def __init__(self, inner: Connection) -> None:
        super().__init__([])
        self.inner = inner
        self.frames: list[Sequence[Message]] = []
        self.gate = asyncio.Semaphore(0)

    async def receive(self) -> Sequence[Message]:
        return await self.inner.receive()

    async def send(self, frame: Sequence[Message]) -> None:
        self.frames.append(frame)
        await self.gate.acquire()


async def test_on_a_slow_line_heartbeats_are_answered_before_payloads_and_what_is_not_sent_is_not_missed() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    for number in range(8):
        await cluster.enqueue(JobSpec(handler="good", payload=bytes([number]) * 600_000))
    node.gateway.dispatcher.running = False
    link = await node.connect()
    await link.send((Hello(executor_id=E1, handlers=("good",), slots=100), Grant(credits=100)))
    await cluster.clock.settle()
    session = node.sessions.by_executor[E1]
    session.connection = wire = SlowWire(session.connection)
    node.gateway.dispatcher.running = True
    node.loops.poke("deliver")
    for number in (1, 2, 3):
        await cluster.clock.advance(2 * SECOND_US)
        await link.send((Beat(held=(), number=number),))
    await cluster.clock.settle()
    orphans = node.gateway.flights.orphans
    wire.gate.release()
    await cluster.clock.settle()
    first, second = wire.frames
    for _ in range(100):
        wire.gate.release()
    await cluster.stop()
    assert orphans == 0
    assert sum(len(message.attempts) for message in first if isinstance(message, Deliver)) == 1
    assert [message.number for message in second if isinstance(message, BeatAnswer)] == [1, 2, 3]
    assert len(second) == 3


def test_payloads_that_are_equal_become_one_and_others_stay_what_they_are() -> None:
    """Goal: equal payloads travel once. Method: equal ones, one that only begins like them, and small ones."""
    shared = SharedPayloads()
    first, again, other = (bytes(bytearray(10_000)), bytes(bytearray(10_000)), bytes(9_999) + b"x")
    found = [shared.of(each) for each in (first, again, other, b"{}")]
    assert found == [first, first, other, b"{}"]
    assert found[1] is first
    assert Deliver(attempts=tuple(an_attempt("good", payload) for payload in found)).payload_bytes == 20_002


class BreakingWire:
    """A connection that breaks with an error nobody foresaw while a delivery is written."""

    def __init__(self, inner: Connection) -> None:
        self._inner = inner

    async def send(self, frame: Sequence[Message]) -> None:
        if any(isinstance(message, Deliver) for message in frame):
            raise RuntimeError("the batch failed")
        await self._inner.send(frame)

    async def receive(self) -> Sequence[Message]:
        return await self._inner.receive()

    async def close(self) -> None:
        await self._inner.close()


async def test_a_connection_that_breaks_under_a_delivery_is_no_fault_of_the_execution() -> None:
    """I5: an executor was killed while a frame was written to it: what was in it runs elsewhere, and has not failed."""
    cluster = SmallCluster()
    node = await cluster.start()
    await ScriptedExecutor(cluster.clock, E1).join(node)
    await cluster.clock.settle()
    (session,) = node.sessions.all()
    session.connection = BreakingWire(session.connection)
    key = await cluster.enqueue()
    await cluster.clock.advance(1 * SECOND_US)
    broken = (await cluster.view(key)).state
    await ScriptedExecutor(cluster.clock, E2).join(node)
    await cluster.clock.advance(20 * SECOND_US)
    view = await cluster.view(key)
    await cluster.stop()
    assert not broken.terminal
    assert view.state is ExecutionState.SUCCEEDED


async def test_a_result_over_the_limit_is_a_failure_with_its_size_and_the_rest_of_the_batch_is_kept() -> None:
    # I8: nothing that a handler returns leaves its run open.
    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    link = await executor.join(node)
    keys = [await cluster.enqueue() for _ in range(3)]
    await cluster.clock.settle()
    now_us = cluster.clock.now_us()
    sizes = [10, limits.RESULT_BYTES_MAX + 1, limits.RESULT_BYTES_MAX]
    reports = [
        Report(key, 1, AttemptOutcome.SUCCEEDED, now_us, now_us, result=b"\x00" * size)
        for key, size in zip(keys, sizes, strict=True)
    ]
    await link.send((Reports(reports=tuple(reports)),))
    await cluster.clock.settle()
    views = [await cluster.view(key) for key in keys]
    await cluster.stop()
    assert [view.state for view in views] == [
        ExecutionState.SUCCEEDED,
        ExecutionState.FAILED,
        ExecutionState.SUCCEEDED,
    ]
    assert f"{limits.RESULT_BYTES_MAX + 1} bytes" in (views[1].error or "")
    assert [verdict for _, _, verdict in executor.verdicts] == [Verdict.DURABLE, Verdict.INVALID, Verdict.DURABLE]


class Picky(MemoryStore):
    """Takes no settlement with this result, however it is wrapped; may be down."""

    poison = b"poison"
    down = False
    surprise = False

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        if self.down:
            raise StoreUnavailable("down")
        if any(one.result == self.poison for one in settlements):
            raise RuntimeError("a surprise") if self.surprise else InvalidValue("result: not this one")
        return await super().settle(settlements)


@pytest.mark.parametrize("surprise", [False, True])
async def test_an_outcome_that_the_store_cannot_take_becomes_a_failure_and_blocks_nobody(*, surprise: bool) -> None:
    cluster = SmallCluster()
    await cluster.reader.open()

    def picky(store: MemoryStore) -> Store:
        chosen = Picky(cluster.state, cluster.clock, shards=cluster.shards)
        chosen.surprise = surprise
        chosen._is_open = True  # noqa: SLF001 - as the one that it stands for
        del store
        return chosen

    node = await cluster.start(store=picky)
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    link = await executor.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    keys = [await cluster.enqueue() for _ in range(9)]
    await cluster.clock.advance(1 * SECOND_US)
    now_us = cluster.clock.now_us()
    reports = [
        Report(key, 1, AttemptOutcome.SUCCEEDED, now_us, now_us, result=b"poison" if number == 4 else b"1")
        for number, key in enumerate(keys)
    ]
    await link.send((Reports(reports=tuple(reports)),))
    await cluster.clock.advance(1 * SECOND_US)
    states = [(await cluster.view(key)).state for key in keys]
    await cluster.stop()
    assert states == [ExecutionState.FAILED if number == 4 else ExecutionState.SUCCEEDED for number in range(9)]
    assert {key: verdict for key, _, verdict in executor.verdicts}[keys[4]] is Verdict.INVALID


async def test_nothing_is_confirmed_before_it_is_durable() -> None:
    # I9: Method: the store is down while reports come; then it is back.
    cluster = SmallCluster()
    await cluster.reader.open()
    stores: list[Picky] = []

    def picky(store: MemoryStore) -> Store:
        stores.append(Picky(cluster.state, cluster.clock, shards=cluster.shards))
        stores[0]._is_open = True  # noqa: SLF001 - as the one that it stands for
        del store
        return stores[0]

    node = await cluster.start(store=picky)
    executor = ScriptedExecutor(cluster.clock, E1)
    await executor.join(node)
    stores[0].down = True
    key = await cluster.enqueue()
    await cluster.clock.advance(5 * SECOND_US)
    assert [key for key, _, _ in executor.starts] == [key]
    assert executor.verdicts == []
    stores[0].down = False
    await cluster.clock.advance(3 * SECOND_US)
    await cluster.stop()
    assert executor.verdicts == [(key, 1, Verdict.DURABLE)]


async def test_the_same_report_again_is_confirmed_and_changes_nothing() -> None:
    # I5: from another session, as after a broken one.
    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    await executor.join(node)
    key = await cluster.enqueue()
    await cluster.clock.advance(1 * SECOND_US)
    await executor.finish(key)
    await cluster.clock.advance(100 * MS_US)
    before = await cluster.view(key)
    now_us = before.finished_us or 0
    again = Report(key, 1, AttemptOutcome.SUCCEEDED, now_us, now_us, result=b"1")
    other = await node.connect()
    await other.send((Hello(executor_id=E2, handlers=(), slots=1), Reports(reports=(again,))))
    await cluster.clock.settle()
    heard = [message for _ in range(2) for message in await other.receive()]
    after = await cluster.view(key)
    await cluster.stop()
    assert Confirm(verdicts=((key, 1, Verdict.DURABLE),)) in heard
    assert after == before


async def test_credits_asked_back_are_answered_with_what_was_unused() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    link = await node.connect()
    await link.send((Hello(executor_id=E1, handlers=("report",), slots=10), Grant(credits=10), Grant(credits=-4)))
    await cluster.clock.settle()
    await link.send((Grant(credits=-9),))
    await cluster.clock.settle()
    heard: list[Message] = []
    while not [message for message in heard if isinstance(message, Demand) and message.unused == 6]:
        heard += await link.receive()
    session = node.sessions.by_executor[E1]
    await cluster.stop()
    assert [message.unused for message in heard if isinstance(message, Demand)] == [4, 6]
    assert session.credits == 0


async def test_a_session_without_credits_hears_how_much_waits_for_it() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    link = await node.connect()
    await link.send((Hello(executor_id=E1, handlers=("report",), slots=10),))
    for _ in range(3):
        await cluster.enqueue()
    await cluster.enqueue(JobSpec(handler="of somebody else"))
    await cluster.clock.advance(1 * SECOND_US)
    heard: list[Message] = []
    while not heard or not isinstance(heard[-1], Demand):
        heard += await link.receive()
    await cluster.stop()
    assert heard[-1] == Demand(waiting=3)


async def test_two_executors_share_the_work() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    first, second = (ScriptedExecutor(cluster.clock, name, script=linger, slots=10) for name in (E1, E2))
    for _ in range(12):
        await cluster.enqueue()
    node.gateway.dispatcher.running = False
    await first.join(node)
    await second.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    node.gateway.dispatcher.running = True
    node.loops.poke("deliver")
    await cluster.clock.settle()
    await cluster.stop()
    assert (len(first.starts), len(second.starts)) == (6, 6)


async def test_only_executors_with_the_labels_are_given_the_work() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    plain = ScriptedExecutor(cluster.clock, E1)
    special = ScriptedExecutor(cluster.clock, E2, labels=(("gpu", "yes"), ("zone", "eu")))
    await plain.join(node)
    await special.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    by_job = await cluster.enqueue(JobSpec(handler="report", labels=(("gpu", "yes"),)))
    by_request = await cluster.enqueue(JobSpec(handler="report"), labels=(("zone", "eu"),))
    await cluster.clock.advance(1 * SECOND_US)
    await cluster.stop()
    assert plain.starts == []
    assert {key for key, _, _ in special.starts} == {by_job, by_request}


async def test_executors_hear_of_a_new_node_with_the_heartbeat_that_found_it() -> None:
    """Goal: executors know the next node before the last one that they knew is gone.

    Method: a second node joins; the first one's next heartbeat comes long before the executor's.
    """
    cluster = SmallCluster()
    first = await cluster.start(listen="127.0.0.1:7701")
    executor = ScriptedExecutor(cluster.clock, E1)
    await executor.join(first)
    await cluster.clock.settle()
    executor.mute = True  # No heartbeat of its own has an answer that could tell it.
    executor.heard.clear()
    await cluster.start(listen="127.0.0.1:7702")
    await cluster.clock.advance(2 * first.engine.membership.beat_pause_us)
    told = [message.peers for message in executor.heard if isinstance(message, BeatAnswer)]
    assert told == [("127.0.0.1:7702",)]
    await cluster.stop()


async def test_a_session_begins_with_its_welcome_whatever_else_is_urgent() -> None:
    wire = Wire([])
    session = Session(wire, Hello(executor_id=E1, handlers=(), slots=1), FakeClock())
    session.push(Welcome(protocol=1, node_id=E2, now_us=0, session_ttl_us=SECOND_US))
    session.push(Demand(waiting=1))
    session.push(BeatAnswer(now_us=0, peers=("127.0.0.1:7702",)))
    session.close()
    await session.write(lambda *_: None)
    assert [type(message) for message in wire.sent] == [Welcome, BeatAnswer, Demand]
