"""Timeouts, deadlines, cancellation and draining: every run ends with an outcome, whether its handler obeys or not."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from luciole.executor.context import current
from luciole.executor.executor import Executor, ExecutorSettings
from luciole.executor.registry import HandlerRegistry
from luciole.gateway.server import GatewayServer, ServerSettings
from luciole.limits import CANCEL_GRACE_US, SECOND_US
from luciole.model.job import RunIn
from luciole.model.outbox import AttemptOutcome
from luciole.runtime.clock import SystemClock
from luciole.testing.clock import FakeClock
from luciole.wire.messages import Drain
from tests.executor import user_code
from tests.executor.scripted import PATIENCE_S, ScriptedNode, a_key, an_attempt, an_executor

ROOT = Path(__file__).parent.parent.parent


class Thread:
    """A plain handler that runs until it is let go, whatever it is told."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.release = threading.Event()
        self.told = threading.Event()

    def handler(self) -> str:
        context = current()
        self.started.set()
        while not self.release.wait(0.01):
            if context.cancelled:
                self.told.set()
        return "late"

    async def until_started(self) -> None:
        await asyncio.to_thread(self.started.wait, PATIENCE_S)


def a_registry(**handlers: Callable[..., object]) -> HandlerRegistry:
    registry = HandlerRegistry()
    for name, function in handlers.items():
        registry.add(name, function)
    return registry


@asynccontextmanager
async def running(
    registry: HandlerRegistry, clock: FakeClock, *, slots: int = 2, ttl_us: int = 3_600 * SECOND_US
) -> AsyncIterator[tuple[ScriptedNode, Executor]]:
    node = ScriptedNode(clock, ttl_us=ttl_us)
    settings = ExecutorSettings(slots=slots, processes=1, own_loop=False)
    async with an_executor(registry, [node], clock=clock, settings=settings) as executor:
        await node.until(lambda: node.credits == slots)
        yield node, executor


async def until_one_started(node: ScriptedNode, clock: FakeClock) -> None:
    """Pass time from heartbeat to heartbeat until one says so."""
    while not any(held.started_us for beat in node.beats for held in beat.held):
        await clock.advance(SECOND_US)


async def forever() -> None:
    await asyncio.Event().wait()


async def test_an_async_handler_over_its_timeout_is_cancelled() -> None:
    clock = FakeClock()
    async with running(a_registry(forever=forever), clock) as (node, _):
        await node.deliver(an_attempt("forever", timeout_us=3 * SECOND_US))
        await clock.advance(3 * SECOND_US - 1)
        assert node.reports == []
        await clock.advance(1)
        report = await node.next_report()
    assert (report.outcome, report.retryable) == (AttemptOutcome.TIMED_OUT, True)
    assert report.error == "timed out: the handler ran for longer than its timeout of 3 s"


async def test_a_deadline_ends_a_run_for_good() -> None:
    clock = FakeClock()
    async with running(a_registry(forever=forever), clock) as (node, _):
        await node.deliver(an_attempt("forever", deadline_us=clock.now_us() + SECOND_US))
        await clock.advance(SECOND_US)
        report = await node.next_report()
    assert (report.outcome, report.retryable) == (AttemptOutcome.TIMED_OUT, False)
    assert report.error == "the deadline passed while it ran"


async def test_after_its_deadline_a_handler_is_not_started() -> None:
    clock = FakeClock()
    async with running(a_registry(forever=forever), clock) as (node, _):
        report = await node.run(an_attempt("forever", deadline_us=clock.now_us()))
    assert (report.outcome, report.retryable, report.started_us) == (AttemptOutcome.TIMED_OUT, False, None)


