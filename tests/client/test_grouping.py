"""Grouping: no lost wake-up, no answer before the commit, a failure for all that were in it."""

import asyncio
from collections.abc import Sequence

import pytest

from luciole import limits
from luciole.client.grouping import Enqueuer
from luciole.errors import InvalidValue, OutcomeUnknown, StoreUnavailable
from luciole.model.execution import Enqueued, EnqueueRequest
from luciole.model.ids import ExecutionKey
from luciole.runtime.clock import SystemClock
from luciole.store.memory import MemoryState, MemoryStore


class GatedStore(MemoryStore):
    """A store whose enqueues wait at a gate, and fail as told."""

    def __init__(self) -> None:
        super().__init__(MemoryState(), SystemClock())
        self.gate = asyncio.Event()
        self.sizes: list[int] = []
        self.problems: list[Exception] = []
        self.poison: int | None = None

    async def enqueue(self, requests: Sequence[EnqueueRequest]) -> tuple[Enqueued, ...]:
        self.sizes.append(len(requests))
        await self.gate.wait()
        if any(request.request_id == self.poison for request in requests):
            raise InvalidValue("poison")
        answers = await super().enqueue(requests)
        if self.problems:
            raise self.problems.pop()
        return answers


@pytest.fixture
async def store() -> GatedStore:
    opened = GatedStore()
    await opened.open()
    return opened


def request(number: int, *, key: str | None = None, payload: bytes = b"{}") -> EnqueueRequest:
    return EnqueueRequest(request_id=number, shard=number % 32, job_id=1, payload=payload, key=key)


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("callers", "sizes"), [(15, [15]), (16, [8, 8]), (101, [51, 50])])
async def test_whatever_is_queued_goes_in_one_statement_or_a_crowd_in_two(
    store: GatedStore, callers: int, sizes: list[int]
) -> None:
    enqueuer = Enqueuer(store)
    tasks = [asyncio.create_task(enqueuer.enqueue(request(n))) for n in range(1, callers + 1)]
    await settle()
    assert not any(task.done() for task in tasks)  # I9: nobody is answered before the commit.
    store.gate.set()
    keys = {(await task).key for task in tasks}
    assert (len(keys), store.sizes) == (callers, sizes)


async def test_a_crowd_that_comes_while_one_is_under_way_does_not_wait_for_it(store: GatedStore) -> None:
    """Goal: the halves of a crowd take turns, and there are never more than two (I10)."""
    enqueuer = Enqueuer(store)
    first = asyncio.create_task(enqueuer.enqueue(request(1)))
    await settle()
    few = [asyncio.create_task(enqueuer.enqueue(request(n))) for n in range(2, 17)]
    await settle()
    assert store.sizes == [1]
    more = [asyncio.create_task(enqueuer.enqueue(request(n))) for n in range(17, 60)]
    await settle()
    assert store.sizes == [1, 58]
    most = [asyncio.create_task(enqueuer.enqueue(request(n))) for n in range(60, 99)]
    await settle()
    assert store.sizes == [1, 58]
    store.gate.set()
    await asyncio.gather(first, *few, *more, *most)
    assert sum(store.sizes) == 98


async def test_those_that_come_while_one_is_under_way_share_the_next(store: GatedStore) -> None:
    enqueuer = Enqueuer(store)
    first = asyncio.create_task(enqueuer.enqueue(request(1)))
    await settle()
    others = [asyncio.create_task(enqueuer.enqueue(request(n))) for n in range(2, 12)]
    await settle()
    store.gate.set()
    await asyncio.gather(first, *others)
    assert store.sizes == [1, 10]


async def test_a_failed_commit_fails_all_that_were_in_it(store: GatedStore) -> None:
    enqueuer = Enqueuer(store)
    store.problems = [StoreUnavailable("gone")]
    tasks = [asyncio.create_task(enqueuer.enqueue(request(n))) for n in range(1, 6)]
    await settle()
    late = asyncio.create_task(enqueuer.enqueue(request(6)))
    store.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 5  # I9: all of them.
    assert (await late).created


async def test_one_poisoned_request_does_not_take_the_others_with_it(store: GatedStore) -> None:
    enqueuer = Enqueuer(store)
    store.gate.set()
    store.poison = 3
    tasks = [asyncio.create_task(enqueuer.enqueue(request(n))) for n in range(1, 9)]
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [n for n, answer in enumerate(answers, 1) if isinstance(answer, InvalidValue)] == [3]  # I7: it alone.
    assert sum(isinstance(answer, Enqueued) for answer in answers) == 7


async def test_an_unknown_outcome_is_asked_again_where_that_makes_no_second_run(store: GatedStore) -> None:
    enqueuer = Enqueuer(store)
    store.gate.set()
    store.problems = [OutcomeUnknown("broke")]
    answer = await enqueuer.enqueue(request(1, key="order-1"))
    assert (answer.created, len(store.sizes)) == (False, 2)  # It had been written.
    store.problems = [OutcomeUnknown("broke")]
    with pytest.raises(OutcomeUnknown):
        await enqueuer.enqueue(request(2))
    assert (await store.backlog()).open_entries == 2


