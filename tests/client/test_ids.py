"""Ids from segments: nobody gets one twice, and few round trips bring many."""

import asyncio

import pytest

from luciole import limits
from luciole.client.ids import IdSource
from luciole.errors import StoreUnavailable
from luciole.model.ids import IdSegment
from luciole.store.memory import MemoryState, MemoryStore
from luciole.testing.clock import FakeClock


class CountingStore(MemoryStore):
    """A store that notes the segments that it gave, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__(MemoryState(), FakeClock())
        self.given: list[int] = []
        self.down = False

    async def take_ids(self, count: int) -> IdSegment:
        await asyncio.sleep(0)  # Others run meanwhile, as they do while a database answers.
        if self.down:
            raise StoreUnavailable("down")
        self.given.append(count)
        return await super().take_ids(count)


async def opened() -> CountingStore:
    store = CountingStore()
    await store.migrate(shards=1)
    await store.open()
    return store


@pytest.mark.parametrize("at_hand", [False, True])
async def test_a_bulk_takes_its_ids_in_one_round_trip(*, at_hand: bool) -> None:
    store = await opened()
    ids = IdSource(store)
    if at_hand:
        await ids.fill()
    found = await ids.take(50_000)
    bulk = [count for count in store.given if count != limits.ID_SEGMENT]
    await ids.close()
    assert found == sorted(set(found))
    assert len(found) == 50_000
    assert bulk == [50_000 - limits.ID_SEGMENT * at_hand]


async def test_a_crowd_and_bulks_never_share_an_id() -> None:
    ids = IdSource(await opened())
    counts = [1, 3_000, 1, 700, 1_024, 5_000, 1] * 20
    found = await asyncio.gather(*(ids.take(count) for count in counts))
    await ids.close()
    taken = [one for each in found for one in each]
    assert [len(each) for each in found] == counts
    assert len(set(taken)) == sum(counts)


async def test_a_lone_caller_seldom_waits_for_a_segment() -> None:
    store = await opened()
    ids = IdSource(store)
    for _ in range(10 * limits.ID_SEGMENT):
        await ids.take()
        await asyncio.sleep(0)
    await ids.close()
    assert set(store.given) == {limits.ID_SEGMENT}
    assert len(store.given) <= 11


async def test_who_runs_out_of_ids_gets_the_error_and_the_next_one_tries_again() -> None:
    store = await opened()
    ids = IdSource(store)
    store.down = True
    with pytest.raises(StoreUnavailable):
        await ids.take()
    store.down = False
    assert len(await ids.take(3)) == 3
    await ids.close()