async def test_a_deadline_is_judged_by_the_stores_clock_not_by_the_hosts() -> None:
    clock = FakeClock()
    host = FakeClock(clock.now_us() - 86_400 * SECOND_US)
    node = ScriptedNode(clock)  # It tells the store's time; the executor's host is a day behind.
    settings = ExecutorSettings(own_loop=False)
    async with an_executor(a_registry(forever=forever), [node], clock=host, settings=settings):
        report = await node.run(an_attempt("forever", deadline_us=clock.now_us()))
    assert report.outcome is AttemptOutcome.TIMED_OUT
    assert report.finished_us == clock.now_us()


async def test_a_thread_over_its_timeout_is_reported_and_keeps_its_slot_until_it_ends() -> None:
    """Goal: the state moves on at once, and a stuck thread is never counted as a free slot."""
    clock = FakeClock()
    thread = Thread()
    async with running(a_registry(h=thread.handler), clock) as (node, executor):
        await node.deliver(an_attempt("h", timeout_us=SECOND_US))
        await thread.until_started()
        await clock.advance(SECOND_US)
        report = await node.next_report()
        assert report.outcome is AttemptOutcome.TIMED_OUT
        assert await asyncio.to_thread(thread.told.wait, PATIENCE_S)
        assert (executor.gauges()["stuck"], node.credits) == (1, 1)
        thread.release.set()
        await node.until(lambda: node.credits == 2)
        assert executor.gauges()["stuck"] == 0
    assert node.reports == []  # The late return is nobody's outcome.


async def test_a_task_that_refuses_to_be_cancelled_is_reported_after_a_grace() -> None:
    clock = FakeClock()
    release = asyncio.Event()

    async def handler() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with running(a_registry(h=handler), clock) as (node, executor):
        await node.deliver(an_attempt("h", timeout_us=SECOND_US))
        await clock.advance(SECOND_US + CANCEL_GRACE_US)
        assert (await node.next_report()).outcome is AttemptOutcome.TIMED_OUT
        assert executor.gauges()["stuck"] == 1
        release.set()
        await node.until(lambda: node.credits == 2)


async def test_a_process_over_its_timeout_is_killed_and_another_takes_its_place() -> None:
    clock = FakeClock()
    registry = a_registry(spins=user_code.spins, pid=user_code.pid)
    async with running(registry, clock, ttl_us=3 * SECOND_US) as (node, _):
        first = await node.run(an_attempt("pid", run_in=RunIn.PROCESS))
        await node.deliver(an_attempt("spins", run_in=RunIn.PROCESS, timeout_us=60 * SECOND_US))
        await until_one_started(node, clock)
        assert node.reports == []
        await clock.advance(60 * SECOND_US)
        report = await node.next_report()
        assert report.outcome is AttemptOutcome.TIMED_OUT
        assert report.started_us is not None
        second = await node.run(an_attempt("pid", run_in=RunIn.PROCESS))
        assert second.outcome is AttemptOutcome.SUCCEEDED
    assert second.result != first.result


async def test_a_stuck_thread_does_not_keep_others_from_running() -> None:
    """Goal: a thread that never returns costs its slot and nothing more. Method: one thread, stuck, and one waiting."""
    clock = FakeClock()
    node = ScriptedNode(clock)
    thread = Thread()
    registry = a_registry(h=thread.handler, pid=user_code.pid)
    settings = ExecutorSettings(slots=2, threads=1)
    async with an_executor(registry, [node], clock=clock, settings=settings):
        await node.until(lambda: node.credits == 2)
        await node.deliver(an_attempt("h", number=1, timeout_us=SECOND_US), an_attempt("pid", number=2))
        await thread.until_started()
        await clock.advance(SECOND_US)
        await node.until(lambda: len(node.reports) == 2)
        await node.deliver(an_attempt("pid", number=3))
        await node.until(lambda: len(node.reports) == 3)
        thread.release.set()
        await node.until(lambda: node.credits == 2)
    assert {report.key: report.outcome for report in node.reports} == {
        a_key(1): AttemptOutcome.TIMED_OUT,
        a_key(2): AttemptOutcome.SUCCEEDED,
        a_key(3): AttemptOutcome.SUCCEEDED,
    }


