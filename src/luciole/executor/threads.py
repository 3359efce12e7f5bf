"""Plain handlers: threads of our own, as many as run at once."""

import contextvars
import logging
import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Final

from luciole.executor.attempt import Attempt, Finished, StoreTime
from luciole.executor.context import enter
from luciole.executor.inbox import Inbox
from luciole.executor.outcome import Ended, failure, read_arguments, success
from luciole.model.outbox import AttemptOutcome

_log: Final = logging.getLogger("luciole.executor")

_RUNNING: Final = "running"
_WRITTEN_OFF: Final = "written off"


class ThreadPlace:
    """Runs plain handlers, each in a thread.

    The threads are daemons: one that is stuck for ever keeps no process from ending. They start when they are first
    needed; what finds none idle waits in order. One that is stuck in a handler which nobody waits for any more is
    written off: another takes its place, and it ends with its handler.

    Args:
        count: how many there are at most.
        time: the store's clock.
        done: gets each end.
    """

    def __init__(self, count: int, time: StoreTime, done: Inbox[Finished]) -> None:
        self._count = count
        self._time = time
        self._done = done
        self._waiting: SimpleQueue[Attempt | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads = 0
        self._ending = threading.Lock()

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Give each to an idle thread, or to a new one."""
        for attempt in attempts:
            self._waiting.put(attempt)
            self._hire()

    def end(self, attempt: Attempt, *, hard: bool) -> bool:
        """Nothing ends a thread but its own look at `Context.cancelled`; with `hard` it is written off."""
        with self._ending:
            if attempt.handle is not _RUNNING:
                return True  # It waits, and will not start; or it has just ended.
            if hard:
                attempt.handle = _WRITTEN_OFF
                self._threads -= 1
        if hard and not self._waiting.empty():
            self._hire()
        return False

    def close(self) -> None:
        """Let idle threads end; busy ones end after their handler."""
        for _ in range(self._threads):
            self._waiting.put(None)

    def _hire(self) -> None:
        if not self._idle.acquire(blocking=False) and self._threads < self._count:
            try:
                threading.Thread(target=self._serve, name="luciole-handler", daemon=True).start()
            except RuntimeError as problem:  # The system has no more; what waits gets the next thread that is idle.
                _log.warning("no further thread for handlers: %s", problem)
                self._give_up(problem)
            else:
                self._threads += 1

    def _give_up(self, problem: RuntimeError) -> None:
        """Fail what waits if there is no thread at all: it must not wait for ever."""
        while not self._threads and not self._waiting.empty():
            attempt = self._waiting.get()
            if attempt is not None:
                ended = Ended(AttemptOutcome.FAILED, error=f"no thread for handlers could be started: {problem}")
                self._done.put((attempt, ended, self._time.now_us()))

    def _serve(self) -> None:
        while (attempt := self._waiting.get()) is not None:
            ended = contextvars.Context().run(self._run, attempt)
            with self._ending:
                written_off = attempt.handle is _WRITTEN_OFF
                attempt.handle = None
            if not written_off:
                # Idle first: who hears of the end may have the next one at once.
                self._idle.release()
            self._done.put((attempt, ended, self._time.now_us()))
            if written_off:
                return

    def _run(self, attempt: Attempt) -> Ended:
        attempt.handle = _RUNNING
        if attempt.told is not None:
            return attempt.told
        attempt.begin(self._time)
        enter(attempt.context)
        delivered = attempt.delivered
        codec = attempt.handler.codec
        try:
            args, kwargs = read_arguments(codec, delivered.payload, delivered.content_type)
            return success(codec, attempt.handler.function(*args, **kwargs))
        except BaseException as problem:  # noqa: BLE001 - whatever it raises, the execution's state moves on
            return failure(problem, attempt.told)
