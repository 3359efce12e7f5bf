"""Work that its caller can't break off."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from luciole.runtime.unbroken import Unbroken


class Work:
    """Waits at a gate, twice, and notes how far it came."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.steps: list[str] = []

    async def run(self, problem: BaseException | None = None) -> str:
        self.steps.append("begun")
        await self.gate.wait()
        await asyncio.sleep(0)
        self.steps.append("ended")
        if problem is not None:
            raise problem
        return "done"


def how(unbroken: Unbroken, in_place: bool) -> Callable[[Coroutine[Any, Any, str]], Awaitable[str]]:  # noqa: FBT001 - a case
    """Return one of the two ways of doing some work."""
    return unbroken.in_place if in_place else unbroken.run


@pytest.mark.parametrize("in_place", [False, True])
async def test_work_is_finished_though_its_caller_is_cancelled(in_place: bool) -> None:  # noqa: FBT001 - a case
    unbroken, work = Unbroken(), Work()
    caller = asyncio.ensure_future(how(unbroken, in_place)(work.run()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert work.steps == ["begun"]
    work.gate.set()
    await unbroken.wait()
    assert work.steps == ["begun", "ended"]


@pytest.mark.parametrize("in_place", [False, True])
async def test_the_caller_is_told_what_came_of_it(in_place: bool) -> None:  # noqa: FBT001 - a case
    unbroken, work = Unbroken(), Work()
    work.gate.set()
    assert await how(unbroken, in_place)(work.run()) == "done"
    with pytest.raises(ValueError, match="broken"):
        await how(unbroken, in_place)(work.run(ValueError("broken")))
    await unbroken.wait()


async def test_what_is_begun_in_place_is_begun_in_the_callers_own_step() -> None:
    unbroken, work = Unbroken(), Work()
    waits = unbroken.in_place(work.run()).__await__()
    next(waits)
    assert work.steps == ["begun"]
    waits.close()
    work.gate.set()
    await unbroken.wait()
    assert work.steps == ["begun", "ended"]


async def test_the_callers_task_goes_on_in_the_step_in_which_the_work_ends() -> None:
    """Goal: a lone caller pays for no turn of the loop that the work itself does not take."""
    unbroken, order = Unbroken(), list[str]()
    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def asks() -> None:
        await answer
        asyncio.get_running_loop().call_soon(order.append, "a turn later")

    async def caller() -> None:
        await unbroken.in_place(asks())
        order.append("caller")

    task = asyncio.ensure_future(caller())
    await asyncio.sleep(0)
    answer.set_result(None)
    await task
    await asyncio.sleep(0)
    assert order == ["caller", "a turn later"]


async def test_a_caller_that_is_cancelled_beside_the_answer_breaks_nothing_off() -> None:
    """Goal: the answer and the cancellation come in one step, and cancellations come twice: the work still ends."""
    unbroken, work = Unbroken(), Work()
    caller = asyncio.ensure_future(unbroken.in_place(work.run()))
    await asyncio.sleep(0)
    work.gate.set()
    caller.cancel()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await unbroken.wait()
    assert work.steps == ["begun", "ended"]


async def test_a_caller_may_be_cancelled_at_each_step_of_its_work() -> None:
    for steps in range(1, 6):
        unbroken, work = Unbroken(), Work()
        work.gate.set()
        caller = asyncio.ensure_future(unbroken.in_place(work.run()))
        for _ in range(steps):
            await asyncio.sleep(0)
        caller.cancel()
        await asyncio.wait([caller])
        await unbroken.wait()
        assert work.steps == ["begun", "ended"]


async def test_whoever_waits_for_the_end_waits_for_what_is_done_in_place() -> None:
    unbroken, work = Unbroken(), Work()
    caller = asyncio.ensure_future(unbroken.in_place(work.run()))
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(unbroken.wait())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    work.gate.set()
    await waiting
    assert (work.steps, await caller) == (["begun", "ended"], "done")


async def test_what_the_work_waits_for_may_be_cancelled_without_its_caller() -> None:
    unbroken = Unbroken()
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def asks() -> str:
        try:
            await answer
        except asyncio.CancelledError:
            return "seen"
        return "missed"

    caller = asyncio.ensure_future(unbroken.in_place(asks()))
    await asyncio.sleep(0)
    answer.cancel()
    assert await caller == "seen"


async def test_work_that_never_waits_needs_no_task() -> None:
    unbroken = Unbroken()

    async def ready(problem: Exception | None) -> int:
        if problem is not None:
            raise problem
        return 7

    assert await unbroken.in_place(ready(None)) == 7
    with pytest.raises(ValueError, match="broken"):
        await unbroken.in_place(ready(ValueError("broken")))


async def test_what_the_work_waits_for_may_fail() -> None:
    """Goal: a failure goes to where the work waits, as it would without anything in between."""
    unbroken = Unbroken()
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def asks() -> str:
        try:
            await answer
        except OSError:
            return "seen"
        return "missed"

    caller = asyncio.ensure_future(unbroken.in_place(asks()))
    await asyncio.sleep(0)
    answer.set_exception(OSError())
    assert await caller == "seen"
