"""Async handlers: tasks on an event loop, which is a thread's own so that a handler that blocks stops no heartbeat."""

import asyncio
import threading
from collections.abc import Callable, Sequence

from luciole import limits
from luciole.executor.attempt import Attempt, Finished, StoreTime
from luciole.executor.context import enter
from luciole.executor.inbox import Inbox
from luciole.executor.outcome import Ended, failure, read_arguments, success
from luciole.runtime.clock import Clock


class LoopPlace:
    """Runs async handlers as tasks of one loop.

    Args:
        loop: theirs.
        time: the store's clock.
        done: gets each end.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, time: StoreTime, done: Inbox[Finished]) -> None:
        self._loop = loop
        self._time = time
        self._done = done
        self._ended: list[Finished] = []  #: in this turn of the loop
        self._inbox: Inbox[Attempt] = Inbox(loop, self._take)

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Make a task of each."""
        self._inbox.put_all(attempts)

    def end(self, attempt: Attempt, *, hard: bool) -> bool:  # noqa: ARG002 - a task has one way to end
        """Cancel its task."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel, attempt)
        return True

    def _take(self, attempts: list[Attempt]) -> None:
        create_task = self._loop.create_task
        for attempt in attempts:
            if attempt.told is None:
                attempt.handle = create_task(self._run(attempt))
            else:
                self._end((attempt, attempt.told, self._time.now_us()))

    def _cancel(self, attempt: Attempt) -> None:
        if attempt.handle is not None:
            attempt.handle.cancel()

    async def _run(self, attempt: Attempt) -> None:
        attempt.begin(self._time)
        enter(attempt.context)
        delivered = attempt.delivered
        codec = attempt.handler.codec
        ended: Ended
        try:
            args, kwargs = read_arguments(codec, delivered.payload, delivered.content_type)
            ended = success(codec, await attempt.handler.function(*args, **kwargs))
        except BaseException as problem:  # noqa: BLE001 - whatever it raises, the execution's state moves on
            ended = failure(problem, attempt.told)
        self._end((attempt, ended, self._time.now_us()))

    def _end(self, finished: Finished) -> None:
        # What ends in one turn of the loop is handed in together: the other thread is woken once, and reports it
        # in one frame, instead of racing with this one for each.
        if not self._ended:
            self._loop.call_soon(self._hand_in)
        self._ended.append(finished)

    def _hand_in(self) -> None:
        ended, self._ended = self._ended, []
        self._done.put_all(ended)


class LoopThread:
    """An event loop in a thread of its own.

    Args:
        factory: makes the loop.
        clock: bounds the wait for its end.
    """

    def __init__(self, factory: Callable[[], asyncio.AbstractEventLoop], clock: Clock) -> None:
        self.loop = factory()
        self._clock = clock
        self._ended = asyncio.Event()
        self._outer = asyncio.get_running_loop()
        # A daemon: a handler that never returns must not keep the process from ending.
        self._thread = threading.Thread(target=self._serve, name="luciole-handlers", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Cancel what runs and end the thread; one that is stuck in a handler is left behind."""
        self.loop.call_soon_threadsafe(self._cancel_all)
        await self._clock.wait(self._ended, limits.CANCEL_GRACE_US)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()
            if not self._outer.is_closed():
                self._outer.call_soon_threadsafe(self._ended.set)

    def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        stopping = asyncio.gather(*tasks, return_exceptions=True)
        stopping.add_done_callback(lambda _: self.loop.stop())
