"""One executor and several nodes: who is dialled, who gets credits, and who hears what when a node is lost."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from luciole import limits
from luciole.errors import AuthenticationFailed
from luciole.executor.context import current
from luciole.executor.executor import Executor, ExecutorSettings
from luciole.executor.registry import HandlerRegistry
from luciole.gateway.local import LocalConnection, local_pair
from luciole.limits import PEER_KEPT_US, SECOND_US, SESSION_BEATS
from luciole.model.outbox import AttemptOutcome
from luciole.settings import Settings
from luciole.testing.clock import FakeClock
from luciole.wire.connection import Connection
from luciole.wire.messages import Beat, BeatAnswer, Demand, Drain, Grant, Message, Refuse, Reports
from tests.executor.scripted import ScriptedNode, a_key, an_attempt, an_executor

A, B, C = "a" * 16, "b" * 16, "c" * 16
SETTINGS = ExecutorSettings(slots=12, own_loop=False)


class Gate:
    """A handler that runs until it is let go, and what became of it."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.started: list[int] = []
        self.cancelled: list[int] = []

    async def handler(self) -> str:
        attempt = current().attempt
        self.started.append(attempt)
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.append(attempt)
            raise
        return "done"

    def registry(self) -> HandlerRegistry:
        registry = HandlerRegistry()
        registry.add("gate", self.handler)
        return registry


async def settled(clock: FakeClock, wanted: Callable[[], object]) -> None:
    await clock.settle()
    assert wanted()


async def test_credits_are_shared_and_their_sum_never_exceeds_the_slots() -> None:
    clock = FakeClock()
    gate = Gate()
    nodes = [ScriptedNode(clock, node_id) for node_id in (A, B, C)]
    async with an_executor(gate.registry(), nodes, clock=clock, settings=SETTINGS):
        await clock.settle()
        assert [node.credits for node in nodes] == [4, 4, 4]
        await nodes[0].deliver(*(an_attempt("gate", number=number) for number in range(4)))
        await nodes[0].send(Demand(waiting=100))
        await clock.settle()
        assert [node.credits for node in nodes] == [6, 1, 1]
        gate.release.set()
        await clock.settle()
        assert sum(node.credits for node in nodes) == 12
    assert len(gate.started) == 4


async def test_what_is_delivered_beyond_the_credits_is_handed_back() -> None:
    """Fault 30: an executor holds only what it has slots for."""
    clock = FakeClock()
    gate = Gate()
    node = ScriptedNode(clock)
    async with an_executor(gate.registry(), [node], clock=clock, settings=SETTINGS) as executor:
        await clock.settle()
        await node.deliver(*(an_attempt("gate", number=number) for number in range(8_000)))
        await clock.settle()
        assert executor.gauges()["busy"] == 12
        await node.until(lambda: len(node.reports) == 8_000 - 12)
        assert {(report.outcome, report.started_us) for report in node.reports} == {(AttemptOutcome.RETURNED, None)}
        gate.release.set()
        await clock.settle()
    assert len(gate.started) == 12


async def test_a_peer_that_nobody_tells_of_any_more_is_forgotten_after_a_while() -> None:
    clock = FakeClock()
    nodes = [ScriptedNode(clock, node_id) for node_id in (A, B)]
    nodes[0].peers = (B,)
    async with an_executor(Gate().registry(), nodes, known=1, clock=clock, settings=SETTINGS) as executor:
        await clock.settle()
        assert executor.gauges()["sessions"] == 2
        nodes[0].peers = ()
        await clock.advance(nodes[0].ttl_us)
        nodes[1].reachable = False
        assert nodes[1].connection is not None
        await nodes[1].connection.close()
        await clock.advance(PEER_KEPT_US + 10 * SECOND_US)
        nodes[1].reachable = True
        await clock.advance(10 * SECOND_US)
        assert executor.gauges()["sessions"] == 1
    assert len(nodes[1].hellos) == 1


async def test_an_executor_that_lost_every_node_finds_the_peers_that_it_was_told_of() -> None:
    """Goal: nodes that come and go at new addresses are found again, as long as one overlapped with the next.

    Method: the node that was given stops for good, while the one that it told of is out of reach for a minute.
    """
    clock = FakeClock()
    nodes = [ScriptedNode(clock, node_id) for node_id in (A, B)]
    nodes[0].peers = (B,)
    async with an_executor(Gate().registry(), nodes, known=1, clock=clock, settings=SETTINGS) as executor:
        await clock.settle()
        nodes[0].peers = ()
        for node in reversed(nodes):
            node.reachable = False
            assert node.connection is not None
            await node.connection.close()
            await clock.advance(nodes[0].ttl_us)
        await clock.advance(60 * SECOND_US)
        assert executor.gauges()["sessions"] == 0
        nodes[1].reachable = True
        await clock.advance(60 * SECOND_US)
        assert executor.gauges()["sessions"] == 1
    assert len(nodes[1].hellos) == 2


