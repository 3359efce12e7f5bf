"""Grouping: whatever is queued goes into one statement, or a crowd into two, without a timer."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any

from luciole import limits
from luciole.errors import LucioleError, OutcomeUnknown, Rejected, StoreUnavailable
from luciole.model.execution import Enqueued, EnqueueRequest
from luciole.store.spi import ExecutionStore

#: Payload bytes of one statement; a single request may be larger.
_GROUP_BYTES_MAX = 8 * limits.PAYLOAD_BYTES_MAX

#: So many that wait are a crowd: they leave although a statement is under way, which is the most that may be then.
_CROWD = 16
_GROUPS_AT_ONCE = 2


class _Waiter:
    __slots__ = ("future", "request")

    def __init__(self, request: EnqueueRequest, future: "asyncio.Future[Enqueued]") -> None:
        self.request = request
        self.future = future


class Enqueuer:
    """Enqueue requests of one event loop, grouped.

    A lone caller's request leaves at once; those that come while it is under way share the next statement. The
    queue is bounded: a caller waits for room. Nobody is answered before the commit, and a failed one fails all
    that were in it (I9), after those that may be repeated have been.

    A crowd leaves in two halves: while the store writes one, the other's callers are answered and come again. What a
    few would win by that is less than what a second commit costs.

    Whoever comes after one that was alone is taken to be alone, too, and asks the store by itself: each step of the
    loop in between would be waited for. In a crowd it would part the group of those who come in the same step.
    """

    def __init__(self, store: ExecutionStore) -> None:
        self._store = store
        self._queue: deque[_Waiter] = deque()
        self._room = asyncio.Event()
        self._room.set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._to_begin = 0  #: those of them that have not run yet
        self._was_alone = False  #: the last statement had one request, and nobody had come meanwhile
        self._leading: asyncio.Future[None] | None = None  #: until a lone caller's statement has ended
        self._closed = False

    async def enqueue(self, request: EnqueueRequest) -> Enqueued:
        """Make one request durable; return the execution, new or by its key the one there was.

        Raises:
            StoreUnavailable: nothing was written.
            OutcomeUnknown: the connection broke in the commit; with a key it is safe to repeat.
        """
        while len(self._queue) >= limits.ENQUEUE_QUEUE_MAX:  # I10: a crowd waits outside.
            self._room.clear()
            await self._room.wait()
        if self._closed:
            raise StoreUnavailable("the client is closed; open it before enqueueing")
        if self._was_alone and not self._pumps and self._leading is None:
            return await self._lead(request)
        loop = asyncio.get_running_loop()
        waiter = _Waiter(request, loop.create_future())
        self._queue.append(waiter)
        under_way = len(self._pumps) + (self._leading is not None)
        if under_way == 0 or (under_way < _GROUPS_AT_ONCE and len(self._queue) >= _CROWD):
            self._start(loop)
        return await waiter.future

    async def close(self) -> None:
        """Take no more, and wait until what is queued is durable or refused."""
        self._closed = True
        self._room.set()
        while under_way := [*self._pumps, *filter(None, [self._leading])]:
            await asyncio.wait(under_way)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        pump = loop.create_task(self._run())
        self._pumps.add(pump)
        self._to_begin += 1

    async def _lead(self, request: EnqueueRequest) -> Enqueued:
        """Ask the store from the caller's own task; whoever comes meanwhile shares the next statement."""
        loop = asyncio.get_running_loop()
        ended = self._leading = loop.create_future()
        try:
            # I9: as in a group.
            (answer,) = await enqueue_repeatably(self._store, (request,))
            return answer
        finally:
            self._leading = None
            ended.set_result(None)
            self._was_alone = not self._queue
            if self._queue and not self._pumps:
                self._start(loop)

    async def _run(self) -> None:
        self._to_begin -= 1
        try:
            while self._queue:
                group = self._next_group()
                await self._flush(group)
                self._room.set()
                self._was_alone = len(group) == 1 and not self._queue
                if self._to_begin:
                    break  # The rest is its share.
        finally:
            task = asyncio.current_task()
            assert task is not None
            self._pumps.discard(task)

    def _next_group(self) -> list[_Waiter]:
        """Take from the queue what leaves now: half of it where another pump is about to begin."""
        share = -(-len(self._queue) // (1 + self._to_begin))
        group: list[_Waiter] = []
        size = 0
        while self._queue and len(group) < min(share, limits.ENQUEUE_BATCH_MAX):
            payload = self._queue[0].request.payload or b""
            if group and size + len(payload) > _GROUP_BYTES_MAX:
                break
            size += len(payload)
            waiter = self._queue.popleft()
            if not waiter.future.done():  # Its caller gave up before it left.
                group.append(waiter)
        return group

    async def _flush(self, group: list[_Waiter]) -> None:
        if not group:
            return
        try:
            # I9: nobody is answered before this has committed.
            answers = await enqueue_repeatably(self._store, [waiter.request for waiter in group])
        except Rejected as problem:
            if len(group) == 1:
                _fail(group, problem)
                return
            middle = len(group) // 2  # I7: one that the store refuses does not take the others with it.
            await self._flush(group[:middle])
            await self._flush(group[middle:])
        except LucioleError as problem:
            _fail(group, problem)
        except BaseException as problem:
            _fail(group, problem)
            if not isinstance(problem, Exception):
                raise
        else:
            for waiter, answer in zip(group, answers, strict=True):
                if not waiter.future.done():
                    waiter.future.set_result(answer)


def enqueue_repeatably(
    store: ExecutionStore, requests: Sequence[EnqueueRequest]
) -> Coroutine[Any, Any, tuple[Enqueued, ...]]:
    """Enqueue in one statement; when nobody knows how its commit ended, ask again where that can't make a second run.

    Raises:
        OutcomeUnknown: some of the requests have neither a key nor a time of their own, or it stays unknown.
    """
    for request in requests:
        if request.key is None and request.fire_us is None:
            return store.enqueue(requests)
    return _enqueue_again(store, requests)


async def _enqueue_again(store: ExecutionStore, requests: Sequence[EnqueueRequest]) -> tuple[Enqueued, ...]:
    for left in reversed(range(limits.CONFLICT_TRIES_MAX)):
        try:
            return await store.enqueue(requests)
        except OutcomeUnknown:
            if not left:
                raise
    raise AssertionError  # The last try returns or raises.


def _fail(group: Sequence[_Waiter], problem: BaseException) -> None:
    for waiter in group:
        if not waiter.future.done():
            waiter.future.set_exception(problem)
