"""What memory believes of the store, where the two might differ."""

import pytest

from luciole.gateway.ahead import next_ahead_us, stand
from luciole.gateway.flights import Flights
from luciole.gateway.holds import Holds
from luciole.gateway.jobs import JobShelf
from luciole.limits import RIPEN_MAX, SECOND_US
from luciole.model.ids import ExecutionKey
from luciole.model.job import JobSpec
from luciole.model.lease import Lease
from luciole.model.outbox import Entry, EntryState, Withdrawals
from luciole.runtime.telemetry import Telemetry
from luciole.store.memory import MemoryState, MemoryStore
from luciole.testing.clock import FakeClock
from luciole.testing.factories import an_entry

NOW_US = 1_000 * SECOND_US


def a_lease(fence: int, shard: int = 0) -> Lease:
    return Lease(shard=shard, holder="a" * 16, fence=fence, expires_us=0)


async def some_holds(*, held_max: int = 100) -> Holds:
    clock = FakeClock()
    store = MemoryStore(MemoryState(), clock, shards=4)
    await store.open()
    await store.intern_jobs((JobSpec(handler="report"),))
    jobs = JobShelf(store, Telemetry(clock))
    await jobs.load([1])
    holds = Holds(jobs, Flights(), held_max=held_max)
    holds.open(a_lease(1), doubtful_before_us=None, polled_from_us=0)
    holds.shards[0].complete = True
    return holds


def entries(count: int, **fields: object) -> list[Entry]:
    return [an_entry(ExecutionKey(0, 1, number, 0), **fields) for number in range(count)]


def drawn(holds: Holds) -> list[Entry]:
    return [entry for line in holds.lines.counts() for entry in holds.lines.draw(line, 1_000)]


async def test_an_entry_that_was_settled_while_it_was_read_is_not_taken_from_the_stale_read() -> None:
    """Two actors: a poll reads an entry that is under way, the reporter settles it, then the poll's answer arrives.

    Taken for news, it would be delivered again with a token that was used.
    """
    # I6: one token goes to one session only.
    holds = await some_holds()
    under_way, fresh = entries(2, state=EntryState.READY)
    holds.add([under_way], NOW_US)
    assert drawn(holds) == [under_way]
    read = holds.begin_read()
    holds.forget(under_way.key)
    assert holds.end_read(read, [under_way, fresh]) == [fresh]
    # A read that begins after it is true again.
    assert holds.end_read(holds.begin_read(), [under_way]) == [under_way]


async def test_a_future_entry_waits_for_its_due_time_and_is_known_to_be_planned_ahead() -> None:
    # I11: never before it.
    holds = await some_holds()
    (entry,) = entries(1, due_us=NOW_US + 10)
    stand(holds, [0], Withdrawals(NOW_US, {0: 7}))
    holds.add([entry], NOW_US)
    assert (holds.ripen(NOW_US + 9), next_ahead_us(holds)) == (None, NOW_US + 10)
    assert holds.ripen(NOW_US + 10) is None
    assert drawn(holds) == []  # It may have been withdrawn.
    stand(holds, [0], Withdrawals(NOW_US + 10, {0: 7}))
    assert holds.ripen(NOW_US + 10) is None
    assert entry.key not in holds.shards[0].doubted
    assert drawn(holds) == [entry]


@pytest.mark.parametrize("doubt", ["withdrawn before", "while it was planned", "not asked before", "nobody can tell"])
async def test_what_may_have_been_withdrawn_after_it_was_planned_is_in_doubt(doubt: str) -> None:
    # I2: an edit, a pause or a cancel wins until the due time.
    holds = await some_holds()
    early, entry = entries(2, due_us=NOW_US + 10)
    entry = entry._replace(due_us=NOW_US + 20)
    revision = {"nobody can tell": {}}.get(doubt, {0: 8})
    if doubt != "not asked before":
        stand(holds, [0], Withdrawals(NOW_US, {0: 7} if revision else {}))
    read = holds.begin_read(NOW_US)
    if doubt == "while it was planned":
        stand(holds, [0], Withdrawals(NOW_US + 10, revision))
    holds.add(holds.end_read(read, [early, entry]), NOW_US)
    stand(holds, [0], Withdrawals(NOW_US + 20, revision))
    assert holds.ripen(NOW_US + 20) is None
    assert entry.key in holds.shards[0].doubted
    assert drawn(holds) == [early, entry]


async def test_where_nobody_can_tell_what_was_planned_for_an_instant_asked_about_already_is_in_doubt() -> None:
    """The node's reckoning of the store's clock may be late: what it takes for ahead is due by the answer."""
    # I2: an edit, a pause or a cancel wins until the due time.
    holds = await some_holds()
    (entry,) = entries(1, due_us=NOW_US + 10)
    stand(holds, [0], Withdrawals(NOW_US + 20, {}))
    holds.add([entry], NOW_US)
    holds.ripen(NOW_US + 10)
    assert drawn(holds) == [entry]
    assert entry.key in holds.shards[0].doubted


