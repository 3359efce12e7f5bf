"""Runs: whatever a handler does, its execution's state moves on, with a text that says why."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from luciole import limits
from luciole.executor.context import current
from luciole.executor.executor import ExecutorSettings
from luciole.executor.registry import HandlerRegistry
from luciole.model.ids import ExecutionKey
from luciole.model.job import RunIn
from luciole.model.outbox import AttemptOutcome
from luciole.runtime.clock import SystemClock
from luciole.testing.clock import FakeClock
from luciole.wire.messages import Acknowledge, Delivered
from tests.executor import user_code
from tests.executor.scripted import ScriptedNode, a_key, an_attempt, an_executor

PLACES = [RunIn.ASYNC, RunIn.THREAD, RunIn.PROCESS]


def a_registry() -> HandlerRegistry:
    registry = HandlerRegistry()
    registry.add("receipt", user_code.receipt)
    registry.add("receipt-async", user_code.receipt_async)
    registry.add("odd", user_code.odd)
    registry.add("odd-async", user_code.odd_async)
    for function in (user_code.dies, user_code.spins, user_code.pid, user_code.asks, user_code.prints):
        registry.add(function.__name__, function)
    return registry


def in_place(handler: str, place: RunIn, payload: bytes, content_type: str = "application/json") -> Delivered:
    name = f"{handler}-async" if place is RunIn.ASYNC else handler
    return an_attempt(name, payload, run_in=place, content_type=content_type)


def acknowledged(node: ScriptedNode) -> list[tuple[ExecutionKey, int]]:
    return [token for message in node.seen if isinstance(message, Acknowledge) for token in message.attempts]


@pytest.fixture
async def node() -> AsyncIterator[ScriptedNode]:
    scripted = ScriptedNode(SystemClock())
    settings = ExecutorSettings(slots=8, processes=2)
    async with an_executor(a_registry(), [scripted], settings=settings):
        yield scripted


@pytest.mark.parametrize("place", PLACES)
async def test_a_handler_gets_typed_arguments_and_its_result_is_json(node: ScriptedNode, place: RunIn) -> None:
    report = await node.run(in_place("receipt", place, b'{"order_id":7,"note":"hi"}'))
    assert (report.outcome, report.error) == (AttemptOutcome.SUCCEEDED, None)
    assert (report.result, report.result_type) == (b'{"order_id":7,"note":"hi"}', "application/json")
    assert report.started_us is not None
    assert a_key().fire_us <= report.started_us <= report.finished_us


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("payload", "content_type", "seen"),
    [
        (b'{"order_id":"7"}', "application/json", "Expected `int`, got `str`"),
        (b"{}", "application/json", "missing required field `order_id`"),
        (b"\xff\x00", "application/json", "does not fit"),
        (b"", "application/x-pickle", "application/x-pickle"),
    ],
)
async def test_wrong_arguments_fail_at_once_and_for_good(
    node: ScriptedNode, place: RunIn, payload: bytes, content_type: str, seen: str
) -> None:
    report = await node.run(in_place("receipt", place, payload, content_type))
    assert (report.outcome, report.retryable) == (AttemptOutcome.FAILED, False)
    assert report.error is not None
    assert report.error.startswith("invalid_payload: ")
    assert seen in report.error


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("kind", "retryable", "seen"),
    [
        ("nan", False, "NaN and infinity have no JSON form"),
        ("surrogate", False, "has no JSON form"),
        ("object", False, "has no JSON form"),
        ("cycle", False, "has no JSON form"),
        ("huge", False, "payload_too_large: "),
        ("exit", True, "SystemExit: 3"),
        ("raise", True, "ValueError: boom \\x00 \\ud800 xxx"),
        ("later", True, "RetryLater: come back"),
        ("stop", False, "Stop: never again"),
    ],
)
async def test_what_breaks_others_is_a_recorded_failure(
    node: ScriptedNode, place: RunIn, kind: str, seen: str, *, retryable: bool
) -> None:
    """Fault 24: no result and no exception, however odd, leaves an execution running for ever."""
    report = await node.run(in_place("odd", place, b'{"kind":"%s"}' % kind.encode()))
    assert (report.outcome, report.retryable, report.result) == (AttemptOutcome.FAILED, retryable, None)
    assert report.retry_after_us == (90_000_000 if kind == "later" else None)
    assert report.error is not None
    assert seen in report.error
    report.error.encode()
    assert "\x00" not in report.error
    assert len(report.error) <= limits.ERROR_TEXT_LENGTH_MAX


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("kind", "result"), [("big", b"1180591620717411303424"), ("nul", b'"a\\u0000b"')])
async def test_what_json_can_say_is_kept(node: ScriptedNode, place: RunIn, kind: str, result: bytes) -> None:
    report = await node.run(in_place("odd", place, b'{"kind":"%s"}' % kind.encode()))
    assert (report.outcome, report.result) == (AttemptOutcome.SUCCEEDED, result)


async def test_no_start_is_told_from_before_the_due_time() -> None:
    """I11: a node delivers what is due, so that an earlier start would be this host's clock being behind."""
    clock = FakeClock()
    node = ScriptedNode(clock)
    due_us = clock.now_us() + 250_000
    settings = ExecutorSettings(own_loop=False)
    async with an_executor(a_registry(), [node], clock=clock, settings=settings):
        report = await node.run(an_attempt("receipt-async", b'{"order_id":1}', fire_us=due_us, due_us=due_us))
    assert report.started_us == due_us
    assert report.finished_us >= due_us