async def test_two_addresses_of_one_node_make_one_session() -> None:
    clock = FakeClock()
    node = ScriptedNode(clock)
    executor = Executor(Gate().registry(), clock=clock, settings=SETTINGS, chance=lambda: 0.5)

    async def dial(address: str) -> Connection:
        del address
        return await node.dial()

    running = asyncio.create_task(executor.run(dial, ["localhost:1", "127.0.0.1:1"]))
    await clock.advance(60 * SECOND_US)
    assert executor.gauges()["sessions"] == 1
    hellos = len(node.hellos)
    await clock.advance(60 * SECOND_US)
    assert len(node.hellos) == hellos
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_run_of_a_lost_node_lives_on_when_another_keeps_it() -> None:
    """Two actors: node A delivers and dies; B takes its shard and names the attempt before A's lease is over."""
    clock = FakeClock()
    gate = Gate()
    nodes = [ScriptedNode(clock, node_id) for node_id in (A, B)]
    async with an_executor(gate.registry(), nodes, clock=clock, settings=SETTINGS):
        await clock.settle()
        await nodes[0].deliver(an_attempt("gate"))
        await clock.settle()
        nodes[0].reachable = False
        nodes[1].kept = ((a_key(), 1),)
        assert nodes[0].connection is not None
        await nodes[0].connection.close()
        await settled(clock, lambda: [held.key for beat in nodes[1].beats for held in beat.held] == [a_key()])
        await clock.advance(10 * nodes[0].ttl_us)
        assert gate.cancelled == []
        gate.release.set()
        report = await nodes[1].next_report()
    assert (report.outcome, report.result) == (AttemptOutcome.SUCCEEDED, b'"done"')