async def test_a_withdrawal_casts_no_doubt_on_what_was_planned_after_it_nor_on_what_is_due() -> None:
    holds = await some_holds()
    due, later = entries(2, due_us=NOW_US + 10)
    later = later._replace(due_us=NOW_US + 20)
    stand(holds, [0], Withdrawals(NOW_US, {0: 7}))
    holds.add([due], NOW_US)
    stand(holds, [0], Withdrawals(NOW_US + 10, {0: 7}))
    holds.ripen(NOW_US + 10)
    stand(holds, [0], Withdrawals(NOW_US + 11, {0: 8}))
    holds.add([later], NOW_US + 11)
    stand(holds, [0], Withdrawals(NOW_US + 20, {0: 8}))
    holds.ripen(NOW_US + 20)
    assert [entry.key in holds.shards[0].doubted for entry in (due, later)] == [False, False]


async def test_what_is_planned_ahead_comes_back_with_its_shard_in_doubt() -> None:
    """Two actors: the shard is given up, an edit withdraws, and the shard is taken again before anybody asked."""
    holds = await some_holds()
    (entry,) = entries(1, due_us=NOW_US + 10)
    stand(holds, [0], Withdrawals(NOW_US, {0: 7}))
    holds.add([entry], NOW_US)
    holds.suspend([0], 0)
    stand(holds, [1], Withdrawals(NOW_US + 10, {1: 0}))
    assert holds.resume(a_lease(2), NOW_US + 10)
    holds.ripen(NOW_US + 10)
    assert drawn(holds) == [entry]
    assert entry.key in holds.shards[0].doubted


async def test_much_that_ripens_at_once_ripens_in_pieces_top_priority_first() -> None:
    holds = await some_holds(held_max=2 * RIPEN_MAX)
    many = entries(RIPEN_MAX + 5, due_us=NOW_US + 10)
    top = [entry._replace(priority=9) for entry in many[-5:]]
    stand(holds, [0], Withdrawals(NOW_US, {0: 0}))
    holds.add([*many[:-5], *top], NOW_US)
    stand(holds, [0], Withdrawals(NOW_US + 10, {0: 0}))
    assert holds.ripen(NOW_US + 10) == NOW_US + 10
    first = [entry for line in holds.lines.counts() for entry in holds.lines.draw(line, 2 * RIPEN_MAX)]
    assert len(first) == RIPEN_MAX
    assert set(top) <= set(first)
    assert holds.ripen(NOW_US + 10) is None


async def test_a_shard_given_up_and_taken_again_at_once_goes_on() -> None:
    holds = await some_holds()
    waiting, settled, taken = entries(3)
    holds.add([waiting, settled, taken], NOW_US)
    holds.suspend([0], 0)
    assert drawn(holds) == []
    holds.forget(settled.key)
    holds.reserved.add(taken.key)
    assert holds.resume(a_lease(2), NOW_US)
    assert drawn(holds) == [waiting]


@pytest.mark.parametrize("reason", ["another held it", "something is astray", "it was not complete"])
async def test_a_shard_is_not_gone_on_with_when_memory_may_be_wrong(reason: str) -> None:
    # I3: a fence that jumped says that another holder came between.
    holds = await some_holds()
    (entry,) = entries(1)
    holds.add([entry], NOW_US)
    if reason == "something is astray":
        holds.stray(entry.key)
    if reason == "it was not complete":
        holds.shards[0].complete = False
    holds.suspend([0], 0)
    assert not holds.resume(a_lease(3 if reason == "another held it" else 2), NOW_US)
    assert drawn(holds) == []


async def test_only_a_shard_with_everything_accounted_for_is_clean() -> None:
    holds = await some_holds()
    assert holds.clean(0)
    holds.shards[0].doubtful_before_us = NOW_US
    assert not holds.clean(0)
    assert not holds.clean(1)


async def test_a_retry_replaces_its_entry_and_the_old_one_is_passed_over() -> None:
    holds = await some_holds()
    (entry,) = entries(1)
    holds.add([entry], NOW_US)
    again = entry._replace(attempt=2, state=EntryState.READY)
    holds.replace(again, NOW_US)
    assert drawn(holds) == [again]
    assert holds.shards[0].ready == 1


async def test_room_is_bounded_and_comes_back() -> None:
    # I10: what does not fit stays in the store.
    holds = await some_holds(held_max=3)
    first, *_ = rest = entries(3)
    holds.add(rest, NOW_US)
    assert holds.room(0) == 0
    assert holds.room(1) == 0
    holds.forget(first.key)
    assert holds.room(0) == 1