async def test_a_failure_says_what_was_raised_and_where() -> None:
    async def handler() -> None:
        raise LookupError("no such order")

    registry = HandlerRegistry()
    registry.add("h", handler)
    node = ScriptedNode(SystemClock())
    async with an_executor(registry, [node]):
        report = await node.run(an_attempt("h"))
    assert report.error is not None
    lines = report.error.splitlines()
    assert lines[0] == "LookupError: no such order"
    assert 'raise LookupError("no such order")' in lines[-1]


async def test_failures_are_logged_with_where_they_happened_and_a_storm_of_them_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler() -> None:
        raise LookupError("no such order")

    registry = HandlerRegistry()
    registry.add("h", handler)
    clock = FakeClock()
    node = ScriptedNode(clock)
    storm = limits.FAILURES_LOGGED_MAX + 3
    async with an_executor(registry, [node], clock=clock, settings=ExecutorSettings(slots=storm + 1)):
        for number in range(storm):
            await node.run(an_attempt("h", number=number))
        logged = [record.getMessage() for record in caplog.records if record.name == "luciole.executor.failures"]
        assert len(logged) == limits.FAILURES_LOGGED_MAX
        assert logged[0].startswith(f"h, attempt 1 of {a_key(0).text()}: LookupError: no such order\n  File ")
        await clock.advance(limits.FAILURES_WINDOW_US)
        await node.run(an_attempt("h", number=storm))
    assert "3 more attempts went wrong" in caplog.text


async def test_an_unknown_handler_is_said_and_the_rest_of_its_batch_runs(node: ScriptedNode) -> None:
    """Fault 31: what is wrong with one of a batch does not keep the others."""
    await node.until(lambda: node.credits >= 3)
    await node.deliver(
        an_attempt("receipt-async", b'{"order_id":1}', number=1),
        an_attempt("nobody", number=2),
        an_attempt("receipt-async", b'{"order_id":3}', number=3),
    )
    await node.until(lambda: len(node.reports) == 3)
    outcomes = {report.key: report.outcome for report in node.reports}
    assert outcomes == {
        a_key(1): AttemptOutcome.SUCCEEDED,
        a_key(2): AttemptOutcome.UNKNOWN_HANDLER,
        a_key(3): AttemptOutcome.SUCCEEDED,
    }


async def test_every_attempt_is_acknowledged(node: ScriptedNode) -> None:
    await node.run(an_attempt("receipt-async", b'{"order_id":1}'))
    assert acknowledged(node) == [(a_key(), 1)]


async def test_one_token_runs_once_however_often_it_comes() -> None:
    calls: list[int] = []
    started = asyncio.Event()
    gate = asyncio.Event()

    async def handler() -> int:
        calls.append(current().attempt)
        started.set()
        await gate.wait()
        return len(calls)

    registry = HandlerRegistry()
    registry.add("h", handler)
    node = ScriptedNode(SystemClock())
    async with an_executor(registry, [node], settings=ExecutorSettings(own_loop=False)):
        await node.until(lambda: node.credits >= 3)
        await node.deliver(an_attempt("h"), an_attempt("h"))
        await started.wait()
        await node.deliver(an_attempt("h"))
        await node.until(lambda: len(acknowledged(node)) == 3)
        gate.set()
        report = await node.next_report()
        assert report.result == b"1"
        assert (await node.run(an_attempt("h", attempt=2))).result == b"2"
    assert calls == [1, 2]


async def test_a_newer_token_takes_the_place_of_an_older_one() -> None:
    """The older one was given up by its node: it is cancelled and nobody hears of it."""
    ended: list[int] = []
    started = threading.Event()

    async def handler() -> int:
        attempt = current().attempt
        if attempt == 1:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(attempt)
        return attempt

    registry = HandlerRegistry()
    registry.add("h", handler)
    node = ScriptedNode(SystemClock())
    async with an_executor(registry, [node], settings=ExecutorSettings(slots=2)):
        await node.until(lambda: node.credits == 2)
        await node.deliver(an_attempt("h", attempt=1))
        await asyncio.to_thread(started.wait)
        await node.deliver(an_attempt("h", attempt=2))
        assert (await node.next_report()).result == b"2"
        await node.until(lambda: node.credits == 2)
        assert ended == [1]
    assert node.reports == []


async def test_a_blocking_handler_does_not_stop_the_others_heartbeat() -> None:
    """Goal: the sessions live on another thread than the handlers. Method: block their loop, then ask for a beat."""
    release = threading.Event()
    blocked = threading.Event()

    async def handler() -> None:
        blocked.set()
        release.wait()

    registry = HandlerRegistry()
    registry.add("h", handler)
    clock = FakeClock()
    node = ScriptedNode(clock)
    async with an_executor(registry, [node], clock=clock):
        await node.until(lambda: node.credits > 0)
        await node.deliver(an_attempt("h"))
        await asyncio.to_thread(blocked.wait)
        await clock.advance(10 * node.ttl_us)
        assert [held.key for held in node.beats[-1].held] == [a_key()]
        release.set()
        assert (await node.next_report()).outcome is AttemptOutcome.SUCCEEDED
    assert len(node.hellos) == 1


@pytest.mark.parametrize("place", [RunIn.THREAD, RunIn.PROCESS])
async def test_progress_travels_with_the_heartbeat(place: RunIn) -> None:
    clock = FakeClock()
    node = ScriptedNode(clock)
    async with an_executor(a_registry(), [node], clock=clock):
        await node.until(lambda: node.credits > 0)
        await node.deliver(an_attempt("asks", run_in=place))
        while not any(held.progress == "waiting" for beat in node.beats for held in beat.held):
            await clock.advance(node.ttl_us // 3)
        await node.cancel()
        report = await node.next_report()
        assert (report.outcome, report.error) == (AttemptOutcome.CANCELLED, "cancelled")
