"""Reports that come while others are being settled wait for each other, not for a timer."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from luciole import limits
from luciole.gateway.flights import Flights
from luciole.gateway.reporter import Reporter
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import AttemptOutcome, Entry, Settled, Settlement
from luciole.runtime.telemetry import Telemetry
from luciole.testing.clock import FakeClock


class Slow:
    """A store whose settle calls end when they are let."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.called = asyncio.Event()
        self.let = asyncio.Event()

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        self.sizes.append(len(settlements))
        self.called.set()
        await self.let.wait()
        return [Settled.SETTLED for _ in settlements]


class Outcomes:
    def apply(self, entry: Entry | None, settlement: Settlement, settled: Settled) -> None: ...


class StoreClock:
    def __init__(self, clock: FakeClock) -> None:
        self.now_us = clock.now_us


def reporter(store: Slow, clock: FakeClock) -> Reporter:
    return Reporter(
        store=cast("Any", store),
        store_clock=cast("Any", StoreClock(clock)),
        telemetry=Telemetry(clock),
        flights=Flights(),
        jobs=cast("Any", None),
        outcomes=cast("Any", Outcomes()),
        chance=lambda: 0.5,
        wake=lambda: None,
    )


def add(to: Reporter, count: int) -> None:
    for number in range(count):
        key = ExecutionKey(1, number, 0, 0)
        settlement = Settlement(key, 1, ExecutionState.SUCCEEDED, AttemptOutcome.SUCCEEDED, 0, 1, "executor")
        to.settle(settlement, Entry(key, 0, 5, 1, 0, 1, 0))


async def begun(store: Slow, one: Reporter, count: int) -> "asyncio.Task[int]":
    add(one, count)
    running = asyncio.ensure_future(one.tick())
    await store.called.wait()
    store.called.clear()
    return running


async def test_few_reports_wait_for_the_call_under_way_which_goes_on_with_all_of_them() -> None:
    store, clock = Slow(), FakeClock()
    one = reporter(store, clock)
    running = await begun(store, one, 1)
    add(one, 10)
    pause_us = await one.tick()
    assert (pause_us, store.sizes) == (limits.REPORT_COMPANY_US, [1])
    store.let.set()
    assert await running == 0  # More waits: no pause.
    await one.tick()
    assert store.sizes == [1, 10]


async def test_many_reports_are_settled_beside_the_call_under_way() -> None:
    store, clock = Slow(), FakeClock()
    one = reporter(store, clock)
    running = await begun(store, one, 1)
    add(one, limits.REPORT_COMPANY_MIN)
    store.let.set()
    await one.tick()
    await running
    assert store.sizes == [1, limits.REPORT_COMPANY_MIN]


async def test_a_call_that_hangs_holds_nobody_up_for_long() -> None:
    store, clock = Slow(), FakeClock()
    one = reporter(store, clock)
    running = await begun(store, one, 1)
    add(one, 3)
    await clock.advance(limits.REPORT_COMPANY_US)
    beside = asyncio.ensure_future(one.tick())
    async with asyncio.timeout(30):
        await store.called.wait()
    store.let.set()
    await asyncio.gather(running, beside)
    assert store.sizes == [1, 3]