@pytest.mark.parametrize("phase", range(8))
async def test_a_run_outlives_its_node_at_whatever_moment_between_two_heartbeats_that_dies(phase: int) -> None:
    """Goal: the default times fit together: a successor is heard before the session of the dead node is over.

    Method: the successor speaks when the dead node's lease has run out and it has had a second and a half for the rest.
    """
    clock = FakeClock()
    gate = Gate()
    defaults = Settings()
    nodes = [ScriptedNode(clock, node_id, ttl_us=defaults.session_ttl_us) for node_id in (A, B)]
    async with an_executor(gate.registry(), nodes, clock=clock, settings=SETTINGS):
        await clock.advance(10 * SECOND_US + phase * defaults.session_ttl_us // SESSION_BEATS // 8)
        await nodes[0].deliver(an_attempt("gate"))
        await clock.settle()
        nodes[0].reachable = False
        assert nodes[0].connection is not None
        await nodes[0].connection.close()
        await clock.advance(defaults.lease_ttl_us + 3 * SECOND_US // 2)
        await nodes[1].send(BeatAnswer(now_us=clock.now_us(), kept=((a_key(), 1),)))
        await clock.advance(10 * defaults.session_ttl_us)
        assert gate.cancelled == []


async def test_a_run_goes_on_when_its_own_node_is_back_in_time() -> None:
    clock = FakeClock()
    gate = Gate()
    node = ScriptedNode(clock)
    async with an_executor(gate.registry(), [node], clock=clock, settings=SETTINGS):
        await clock.settle()
        await node.deliver(an_attempt("gate"))
        await clock.settle()
        assert node.connection is not None
        await node.connection.close()
        await clock.advance(10 * node.ttl_us)
        assert [held.key for held in node.hellos[1].held] == [a_key()]
        assert gate.cancelled == []
        gate.release.set()
        report = await node.next_report()
    assert (report.outcome, gate.started) == (AttemptOutcome.SUCCEEDED, [1])


async def test_a_run_that_nobody_keeps_ends_with_the_lease_of_its_session() -> None:
    """Its node may live behind a cut and may have given it to somebody else."""
    clock = FakeClock()
    gate = Gate()
    nodes = [ScriptedNode(clock, node_id) for node_id in (A, B)]
    async with an_executor(gate.registry(), nodes, clock=clock, settings=SETTINGS):
        await clock.settle()
        await nodes[0].deliver(an_attempt("gate"))
        await clock.settle()
        nodes[0].reachable = False
        assert nodes[0].connection is not None
        await nodes[0].connection.close()
        await clock.advance(nodes[0].ttl_us - 1)
        assert gate.cancelled == []
        await clock.advance(1)
        report = await nodes[1].next_report()
    assert gate.cancelled == [1]
    assert (report.outcome, report.retryable) == (AttemptOutcome.RETURNED, True)
    assert report.started_us is not None


async def test_a_node_that_answers_no_heartbeat_is_left_when_the_lease_is_over() -> None:
    clock = FakeClock()
    gate = Gate()
    node = ScriptedNode(clock)
    async with an_executor(gate.registry(), [node], clock=clock, settings=SETTINGS) as executor:
        await clock.settle()
        await node.deliver(an_attempt("gate"))
        node.answers_beats = False
        node.reachable = False
        await clock.advance(node.ttl_us - 1)
        assert executor.gauges()["sessions"] == 1
        await clock.advance(1)
        await settled(clock, lambda: gate.cancelled == [1])
        assert executor.gauges() | {"slots": 0} == {
            "slots": 0, "busy": 0, "stuck": 0, "unconfirmed": 1, "sessions": 0
        }  # fmt: skip


async def test_the_lease_runs_from_the_heartbeat_that_was_answered_not_from_its_answer() -> None:
    """The node counts from when it heard; whoever counts from later would run on when the node has given up."""
    clock = FakeClock()
    node = ScriptedNode(clock)
    async with an_executor(Gate().registry(), [node], clock=clock, settings=SETTINGS) as executor:
        await clock.settle()
        node.answers_beats = False
        await clock.advance(node.ttl_us // SESSION_BEATS)
        (beat,) = node.beats
        await clock.advance(node.ttl_us // SESSION_BEATS)
        await node.answer(beat)  # So late that the answer says little.
        node.reachable = False
        await clock.advance(node.ttl_us * (SESSION_BEATS - 1) // SESSION_BEATS - 1)
        assert executor.gauges()["sessions"] == 1
        await clock.advance(1)
        assert executor.gauges()["sessions"] == 0


class SlowLine:
    """The executor's end of a connection on which a frame is under way until the test lets it arrive."""

    def __init__(self, inner: Connection) -> None:
        self.inner = inner
        self.frames: list[Sequence[Message]] = []
        self.gate = asyncio.Semaphore(2)  # The introduction, and the first credits.

    async def send(self, frame: Sequence[Message]) -> None:
        self.frames.append(frame)
        await self.gate.acquire()
        await self.inner.send(frame)

    async def receive(self) -> Sequence[Message]:
        return await self.inner.receive()

    async def close(self) -> None:
        await self.inner.close()


class FarNode(ScriptedNode):
    """A node behind a slow line."""

    async def dial(self) -> Connection:
        self.line = SlowLine(await super().dial())
        return self.line


async def test_a_heartbeat_waits_for_one_frame_at_most_however_many_results_are_to_be_sent() -> None:
    """Goal: large results on a slow line don't end the session. Method: ten wait behind one frame, then a heartbeat."""
    clock = FakeClock()
    registry = HandlerRegistry()

    async def large() -> str:
        return "x" * 100_000

    registry.add("large", large)
    node = FarNode(clock)
    async with an_executor(registry, [node], clock=clock, settings=SETTINGS) as executor:
        await clock.settle()
        await node.deliver(*(an_attempt("large", number=number) for number in range(10)))
        await settled(clock, lambda: executor.gauges()["unconfirmed"] == 10)
        under_way = len(node.line.frames)
        await clock.advance(node.ttl_us // SESSION_BEATS)
        for _ in range(20):
            node.line.gate.release()
            await clock.settle()
        reports = [one for frame in node.line.frames for one in frame if isinstance(one, Reports)]
    assert [type(message) for message in node.line.frames[under_way]] == [Beat]
    assert max(sum(len(one.result or b"") for one in each.reports) for each in reports) <= limits.SEND_BYTES_MAX
    assert sum(len(each.reports) for each in reports) == 10


async def test_an_answer_to_no_heartbeat_renews_nothing() -> None:
    clock = FakeClock()
    node = ScriptedNode(clock)
    async with an_executor(Gate().registry(), [node], clock=clock, settings=SETTINGS) as executor:
        await clock.settle()
        node.answers_beats = False
        node.reachable = False
        for _ in range(3):
            await clock.advance(node.ttl_us // 3 - 1)
            await node.answer(Beat(held=()))
        await clock.advance(3)
        assert executor.gauges()["sessions"] == 0


async def test_reports_are_kept_until_confirmed_and_given_to_another_node() -> None:
    """I9 at the executor: it forgets an outcome only when a node says that it is durable."""
    clock = FakeClock()
    gate = Gate()
    gate.release.set()
    nodes = [ScriptedNode(clock, node_id) for node_id in (A, B)]
    nodes[0].confirms = nodes[1].confirms = False
    async with an_executor(gate.registry(), nodes, clock=clock, settings=SETTINGS) as executor:
        await clock.settle()
        await nodes[0].deliver(an_attempt("gate"))
        report = await nodes[0].next_report()
        nodes[0].reachable = False
        assert nodes[0].connection is not None
        await nodes[0].connection.close()
        assert await nodes[1].next_report() == report
        assert executor.gauges()["unconfirmed"] == 1
        await clock.advance(2 * nodes[1].ttl_us)
        assert await nodes[1].next_report() == report  # Nothing was heard of it: once more.
        assert [held.key for held in nodes[1].beats[-1].held] == [a_key()]
        await nodes[1].confirm(report)
        await clock.settle()
        assert executor.gauges()["unconfirmed"] == 0
        await clock.advance(2 * nodes[1].ttl_us)
        assert nodes[1].reports == []


async def test_a_report_of_a_stale_attempt_is_forgotten() -> None:
    clock = FakeClock()
    gate = Gate()
    gate.release.set()
    node = ScriptedNode(clock)
    node.confirms = False
    async with an_executor(gate.registry(), [node], clock=clock, settings=SETTINGS) as executor:
        await clock.settle()
        await node.run(an_attempt("gate"))
        await node.cancel(reason="stale")
        await clock.settle()
        assert executor.gauges()["unconfirmed"] == 0


async def test_a_node_that_drains_gets_no_more_credits_but_hears_the_reports() -> None:
    clock = FakeClock()
    gate = Gate()
    nodes = [ScriptedNode(clock, node_id) for node_id in (A, B)]
    async with an_executor(gate.registry(), nodes, clock=clock, settings=SETTINGS):
        await clock.settle()
        await nodes[0].deliver(an_attempt("gate"))
        await nodes[0].send(Drain(grace_us=SECOND_US))
        await nodes[1].send(Demand(waiting=100))
        await clock.settle()
        assert [node.credits for node in nodes] == [0, 11]  # The twelfth slot is busy.
        gate.release.set()
        await clock.settle()
        assert [node.credits for node in nodes] == [0, 12]
        assert [report.key for report in nodes[0].reports] == [a_key()]


async def test_a_node_that_is_told_of_between_two_heartbeats_is_dialled_at_once() -> None:
    """Who told of it may be gone before the next heartbeat."""
    clock = FakeClock()
    nodes = [ScriptedNode(clock, node_id) for node_id in (A, B)]
    async with an_executor(Gate().registry(), nodes, known=1, clock=clock, settings=SETTINGS) as executor:
        await clock.settle()
        assert executor.gauges()["sessions"] == 1
        await nodes[0].send(BeatAnswer(now_us=clock.now_us(), peers=(B,)))
        await clock.settle()
        assert executor.gauges()["sessions"] == 2


async def test_an_executor_that_every_node_refuses_ends_with_the_reason() -> None:
    clock = FakeClock()
    executor = Executor(Gate().registry(), clock=clock, settings=SETTINGS, chance=lambda: 0.5)

    async def dial(address: str) -> LocalConnection:
        del address
        ours, theirs = local_pair()
        await ours.send((Refuse(code="authentication_failed", message="token: it is wrong"),))
        return theirs

    with pytest.raises(AuthenticationFailed, match="token: it is wrong"):
        await executor.run(dial, [A, B])


async def test_grants_are_never_sent_for_more_than_the_slots() -> None:
    clock = FakeClock()
    gate = Gate()
    gate.release.set()
    node = ScriptedNode(clock)
    async with an_executor(gate.registry(), [node], clock=clock, settings=SETTINGS):
        await clock.settle()
        for number in range(50):
            await node.run(an_attempt("gate", number=number))
        await clock.settle()
        grants = [message.credits for message in node.seen if isinstance(message, Grant)]
        assert node.credits == 12
    assert sum(grants) == 12 + 50
