"""Work that its caller can't break off: what was sent is finished, whoever is cancelled meanwhile."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

ResultT = TypeVar("ResultT")


class Unbroken:
    """Runs work to its end, each in a task of its own, whatever becomes of its callers."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self, work: Coroutine[Any, Any, ResultT], *, at_once: bool = False) -> ResultT:
        """Finish some work, and return its result.

        Args:
            work: what to do.
            at_once: begin in the caller's own step, so that what it sends first is on its way a turn of the loop
                sooner; up to where it first waits, the work must not ask for its task (as a timeout does).
        """
        loop = asyncio.get_running_loop()
        finished: asyncio.Future[ResultT] = loop.create_future()
        whole: Coroutine[Any, Any, None] = _finish(work, finished)
        if at_once:
            try:
                waits_for = whole.send(None)
            except StopIteration:
                return finished.result()
            whole = _go_on(whole, waits_for)
        task = loop.create_task(whole)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await finished

    async def wait(self) -> None:
        """Wait until nothing is under way any more."""
        while self._under_way:
            await asyncio.wait(self._under_way)


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


async def _go_on(begun: Coroutine[Any, Any, ResultT], waits_for: object) -> ResultT:
    return await _Begun(begun, waits_for)


class _Begun(Generic[ResultT]):
    """The rest of a coroutine that was begun elsewhere and waits."""

    def __init__(self, begun: Coroutine[Any, Any, ResultT], waits_for: object) -> None:
        self._begun = begun
        self._waits_for = waits_for

    def __await__(self) -> Generator[object, object, ResultT]:
        waits_for = self._waits_for
        while True:
            try:
                answer, problem = (yield waits_for), None
            except BaseException as thrown:  # noqa: BLE001 - it goes to where it waits
                answer, problem = None, thrown
            try:
                waits_for = self._begun.send(answer) if problem is None else self._begun.throw(problem)
            except StopIteration as end:
                result: ResultT = end.value
                return result
