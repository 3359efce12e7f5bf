import asyncio

import pytest

from luciole.errors import StoreUnavailable
from luciole.limits import MS_US, SECOND_US
from luciole.runtime.backoff import Backoff
from luciole.runtime.chance import seeded_chance
from luciole.runtime.lifecycle import Lifecycle, LoopGroup, Part
from luciole.runtime.loop import Loop
from luciole.testing.clock import FakeClock


def a_loop(clock: FakeClock, ticks: list[int | Exception], **fields: object) -> Loop:
    """Return a loop whose ticks return or raise these in turn, then pause for long; `seen` holds when each began."""

    async def tick() -> int:
        step = ticks.pop(0) if ticks else 100 * SECOND_US
        if isinstance(step, Exception):
            raise step
        return step

    return Loop(name="test", tick=tick, clock=clock, chance=lambda: 0.0, **fields)  # type: ignore[arg-type]


async def test_a_loop_sleeps_as_long_as_its_tick_says_and_no_longer_than_its_bound() -> None:
    clock = FakeClock()
    loop = a_loop(clock, [10 * MS_US], pause_max_us=500 * MS_US)
    running = asyncio.create_task(loop.run())
    await clock.advance(9 * MS_US)
    assert loop.ticks == 1
    await clock.advance(1 * MS_US)
    assert loop.ticks == 2
    await clock.advance(500 * MS_US)
    assert loop.ticks == 3
    loop.stop()
    await running


async def test_a_poke_ends_the_pause_also_when_it_comes_during_the_tick() -> None:
    clock = FakeClock()
    loop = a_loop(clock, [])
    running = asyncio.create_task(loop.run())
    await clock.settle()
    loop.poke()
    await clock.settle()
    assert loop.ticks == 2
    loop.stop()
    await running


@pytest.mark.parametrize("error", [StoreUnavailable("down"), RuntimeError("a surprise"), KeyError("x")])
async def test_a_loop_survives_whatever_its_tick_raises_and_comes_back(error: Exception) -> None:
    clock = FakeClock()
    loop = a_loop(clock, [error] * 12, backoff=Backoff(first_us=10 * MS_US, max_us=80 * MS_US), failures_max=10)
    running = asyncio.create_task(loop.run())
    await clock.settle()
    assert (loop.errors, loop.failing) == (1, False)
    loop.poke()  # What fails is not hammered.
    await clock.settle()
    assert loop.errors == 1
    await clock.advance(700 * MS_US)
    assert loop.failing
    await clock.advance(5 * 80 * MS_US)
    assert (loop.errors, loop.failures, loop.failing, loop.ticks > 0) == (12, 0, False, True)
    loop.stop()
    await running


async def test_a_tick_that_hangs_shows_as_a_stall_and_sleeping_does_not() -> None:
    clock = FakeClock()
    hang = asyncio.Event()

    async def tick() -> int:
        await hang.wait()
        return 10 * SECOND_US

    loop = Loop(name="test", tick=tick, clock=clock, chance=lambda: 0.0, pause_max_us=SECOND_US)
    running = asyncio.create_task(loop.run())
    await clock.advance(30 * SECOND_US)
    assert loop.stalled_us() == 30 * SECOND_US
    hang.set()
    await clock.advance(30 * SECOND_US)
    assert loop.stalled_us() <= SECOND_US
    loop.stop()
    await running


def test_backoff_grows_to_its_bound_and_is_spread() -> None:
    backoff = Backoff(first_us=100, factor=2, max_us=1_000, spread=0.5)
    assert [backoff.delay_us(failures, 0.0) for failures in (1, 2, 3, 4, 5, 999)] == [100, 200, 400, 800, 1_000, 1_000]
    assert backoff.delay_us(5, 0.999) == 500


async def test_a_group_cancels_only_loops_that_do_not_end_their_tick() -> None:
    clock = FakeClock()
    group = LoopGroup(clock, seeded_chance(1), owner="x")

    async def forever() -> int:
        await asyncio.Event().wait()
        return 0

    async def good() -> int:
        return SECOND_US

    group.add("forever", forever)
    group.add("good", good)
    await group.start()
    await clock.settle()
    stopping = asyncio.create_task(group.stop(grace_us=SECOND_US))
    await clock.advance(SECOND_US - 1)
    assert not stopping.done()
    await clock.advance(1)
    await stopping
    assert group["good"].ticks == 1


async def test_a_group_that_stops_does_not_wait_for_loops_that_only_listen() -> None:
    clock = FakeClock()
    group = LoopGroup(clock, seeded_chance(1), owner="x")

    async def listen() -> int:
        await asyncio.Event().wait()
        return 0

    group.add("listen", listen, listens=True)
    await group.start()
    await clock.settle()
    stopping = asyncio.create_task(group.stop(grace_us=SECOND_US))
    await clock.settle()
    assert stopping.done()


async def test_when_one_part_fails_to_start_none_is_left_running() -> None:
    """Goal: never half a leader."""
    log: list[str] = []

    def part(name: str, *, fails: bool = False) -> Part:
        async def start() -> None:
            if fails:
                raise StoreUnavailable("down")
            log.append(f"+{name}")

        async def stop() -> None:
            log.append(f"-{name}")

        return Part(name=name, start=start, stop=stop)

    lifecycle = Lifecycle(clock=FakeClock())
    with pytest.raises(StoreUnavailable):
        await lifecycle.start((part("a"), part("b"), part("c", fails=True), part("d")))
    assert log == ["+a", "+b", "-b", "-a"]


async def test_a_part_that_fails_or_hangs_does_not_keep_the_others_from_stopping() -> None:
    clock = FakeClock()
    log: list[str] = []

    async def fail() -> None:
        raise RuntimeError("a surprise")

    async def hang() -> None:
        await asyncio.Event().wait()

    async def note() -> None:
        log.append("stopped")

    lifecycle = Lifecycle(clock=clock, stop_grace_us=SECOND_US)
    await lifecycle.start((Part(name="a", stop=note), Part(name="b", stop=fail), Part(name="c", stop=hang)))
    stopping = asyncio.create_task(lifecycle.stop())
    await clock.advance(SECOND_US)
    await stopping
    assert log == ["stopped"]