async def test_more_attempts_than_threads_wait_their_turn_and_are_handed_back_by_a_drain() -> None:
    clock = FakeClock()
    node = ScriptedNode(clock)
    thread = Thread()
    settings = ExecutorSettings(slots=3, threads=1)
    async with an_executor(a_registry(h=thread.handler), [node], clock=clock, settings=settings) as executor:
        await node.until(lambda: node.credits == 3)
        await node.deliver(*(an_attempt("h", number=number) for number in (1, 2, 3)))
        await thread.until_started()
        draining = asyncio.create_task(executor.drain(10 * SECOND_US))
        await clock.settle()
        thread.release.set()
        await node.until(lambda: len(node.reports) == 3)
        await draining
    assert {report.key: report.outcome for report in node.reports} == {
        a_key(1): AttemptOutcome.SUCCEEDED,
        a_key(2): AttemptOutcome.RETURNED,
        a_key(3): AttemptOutcome.RETURNED,
    }


async def test_time_in_the_queue_of_the_processes_is_not_part_of_the_timeout() -> None:
    """Method: one process, kept busy for longer than the timeout of what waits behind it."""
    clock = FakeClock()
    async with running(a_registry(asks=user_code.asks, pid=user_code.pid), clock) as (node, _):
        await node.deliver(
            an_attempt("asks", number=1, run_in=RunIn.PROCESS),
            an_attempt("pid", number=2, run_in=RunIn.PROCESS, timeout_us=SECOND_US),
        )
        await clock.advance(10 * SECOND_US)
        assert node.reports == []
        await node.cancel(1)
        await node.until(lambda: len(node.reports) == 2)
    assert {report.key: report.outcome for report in node.reports} == {
        a_key(1): AttemptOutcome.CANCELLED,
        a_key(2): AttemptOutcome.SUCCEEDED,
    }


@pytest.mark.parametrize("place", [RunIn.ASYNC, RunIn.THREAD, RunIn.PROCESS])
async def test_a_cancelled_run_that_obeys_is_cancelled(place: RunIn) -> None:
    """Fault 28: the heartbeat's answer, or a cancel at any time, ends the run."""
    clock = FakeClock()
    registry = a_registry(asks=user_code.asks, forever=forever)
    async with running(registry, clock, ttl_us=3 * SECOND_US) as (node, _):
        await node.deliver(an_attempt("forever" if place is RunIn.ASYNC else "asks", run_in=place))
        await until_one_started(node, clock)
        await node.cancel(reason="replaced")
        report = await node.next_report()
    assert (report.outcome, report.error) == (AttemptOutcome.CANCELLED, "replaced")


async def test_a_cancel_of_what_is_not_here_changes_nothing() -> None:
    clock = FakeClock()
    async with running(a_registry(forever=forever), clock) as (node, _):
        await node.deliver(an_attempt("forever", attempt=2))
        await node.cancel(attempt=1)
        await node.cancel(99)
        await clock.settle()
        assert node.reports == []
        await node.cancel(attempt=2)
        assert (await node.next_report()).attempt == 2


async def test_a_handler_that_ends_although_cancelled_has_succeeded() -> None:
    clock = FakeClock()
    thread = Thread()
    async with running(a_registry(h=thread.handler), clock) as (node, _):
        await node.deliver(an_attempt("h"))
        await thread.until_started()
        await node.cancel()
        await asyncio.to_thread(thread.told.wait, PATIENCE_S)
        assert node.reports == []
        thread.release.set()
        assert (await node.next_report()).outcome is AttemptOutcome.SUCCEEDED


async def test_a_hard_cancel_kills_a_process_that_does_not_look() -> None:
    clock = FakeClock()
    async with running(a_registry(spins=user_code.spins), clock, ttl_us=3 * SECOND_US) as (node, _):
        await node.deliver(an_attempt("spins", run_in=RunIn.PROCESS))
        await until_one_started(node, clock)
        await node.cancel(hard=True)
        assert (await node.next_report()).outcome is AttemptOutcome.CANCELLED


