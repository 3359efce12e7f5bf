"""Handlers in processes of their own: they use their own core, and one can be killed without harm to the others."""

import asyncio
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from luciole import limits
from luciole.errors import Unavailable
from luciole.executor.attempt import Attempt, Finished, StoreTime
from luciole.executor.inbox import Inbox
from luciole.executor.outcome import Ended
from luciole.executor.process_frames import (
    FRAME_BYTES_MAX,
    LENGTH_BYTES,
    Begin,
    Call,
    Done,
    FromProcess,
    Progress,
    Started,
    Told,
    frame,
    from_process,
)
from luciole.model.outbox import AttemptOutcome
from luciole.runtime.backoff import Backoff
from luciole.runtime.clock import Clock

_log: Final = logging.getLogger("luciole.executor")


class _Process:
    """One process and what it runs now."""

    __slots__ = ("attempt", "failures", "inner", "ready")

    def __init__(self) -> None:
        self.inner: asyncio.subprocess.Process | None = None
        self.attempt: Attempt | None = None
        self.ready = False
        self.failures = 0  #: deaths in a row before it was ready


class ProcessPlace:
    """Runs handlers in a fixed number of processes, each one call at a time; the rest waits in order.

    All are started by `open`, or with the first call. One that ends, for whatever reason, is replaced.

    Args:
        count: how many.
        clock: the time.
        time: the store's clock.
        done: gets each end.
    """

    def __init__(self, count: int, clock: Clock, time: StoreTime, done: Inbox[Finished]) -> None:
        self._clock = clock
        self._time = time
        self._done = done
        self._backoff = Backoff()
        self._waiting: deque[Attempt] = deque()
        self._processes = [_Process() for _ in range(count)]
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = asyncio.Event()

    def open(self) -> None:
        """Start all processes; safe to repeat."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._keep(process)) for process in self._processes]

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Queue these; each goes to the first process that is idle."""
        self.open()
        self._waiting.extend(attempts)
        for process in self._processes:
            self._next(process)

    def end(self, attempt: Attempt, *, hard: bool) -> bool:
        """Tell its process, or kill it; what still waits ends at once."""
        process: _Process | None = attempt.handle
        if process is None:
            try:
                self._waiting.remove(attempt)
            except ValueError:
                return True  # It has just ended.
            self._finish(attempt, attempt.told or _LOST)
        elif process.attempt is attempt and process.inner is not None:
            if hard:
                _kill(process.inner)
            else:
                _write(process.inner, frame(Told()))
        return True

    async def close(self) -> None:
        """Kill all processes and wait for their end."""
        self._closing.set()
        for process in self._processes:
            if process.inner is not None:
                _kill(process.inner)
        ending = asyncio.gather(*self._tasks)
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending  # They are dead already, and must not be left to a loop that is about to be closed.
            raise

    def pids(self) -> list[int]:
        """Return the ids of the processes that are ready."""
        return [one.inner.pid for one in self._processes if one.inner is not None and one.ready]

    async def _keep(self, process: _Process) -> None:
        """Have a process here until `close`."""
        while not self._closing.is_set():
            try:
                how = await self._live(process)
            except (OSError, Unavailable) as problem:
                how = str(problem)
            if process.attempt is not None:
                self._lose(process, how)
            elif not self._closing.is_set() and not process.ready:
                process.failures += 1
                _log.error("a process for handlers did not start: %s", how)
                if process.failures >= limits.PROCESS_STARTS_MAX and not any(one.ready for one in self._processes):
                    self._give_up(how)
                await self._clock.wait(self._closing, self._backoff.delay_us(process.failures, 0.0))
            process.ready = False

    async def _live(self, process: _Process) -> str:
        """Start the process and hear it until it ends; return how it ended."""
        inner = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "luciole.executor.process_main",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=_environment(),
        )  # fmt: skip
        process.inner = inner
        if self._closing.is_set():
            _kill(inner)
        try:
            _write(inner, frame(Begin(sys.path, logging.getLogger().getEffectiveLevel())))
            while (message := await _read(inner)) is not None:
                self._take(process, message)
        finally:
            code = await self._end(inner)
            process.inner = None
        return f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"

    async def _end(self, inner: asyncio.subprocess.Process) -> int:
        """Return the exit code of a process that has closed its pipe; one that goes on is killed."""
        waiting = asyncio.ensure_future(inner.wait())
        ended = asyncio.Event()
        waiting.add_done_callback(lambda _: ended.set())
        # A kill looks whether the process has ended, and then asyncio never learns how.
        if not await self._clock.wait(ended, limits.PROCESS_EXIT_GRACE_US):
            _kill(inner)
        return await waiting

    def _take(self, process: _Process, message: FromProcess) -> None:
        attempt = process.attempt
        if isinstance(message, Started):
            if attempt is not None:
                attempt.begin(self._time)
            elif not process.ready:
                process.ready = True
                process.failures = 0
                self._next(process)
        elif isinstance(message, Progress) and attempt is not None:
            attempt.context.progress(message.text)
        elif isinstance(message, Done) and attempt is not None:
            process.attempt = None
            ended = Ended(
                AttemptOutcome(message.outcome),
                message.result,
                message.error,
                message.retry_after_us,
                message.retryable,
            )
            told = attempt.told
            self._finish(attempt, told if told is not None and ended.outcome is AttemptOutcome.CANCELLED else ended)
            self._next(process)

    def _next(self, process: _Process) -> None:
        """Give a process the next call, if it is idle and there is one."""
        if not self._waiting or not process.ready or process.attempt is not None or process.inner is None:
            return
        attempt = self._waiting.popleft()
        attempt.handle = process
        process.attempt = attempt
        delivered = attempt.delivered
        call = Call(
            name=attempt.handler.name,
            function=attempt.handler.path or "",
            payload=delivered.payload,
            content_type=delivered.content_type,
            key=delivered.key,
            attempt=delivered.attempt,
            fire_us=delivered.fire_us,
            due_us=delivered.due_us,
            deadline_us=delivered.deadline_us,
        )
        _write(process.inner, frame(call))

    def _lose(self, process: _Process, how: str) -> None:
        """Report the call of a process that ended: as it was told to, else lost, which counts against the handler."""
        attempt = process.attempt
        assert attempt is not None  # The caller looked.
        process.attempt = None
        text = f"lost: the process of the handler ended by {how}"
        self._finish(attempt, attempt.told or Ended(AttemptOutcome.LOST, error=text))

    def _give_up(self, how: str) -> None:
        """Fail what waits: it must not wait for ever for a process that can't be had."""
        while self._waiting:
            text = f"no process for handlers could be started: {how}"
            self._finish(self._waiting.popleft(), Ended(AttemptOutcome.FAILED, error=text))

    def _finish(self, attempt: Attempt, ended: Ended) -> None:
        attempt.handle = None
        self._done.put((attempt, ended, self._time.now_us()))


_LOST: Final = Ended(AttemptOutcome.LOST, error="lost")


def _environment() -> dict[str, str]:
    # The package is found as it was here, whatever way that was; the rest of the path follows in `Begin`.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}


def _kill(inner: asyncio.subprocess.Process) -> None:
    if inner.returncode is None:
        inner.kill()


def _write(inner: asyncio.subprocess.Process, data: bytes) -> None:
    # At most one payload waits in the pipe's buffer: a process has one call at a time.
    if inner.stdin is not None and not inner.stdin.is_closing():
        inner.stdin.write(data)


async def _read(inner: asyncio.subprocess.Process) -> FromProcess | None:
    """Return the next message; None when the process has closed its end.

    Raises:
        Unavailable: what came is no message: something in the process wrote into its pipe.
    """
    assert inner.stdout is not None  # It was asked for.
    try:
        size = int.from_bytes(await inner.stdout.readexactly(LENGTH_BYTES), "big")
        if size > FRAME_BYTES_MAX:
            raise Unavailable(f"a message of {size:,} bytes")
        return from_process.decode(await inner.stdout.readexactly(size))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except msgspec.DecodeError as problem:
        raise Unavailable(f"a message that can't be read: {problem}") from None
