"""States asked for at once share a statement; nobody is told what was true before the question."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from luciole.client.looking import StateLooks
from luciole.errors import InvalidValue, LucioleError, StoreUnavailable
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey

KEYS = [ExecutionKey(0, 0, 0, -number) for number in range(1, 6)]


class Asked:
    """A store that answers when it is told to."""

    def __init__(self) -> None:
        self.looks: list[list[int]] = []
        self.state = ExecutionState.READY
        self.problem: LucioleError | None = None
        self.refused: ExecutionKey | None = None
        self.begun = asyncio.Event()
        self.go = asyncio.Event()

    async def execution_states(self, keys: Sequence[ExecutionKey]) -> tuple[ExecutionState | None, ...]:
        self.looks.append([-key.part for key in keys])
        seen = self.state
        self.begun.set()
        await asyncio.sleep(0)  # As a store that has to wait for its answer.
        await self.go.wait()
        if self.refused in keys:
            raise InvalidValue("it can't be asked for")
        if self.problem is not None:
            raise self.problem
        return (seen,) * len(keys)


@pytest.fixture
def store() -> Asked:
    return Asked()


@pytest.fixture
def looks(store: Asked) -> StateLooks:
    partial: Any = store  # Of a store it is all that is asked.
    return StateLooks(partial)


async def test_those_who_ask_during_a_look_share_the_next_and_are_told_nothing_older(
    store: Asked, looks: StateLooks
) -> None:
    first = asyncio.create_task(looks.state(KEYS[0]))
    await store.begun.wait()
    store.state = ExecutionState.SUCCEEDED
    rest = [asyncio.create_task(looks.state(key)) for key in [*KEYS[1:], KEYS[0]]]
    await asyncio.sleep(0)
    store.go.set()
    assert await first is ExecutionState.READY
    assert await asyncio.gather(*rest) == [ExecutionState.SUCCEEDED] * 5
    assert store.looks == [[1], [2, 3, 4, 5, 1]]


async def test_who_asks_again_at_once_joins_those_who_were_told_with_them(store: Asked, looks: StateLooks) -> None:
    store.go.set()

    async def caller(key: ExecutionKey) -> None:
        for _ in range(3):
            await looks.state(key)

    await asyncio.gather(*map(caller, KEYS))
    assert max(map(len, store.looks)) == len(KEYS)
    assert len(store.looks) <= 5


async def test_one_that_is_refused_does_not_take_the_others_with_it(store: Asked, looks: StateLooks) -> None:
    store.refused = KEYS[2]
    asked = [asyncio.create_task(looks.state(key)) for key in KEYS]
    await store.begun.wait()
    store.go.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(answer) for answer in answers] == [ExecutionState, ExecutionState, InvalidValue, *[ExecutionState] * 2]


async def test_a_failure_reaches_all_who_shared_it_and_nobody_after_them(store: Asked, looks: StateLooks) -> None:
    store.problem = StoreUnavailable("the store went away")
    asked = [asyncio.create_task(looks.state(key)) for key in KEYS]
    await store.begun.wait()
    store.go.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 5
    store.problem = None
    assert await looks.state(KEYS[0]) is ExecutionState.READY


async def test_a_caller_that_gives_up_leaves_the_others_their_answers(store: Asked, looks: StateLooks) -> None:
    leader, follower, last = [asyncio.create_task(looks.state(key)) for key in KEYS[:3]]
    await store.begun.wait()
    leader.cancel()
    follower.cancel()
    await asyncio.wait([leader, follower])
    store.go.set()
    assert await last is ExecutionState.READY
    await looks.close()
    assert store.looks == [[1], [3]]


async def test_those_who_had_not_had_their_turn_hear_that_the_looks_were_given_up(
    store: Asked, looks: StateLooks
) -> None:
    asked = [asyncio.create_task(looks.state(key)) for key in KEYS[:2]]
    await store.begun.wait()
    store.begun.clear()
    store.go.set()
    await asked[0]
    store.go.clear()
    await store.begun.wait()
    late = asyncio.create_task(looks.state(KEYS[2]))
    await asyncio.sleep(0)
    pump = looks._pump  # noqa: SLF001 - what an event loop that ends cancels
    assert pump is not None
    pump.cancel()
    await asyncio.wait([asked[1], late, pump])
    assert (asked[1].cancelled(), late.cancelled()) == (True, True)
    store.go.set()
    assert await looks.state(KEYS[0]) is ExecutionState.READY
