"""Plain handlers: threads of our own, as many as run at once."""

import contextvars
import threading
from collections.abc import Sequence
from queue import SimpleQueue

from luciole.executor.attempt import Attempt, Finished, StoreTime
from luciole.executor.context import enter
from luciole.executor.inbox import Inbox
from luciole.executor.outcome import Ended, failure, read_arguments, success


class ThreadPlace:
    """Runs plain handlers, each in a thread.

    The threads are daemons: one that is stuck for ever keeps no process from ending. They start when they are first
    needed; what finds none idle waits in order.

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

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Give each to an idle thread, or to a new one."""
        for attempt in attempts:
            self._waiting.put(attempt)
            if not self._idle.acquire(blocking=False) and self._threads < self._count:
                self._threads += 1
                threading.Thread(target=self._serve, name=f"luciole-handler-{self._threads}", daemon=True).start()

    def end(self, attempt: Attempt, *, hard: bool) -> bool:  # noqa: ARG002 - a thread can't be forced
        """Nothing ends a thread but its own look at `Context.cancelled`."""
        return attempt.handle is None

    def close(self) -> None:
        """Let idle threads end; busy ones end after their handler."""
        for _ in range(self._threads):
            self._waiting.put(None)

    def _serve(self) -> None:
        while (attempt := self._waiting.get()) is not None:
            ended = contextvars.Context().run(self._run, attempt)
            # Idle first: who hears of the end may have the next one at once.
            self._idle.release()
            self._done.put((attempt, ended, self._time.now_us()))

    def _run(self, attempt: Attempt) -> Ended:
        attempt.handle = threading.current_thread()
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
