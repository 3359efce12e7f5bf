"""Work that its caller can't break off: what was sent is finished, whoever is cancelled meanwhile."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, Generic, TypeAlias, TypeVar

ResultT = TypeVar("ResultT")

#: What a coroutine waits for: a future, or nothing but the next turn of the loop.
_Wait: TypeAlias = "asyncio.Future[Any] | None"


class Unbroken:
    """Runs work to its end, whatever becomes of its callers."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[None]] = set()
        self.in_callers = 0  #: how many are being done in their callers' tasks
        self.one_ended = asyncio.Event()  #: of those

    async def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Finish some work in a task of its own, and return its result."""
        finished: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        self.keep(_finish(work, finished))
        return await finished

    def in_place(self, work: Coroutine[Any, Any, ResultT]) -> Awaitable[ResultT]:
        """Finish some work in the caller's own task, and return its result.

        The caller goes on in the very step in which the work ends. Only when it is cancelled does what is left move to
        a task of its own. So the work must not ask for its task, as a timeout does.
        """
        return _InPlace(self, work)

    async def wait(self) -> None:
        """Wait until nothing is under way any more."""
        while self._under_way or self.in_callers:
            if self._under_way:
                await asyncio.wait(self._under_way)
            else:
                self.one_ended.clear()
                await self.one_ended.wait()

    def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work in a task of its own that nobody waits for but `wait`."""
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)


async def _finish(work: Coroutine[Any, Any, ResultT], finished: "asyncio.Future[ResultT]") -> None:
    """Do the work and tell how it ended, in the very step in which it ends; a caller that is gone hears nothing."""
    try:
        result = await work
    except Exception as problem:  # noqa: BLE001 - it is the caller's
        if not finished.done():
            finished.set_exception(problem)
    except BaseException as problem:
        if not finished.done():
            finished.cancel() if isinstance(problem, asyncio.CancelledError) else finished.set_exception(problem)
        raise
    else:
        if not finished.done():
            finished.set_result(result)


class _InPlace(Generic[ResultT]):
    """Work that is driven by its caller's task, and by another from where that one is cancelled."""

    __slots__ = ("_unbroken", "_work")

    def __init__(self, unbroken: Unbroken, work: Coroutine[Any, Any, ResultT]) -> None:
        self._unbroken = unbroken
        self._work = work

    def __await__(self) -> Generator[object, None, ResultT]:
        unbroken, work = self._unbroken, self._work
        thrown: BaseException | None = None
        unbroken.in_callers += 1
        try:
            while True:
                waits_for: _Wait = work.send(None) if thrown is None else work.throw(thrown)
                try:
                    yield waits_for if waits_for is None else _Shelter(waits_for)
                    thrown = None
                except BaseException as problem:
                    if _is_of_caller(problem, waits_for):
                        unbroken.keep(_go_on(work, waits_for))
                        raise
                    thrown = problem
        except StopIteration as end:
            result: ResultT = end.value
            return result
        finally:
            unbroken.in_callers -= 1
            unbroken.one_ended.set()


def _is_of_caller(problem: BaseException, waits_for: _Wait) -> bool:
    """Whether it is the caller that ends, and not what the work waits for that failed."""
    if isinstance(problem, asyncio.CancelledError):
        return waits_for is None or not waits_for.cancelled()
    return isinstance(problem, GeneratorExit)


class _Shelter:
    """A future as its waiter sees it, which leaves it alone where a waiter that is cancelled would cancel it.

    It is what a task asks of anything that it waits for, no more: a future of its own would cost a turn of the loop.
    """

    __slots__ = ("_asyncio_future_blocking", "_context", "_future", "_wake")

    def __init__(self, future: "asyncio.Future[Any]") -> None:
        self._asyncio_future_blocking = True  # Says that it was awaited, as the future has said of itself.
        self._future = future
        self._wake: Callable[[Any], object] | None = None
        self._context: Context | None = None

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop that both belong to."""
        return self._future.get_loop()

    def add_done_callback(self, wake: Callable[[Any], object], *, context: Context | None = None) -> None:
        """Wake the waiter with the future, once that is done."""
        self._wake, self._context = wake, context
        self._future.add_done_callback(wake, context=context)

    def cancel(self, msg: object = None) -> bool:
        """Wake the waiter without the future; whether that made a difference."""
        del msg
        wake, self._wake = self._wake, None
        if wake is None or self._future.done():
            return False
        self._future.remove_done_callback(wake)
        self.get_loop().call_soon(wake, self, context=self._context)
        return True

    def result(self) -> object:
        """Tell the waiter that it was woken by `cancel`."""
        raise asyncio.CancelledError


class _Rest:
    """The rest of a coroutine that was begun elsewhere and waits."""

    def __init__(self, begun: Coroutine[Any, Any, object], waits_for: _Wait) -> None:
        self._begun = begun
        self._waits_for = waits_for

    def __await__(self) -> Generator[object, None, None]:
        waits_for = self._waits_for
        while True:
            thrown: BaseException | None = None
            try:
                yield waits_for
            except BaseException as problem:  # noqa: BLE001 - it goes to where it waits
                thrown = problem
            try:
                waits_for = self._begun.send(None) if thrown is None else self._begun.throw(thrown)
            except StopIteration:
                return


async def _go_on(begun: Coroutine[Any, Any, object], waits_for: _Wait) -> None:
    """Finish what was begun elsewhere; nobody is there any more who could be told how it ended."""
    with contextlib.suppress(Exception):
        await _Rest(begun, waits_for)