async def test_a_handler_that_cancels_itself_has_failed() -> None:
    async def handler() -> None:
        raise asyncio.CancelledError

    clock = FakeClock()
    async with running(a_registry(h=handler), clock) as (node, _):
        report = await node.run(an_attempt("h"))
    assert report.outcome is AttemptOutcome.FAILED
    assert report.error is not None
    assert report.error.startswith("CancelledError")


@pytest.mark.parametrize(("how", "said"), [("exit", "exit code 7"), ("kill", "signal 9 (SIGKILL)")])
async def test_a_handler_that_kills_its_process_is_lost_and_harms_no_other(how: str, said: str) -> None:
    """Fault 23: the loss is on record with its evidence; the next run finds a new process."""
    clock = FakeClock()
    async with running(a_registry(dies=user_code.dies, pid=user_code.pid), clock) as (node, _):
        await node.deliver(
            an_attempt("dies", b'{"how":"%s"}' % how.encode(), number=1, run_in=RunIn.PROCESS),
            an_attempt("pid", number=2, run_in=RunIn.PROCESS),
        )
        await node.until(lambda: len(node.reports) == 2)
        lost, other = sorted(node.reports, key=lambda report: report.key)
    assert (lost.outcome, lost.error) == (AttemptOutcome.LOST, f"lost: the process of the handler ended by {said}")
    assert other.outcome is AttemptOutcome.SUCCEEDED


async def test_what_a_handler_prints_does_not_disturb_its_process() -> None:
    clock = FakeClock()
    async with running(a_registry(prints=user_code.prints), clock) as (node, _):
        assert (await node.run(an_attempt("prints", run_in=RunIn.PROCESS))).result == b'"printed"'