async def test_a_caller_that_gives_up_breaks_nobody_else(store: GatedStore) -> None:
    enqueuer = Enqueuer(store)
    first = asyncio.create_task(enqueuer.enqueue(request(1)))
    await settle()
    second, third = (asyncio.create_task(enqueuer.enqueue(request(n))) for n in (2, 3))
    await settle()
    first.cancel()
    second.cancel()
    await settle()
    store.gate.set()
    assert (await third).created
    assert store.sizes == [1, 1]  # The second had not left yet, the first could not be called back.


async def test_a_group_is_bounded_in_count_and_bytes(store: GatedStore) -> None:
    enqueuer = Enqueuer(store)
    store.gate.set()
    big = b'"' + b"x" * (limits.PAYLOAD_BYTES_MAX - 2) + b'"'
    await asyncio.gather(*(enqueuer.enqueue(request(n, payload=big)) for n in range(1, 11)))
    assert store.sizes == [8, 2]
    store.sizes.clear()
    crowd = range(100, 101 + 2 * limits.ENQUEUE_BATCH_MAX)
    await asyncio.gather(*(enqueuer.enqueue(request(n)) for n in crowd))
    assert store.sizes == [limits.ENQUEUE_BATCH_MAX, limits.ENQUEUE_BATCH_MAX, 1]


async def test_a_crowd_waits_for_room(store: GatedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENQUEUE_QUEUE_MAX", 3)
    enqueuer = Enqueuer(store)
    tasks = [asyncio.create_task(enqueuer.enqueue(request(n))) for n in range(1, 21)]
    await settle()
    store.gate.set()
    answers = await asyncio.gather(*tasks)
    assert max(store.sizes) <= 3  # I10: at no time more.
    assert len({answer.key for answer in answers}) == 20


async def test_closing_waits_for_what_is_queued(store: GatedStore) -> None:
    enqueuer = Enqueuer(store)
    task = asyncio.create_task(enqueuer.enqueue(request(1)))
    await settle()
    closing = asyncio.create_task(enqueuer.close())
    await settle()
    assert not closing.done()
    store.gate.set()
    await closing
    with pytest.raises(StoreUnavailable, match="closed"):
        await enqueuer.enqueue(request(2))
    answer: Enqueued = await task
    assert isinstance(answer.key, ExecutionKey)


async def _alone_before(store: GatedStore) -> Enqueuer:
    enqueuer = Enqueuer(store)
    store.gate.set()
    await enqueuer.enqueue(request(1))
    store.gate.clear()
    store.sizes.clear()
    return enqueuer


async def test_who_comes_after_a_lone_caller_asks_the_store_by_itself(store: GatedStore) -> None:
    enqueuer = await _alone_before(store)
    tasks = [asyncio.create_task(enqueuer.enqueue(request(n))) for n in range(2, 6)]
    await asyncio.sleep(0)
    assert store.sizes == [1]  # In the caller's own step.
    await settle()
    assert not any(task.done() for task in tasks)  # I9
    store.gate.set()
    assert len({(await task).key for task in tasks}) == 4
    assert store.sizes == [1, 3]  # The others have shared the next.


async def test_in_a_crowd_nobody_asks_by_itself(store: GatedStore) -> None:
    enqueuer = await _alone_before(store)
    for turn in range(3):
        tasks = [asyncio.create_task(enqueuer.enqueue(request(10 * turn + n))) for n in range(2, 10)]
        await settle()
        store.gate.set()
        await asyncio.gather(*tasks)
        store.gate.clear()
    assert store.sizes == [1, 7, 8, 8]


async def test_a_lone_caller_that_fails_or_gives_up_breaks_nobody_else(store: GatedStore) -> None:
    enqueuer = await _alone_before(store)
    store.poison = 2
    failed = asyncio.create_task(enqueuer.enqueue(request(2)))
    await settle()
    store.gate.set()
    with pytest.raises(InvalidValue):
        await failed
    store.gate.clear()
    gone = asyncio.create_task(enqueuer.enqueue(request(3)))
    await settle()
    late = asyncio.create_task(enqueuer.enqueue(request(4)))
    await settle()
    gone.cancel()
    store.gate.set()
    assert (await late).created


async def test_closing_waits_for_a_lone_caller_and_for_those_behind_it(store: GatedStore) -> None:
    enqueuer = await _alone_before(store)
    tasks = [asyncio.create_task(enqueuer.enqueue(request(n))) for n in (2, 3)]
    await settle()
    closing = asyncio.create_task(enqueuer.close())
    await settle()
    assert not closing.done()
    store.gate.set()
    await closing
    assert [(await task).created for task in tasks] == [True, True]
