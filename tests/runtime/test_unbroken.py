"""Work that its caller can't break off."""

import asyncio

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


@pytest.mark.parametrize("at_once", [False, True])
async def test_work_is_finished_though_its_caller_is_cancelled(at_once: bool) -> None:  # noqa: FBT001 - a case
    unbroken, work = Unbroken(), Work()
    caller = asyncio.ensure_future(unbroken.run(work.run(), at_once=at_once))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert work.steps == ["begun"]
    work.gate.set()
    await unbroken.wait()
    assert work.steps == ["begun", "ended"]


@pytest.mark.parametrize("at_once", [False, True])
async def test_the_caller_is_told_what_came_of_it(at_once: bool) -> None:  # noqa: FBT001 - a case
    unbroken, work = Unbroken(), Work()
    work.gate.set()
    assert await unbroken.run(work.run(), at_once=at_once) == "done"
    with pytest.raises(ValueError, match="broken"):
        await unbroken.run(work.run(ValueError("broken")), at_once=at_once)
    await unbroken.wait()


async def test_what_is_begun_at_once_is_begun_in_the_callers_own_step() -> None:
    unbroken, work = Unbroken(), Work()
    waits = unbroken.run(work.run(), at_once=True)
    waits.send(None)
    assert work.steps == ["begun"]
    waits.close()
    work.gate.set()
    await unbroken.wait()
    assert work.steps == ["begun", "ended"]


async def test_work_that_never_waits_needs_no_task() -> None:
    unbroken = Unbroken()

    async def ready(problem: Exception | None) -> int:
        if problem is not None:
            raise problem
        return 7

    assert await unbroken.run(ready(None), at_once=True) == 7
    with pytest.raises(ValueError, match="broken"):
        await unbroken.run(ready(ValueError("broken")), at_once=True)


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

    caller = asyncio.ensure_future(unbroken.run(asks(), at_once=True))
    await asyncio.sleep(0)
    answer.set_exception(OSError())
    assert await caller == "seen"