async def test_log_lines_of_a_process_name_their_execution(capfd: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    async with running(a_registry(logs=user_code.logs), clock) as (node, _):
        await node.run(an_attempt("logs", attempt=3, run_in=RunIn.PROCESS))
    assert f"WARNING user [{a_key().text()} #3]: from a handler" in capfd.readouterr().err


async def test_a_run_fails_when_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setattr(sys, "executable", str(ROOT / "no-such-python"))
    async with running(a_registry(pid=user_code.pid), clock) as (node, _):
        await node.deliver(an_attempt("pid", run_in=RunIn.PROCESS))
        while not node.reports:
            await clock.advance(SECOND_US)
        report = await node.next_report()
    assert (report.outcome, report.retryable) == (AttemptOutcome.FAILED, True)
    assert report.error is not None
    assert report.error.startswith("no process for handlers could be started: ")


async def test_a_run_fails_when_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    clock = FakeClock()
    async with running(a_registry(pid=user_code.pid), clock) as (node, _):
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            report = await node.run(an_attempt("pid", number=1))
        assert (await node.run(an_attempt("pid", number=2))).outcome is AttemptOutcome.SUCCEEDED
    assert report.error == "no thread for handlers could be started: can't start new thread"


async def test_a_drain_finishes_what_runs_and_takes_nothing_new() -> None:
    """Fault 29: every held attempt gets an outcome before the executor is gone."""
    clock = FakeClock()
    release = asyncio.Event()

    async def handler() -> str:
        await release.wait()
        return "done"

    async with running(a_registry(h=handler), clock) as (node, executor):
        await node.deliver(an_attempt("h", number=1))
        await clock.settle()
        draining = asyncio.create_task(executor.drain(10 * SECOND_US))
        await node.deliver(an_attempt("h", number=2))  # It crosses with the news of the drain.
        await clock.settle()
        assert any(isinstance(message, Drain) for message in node.seen)
        assert node.credits == 0
        assert (await node.next_report()).outcome is AttemptOutcome.RETURNED
        release.set()
        assert (await node.next_report()).outcome is AttemptOutcome.SUCCEEDED
        await draining


async def test_what_outlasts_the_grace_of_a_drain_is_handed_back() -> None:
    clock = FakeClock()
    thread = Thread()
    async with running(a_registry(forever=forever, h=thread.handler), clock) as (node, executor):
        await node.deliver(an_attempt("forever", number=1), an_attempt("h", number=2))
        await thread.until_started()
        draining = asyncio.create_task(executor.drain(10 * SECOND_US))
        await clock.advance(10 * SECOND_US)
        await draining
        thread.release.set()
    assert {report.key for report in node.reports} == {a_key(1), a_key(2)}
    for report in node.reports:
        assert (report.outcome, report.retryable) == (AttemptOutcome.RETURNED, True)
        assert report.started_us is not None  # At-most-once has to know that it had begun.
        assert report.error == "the executor stopped before the handler had ended"


async def test_a_drain_hands_back_what_waits_for_a_process_at_once() -> None:
    clock = FakeClock()
    async with running(a_registry(asks=user_code.asks), clock, ttl_us=3 * SECOND_US) as (node, executor):
        await node.deliver(*(an_attempt("asks", number=number, run_in=RunIn.PROCESS) for number in (1, 2)))
        await until_one_started(node, clock)
        draining = asyncio.create_task(executor.drain(10 * SECOND_US))
        report = await node.next_report()
        assert (report.key, report.outcome, report.started_us) == (a_key(2), AttemptOutcome.RETURNED, None)
        await node.cancel(1)
        await node.next_report()
        await draining


async def test_a_drain_waits_until_its_last_reports_are_durable() -> None:
    clock = FakeClock()
    release = asyncio.Event()
    async with running(a_registry(h=release.wait), clock) as (node, executor):
        node.confirms = False
        await node.deliver(an_attempt("h"))
        await clock.settle()
        draining = asyncio.create_task(executor.drain(10 * SECOND_US))
        release.set()
        report = await node.next_report()
        await clock.settle()
        assert not draining.done()
        await node.confirm(report)
        await draining


PROGRAM = """
import asyncio, signal, sys
from luciole.executor.dial import GrpcDial
from luciole.executor.executor import Executor, ExecutorSettings
from luciole.executor.registry import HandlerRegistry
from luciole.runtime.clock import SystemClock

started = asyncio.Event()

async def handler(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"

async def main() -> None:
    registry = HandlerRegistry()
    registry.add("h", handler)
    executor = Executor(registry, clock=SystemClock(), settings=ExecutorSettings(slots=2))
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    running = asyncio.create_task(executor.run(GrpcDial(), [sys.argv[1]]))
    await stop.wait()
    await executor.drain(200_000)
    await running

asyncio.run(main())
"""


async def test_a_process_told_to_stop_leaves_no_run_without_an_outcome() -> None:
    """Fault 29 with a real process and SIGTERM: one run ends in the grace, the other is handed back."""
    node = ScriptedNode(SystemClock())
    server = GatewayServer(node.serve, ServerSettings(listen="127.0.0.1:0"))
    await server.start()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, server.address, cwd=ROOT)
    try:
        await node.until(lambda: node.credits == 2)
        await node.deliver(
            an_attempt("h", b'{"seconds":0.01}', number=1), an_attempt("h", b'{"seconds":3600}', number=2)
        )
        assert (await node.next_report()).outcome is AttemptOutcome.SUCCEEDED
        process.send_signal(signal.SIGTERM)
        report = await node.next_report()
        assert (report.key, report.outcome) == (a_key(2), AttemptOutcome.RETURNED)
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await server.stop()


async def test_handler_processes_end_with_their_executor() -> None:
    """Goal: kill -9 of an executor leaves no orphans. Method: close the pipe that a process hears its executor by."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "luciole.executor.process_main", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdout.readexactly(4)  # It is ready.
    process.stdin.close()
    async with asyncio.timeout(PATIENCE_S):
        assert await process.wait() == 0
