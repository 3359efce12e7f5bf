"""Wake-ups inside one process: none is lost."""

import asyncio

from luciole.runtime.clock import SystemClock
from luciole.store.sql.hints import Hints
from luciole.testing import FakeClock


class _LateClock(SystemClock):
    """Its waits are over just before the event is set, and return just after."""

    def __init__(self, between: "asyncio.Event") -> None:
        self._between = between

    async def wait(self, event: asyncio.Event, timeout_us: int) -> bool:
        """Say that the time is over, once the event is set."""
        del timeout_us
        self._between.set()
        await event.wait()
        return False


async def test_a_hint_in_the_step_in_which_the_time_is_over_is_heard() -> None:
    between = asyncio.Event()
    hints = Hints(_LateClock(between))
    waiting = asyncio.ensure_future(hints.wait(10_000))
    await between.wait()
    hints.tell(frozenset({3}))
    assert await waiting == frozenset({3})


async def test_a_hint_while_nobody_waits_is_kept_once() -> None:
    clock = FakeClock()
    hints = Hints(clock)
    hints.tell(frozenset({3}))
    hints.tell(frozenset({5}))
    assert await hints.wait(10_000) == frozenset({3, 5})
    again = asyncio.ensure_future(hints.wait(10_000))
    await clock.settle()
    await clock.advance(10_000)
    assert await again is None


async def test_a_clock_that_is_asked_for_an_event_set_at_the_last_moment_says_so() -> None:
    """The time is over and the event is set in one step of the loop: whoever waits must not miss the event."""
    event = asyncio.Event()
    clock = SystemClock()
    waiting = asyncio.ensure_future(clock.wait(event, 1_000))
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0)
    until_s = loop.time() + 0.002
    while loop.time() < until_s:  # The loop stands still, so the time is over when it looks.
        pass
    loop.call_soon(event.set)
    assert await waiting is True
