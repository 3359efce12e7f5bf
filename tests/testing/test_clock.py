"""The clock that tests own."""

import asyncio

import pytest

from luciole.testing.clock import FakeClock


async def test_time_stands_still_until_it_is_advanced() -> None:
    clock = FakeClock(1_000)
    sleeper = asyncio.create_task(clock.sleep(10))
    await clock.settle()
    assert (clock.now_us(), clock.monotonic_us(), sleeper.done()) == (1_000, 0, False)
    await clock.advance(9)
    assert not sleeper.done()
    await clock.advance(1)
    assert (clock.now_us(), clock.monotonic_us(), sleeper.done()) == (1_010, 10, True)


async def test_sleepers_wake_in_order_and_each_sees_its_own_instant() -> None:
    clock = FakeClock(0)
    seen: list[tuple[str, int]] = []

    async def sleep_twice(name: str, first_us: int, second_us: int) -> None:
        await clock.sleep(first_us)
        seen.append((name, clock.now_us()))
        await clock.sleep(second_us)
        seen.append((name, clock.now_us()))

    async with asyncio.TaskGroup() as group:
        group.create_task(sleep_twice("a", 30, 30))
        group.create_task(sleep_twice("b", 10, 20))
        group.create_task(sleep_twice("c", 30, 5))
        await clock.advance(100)
    assert seen == [("b", 10), ("a", 30), ("c", 30), ("b", 30), ("c", 35), ("a", 60)]


async def test_what_a_wake_up_sets_off_is_done_before_the_next() -> None:
    clock = FakeClock(0)
    queue: asyncio.Queue[int] = asyncio.Queue()
    seen: list[tuple[int, int]] = []

    async def tick() -> None:
        while True:
            await clock.sleep(10)
            for _ in range(3):
                await asyncio.sleep(0)
            await queue.put(clock.now_us())

    async def take() -> None:
        while True:
            put_us = await queue.get()
            await asyncio.sleep(0)
            seen.append((put_us, clock.now_us()))

    tasks = [asyncio.create_task(tick()), asyncio.create_task(take())]
    await clock.advance(50)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert seen == [(at_us, at_us) for at_us in (10, 20, 30, 40, 50)]


async def test_waiting_ends_with_the_event_or_with_the_time() -> None:
    clock = FakeClock()
    event = asyncio.Event()
    timed_out = asyncio.create_task(clock.wait(event, 10))
    await clock.advance(10)
    assert await timed_out is False
    woken = asyncio.create_task(clock.wait(event, 10))
    await clock.settle()
    event.set()
    assert await woken is True
    assert await clock.wait(event, 10) is True
    event.clear()
    assert await clock.wait(event, 0) is False


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock(0)
    cancelled = asyncio.create_task(clock.sleep(10))
    other = asyncio.create_task(clock.sleep(20))
    await clock.settle()
    cancelled.cancel()
    await clock.advance(20)
    assert cancelled.cancelled()
    assert other.done()


async def test_a_suspended_machine_wakes_its_sleepers_late() -> None:
    clock = FakeClock(0)
    seen: list[int] = []

    async def doze() -> None:
        await clock.sleep(10)
        seen.append(clock.now_us())

    sleeper = asyncio.create_task(doze())
    await clock.settle()
    clock.jump(1_000)
    await clock.settle()
    assert not sleeper.done()
    await clock.advance(0)
    assert seen == [1_000]


async def test_a_set_wall_clock_moves_nothing_else() -> None:
    clock = FakeClock(1_000)
    sleeper = asyncio.create_task(clock.sleep(10))
    clock.shift_wall(-500)
    await clock.advance(9)
    assert (clock.now_us(), clock.monotonic_us(), sleeper.done()) == (509, 9, False)
    sleeper.cancel()
    await clock.settle()
    assert sleeper.cancelled()


async def test_tasks_that_never_rest_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luciole.testing.clock.ROUNDS_MAX", 100)
    clock = FakeClock()

    async def spin() -> None:
        while True:
            await clock.sleep(0)

    spinner = asyncio.create_task(spin())
    with pytest.raises(RuntimeError, match="still busy after 100 rounds"):
        await clock.advance(1)
    spinner.cancel()
