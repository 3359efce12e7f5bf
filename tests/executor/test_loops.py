"""Async handlers hand in their ends by turns of their loop."""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

from luciole.executor.attempt import Attempt, Finished, StoreTime
from luciole.executor.loops import LoopPlace
from luciole.executor.registry import HandlerRegistry
from luciole.runtime.clock import SystemClock
from tests.executor.scripted import PATIENCE_S, an_attempt


class Ends:
    """Takes what is handed in."""

    def __init__(self, expected: int) -> None:
        self.batches: list[list[Finished]] = []
        self.all = asyncio.Event()
        self._expected = expected

    def put_all(self, items: Iterable[Finished]) -> None:
        self.batches.append(list(items))
        if sum(map(len, self.batches)) >= self._expected:
            self.all.set()


async def test_what_ends_in_one_turn_is_handed_in_at_once_and_each_end_once() -> None:
    registry = HandlerRegistry()

    async def at_once() -> None: ...

    async def later() -> None:
        await asyncio.sleep(0)

    for function in (at_once, later):
        registry.add(function.__name__, function)
    ends = Ends(60)
    place = LoopPlace(asyncio.get_running_loop(), StoreTime(SystemClock()), cast("Any", ends))
    attempts = []
    for number in range(60):
        name = "at_once" if number < 50 else "later"
        handler = registry.get(name)
        assert handler is not None
        attempts.append(Attempt(an_attempt(name, number=number), handler, "node"))
    place.start(attempts)
    async with asyncio.timeout(PATIENCE_S):
        await ends.all.wait()
    assert list(map(len, ends.batches)) == [50, 10]
    assert {one for batch in ends.batches for one, _, _ in batch} == set(attempts)
