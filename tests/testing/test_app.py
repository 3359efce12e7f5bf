"""Apps under test: real parts, virtual time."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from luciole import limits
from luciole.app import App
from luciole.client.retry import Retry
from luciole.errors import ExecutionFailed
from luciole.executor.context import current
from luciole.model.execution import ExecutionState
from luciole.model.trigger import cron, every, once
from luciole.testing.app import AppTest


@pytest.fixture
def app() -> App:
    return App(name="shop")


async def test_an_enqueued_job_runs_and_its_result_is_typed(app: App) -> None:
    @app.job
    async def double(number: int) -> int:
        return number * 2

    async with AppTest(app):
        assert await (await double.enqueue(21)).result() == 42


async def test_a_plain_function_runs_in_a_thread(app: App) -> None:
    @app.job
    def greet(name: str) -> str:
        return f"hello {name}"

    async with AppTest(app):
        assert await (await greet.enqueue("you")).result() == "hello you"


async def test_a_delayed_job_waits_for_its_time(app: App) -> None:
    @app.job
    async def double(number: int) -> int:
        return number * 2

    async with AppTest(app) as test:
        handle = await double.options(delay="1h").enqueue(21)
        await test.advance("59m 59s")
        assert await handle.state() is ExecutionState.READY  # I11: not a second before.
        await test.advance("1s")
        assert await handle.result() == 42


async def test_a_schedule_fires_at_each_of_its_times(app: App) -> None:
    seen: list[datetime] = []

    @app.job
    async def report() -> None:
        seen.append(current().fire_time)

    app.schedule("nightly", report, cron("30 2 * * *", tz="Europe/Berlin"))
    async with AppTest(app, now=datetime(2026, 3, 29, 0, 50, tzinfo=UTC)) as test:
        await test.advance("1d")
    assert seen == [
        datetime(2026, 3, 29, 1, 0, tzinfo=UTC),  # 02:30 does not exist on this day.
        datetime(2026, 3, 30, 0, 30, tzinfo=UTC),
    ]


async def test_a_failing_job_is_retried_after_its_pauses(app: App) -> None:
    times: list[timedelta] = []

    @app.job(retry=Retry(2, delay="10s", factor=3, jitter=0))
    async def flaky() -> str:
        times.append(test.now - began)
        raise ValueError("no")

    async with AppTest(app) as test:
        began = test.now
        handle = await flaky.enqueue()
        await test.advance("1m")
        with pytest.raises(ExecutionFailed, match="ValueError: no"):
            await handle.result()
    assert [round(time.total_seconds()) for time in times] == [0, 10, 40]


async def test_overlap_that_is_forbidden_does_not_happen(app: App) -> None:
    gate = asyncio.Event()
    running = 0

    @app.job
    async def slow() -> None:
        nonlocal running
        running += 1
        assert running == 1
        await gate.wait()
        running -= 1

    app.schedule("slow", slow, every("10s"))
    async with AppTest(app) as test:
        for _ in range(5):
            await test.clock.advance(10 * limits.SECOND_US)
        assert running == 1
        gate.set()
        await test.settle()
        await test.advance("10s")
        states = [execution.state for execution in await test.executions(schedule="slow")]
    assert states == [ExecutionState.SUCCEEDED] * 2


async def test_a_short_interval_fires_at_each_of_its_times_and_not_at_the_next_look_about(app: App) -> None:
    @app.job
    async def tick() -> int:
        return 1

    app.schedule("often", tick, every("100ms"))
    async with AppTest(app) as test:
        await test.advance("1s")
        rows = await test.executions(schedule="often")
    assert [(row.created_us - row.key.fire_us, row.state.name) for row in rows] == [(0, "SUCCEEDED")] * 10


async def test_schedules_put_right_after_each_other_are_planned_at_their_times(app: App) -> None:
    @app.job
    async def remind(number: int) -> int:
        return number

    async with AppTest(app) as test:
        for number in range(5):  # Each brings a hint, of which only the first comes after a pause.
            await app.put_schedule(f"s{number}", remind.bind(number), once(test.now + timedelta(seconds=1 + number)))
        await test.advance("5s")
        started = [row.started_us - row.due_us for row in await test.executions() if row.started_us is not None]
    assert started == [0] * 5


@pytest.mark.slow
async def test_a_year_passes_while_a_test_waits_and_all_of_it_is_kept(app: App) -> None:
    @app.job
    async def report() -> int:
        return 1

    schedule = app.schedule("nightly", report, cron("30 2 * * *", tz="Europe/Paris"))
    async with AppTest(app, now=datetime(2026, 1, 1, tzinfo=UTC)) as test:
        await test.advance("365d")
        rows = await test.executions(schedule=schedule)
    assert {row.state for row in rows} == {ExecutionState.SUCCEEDED}
    assert len({row.fire_time.date() for row in rows}) == 365


async def test_a_timeout_strikes_when_the_clock_is_advanced_under_a_running_handler(app: App) -> None:
    started = asyncio.Event()

    @app.job(timeout="30s")
    async def slow() -> None:
        started.set()
        await asyncio.Event().wait()

    async with AppTest(app) as test:
        handle = await slow.enqueue()
        await started.wait()
        await test.clock.advance(30 * limits.SECOND_US)
        with pytest.raises(ExecutionFailed, match="ran for longer than its timeout of 30 s"):
            await handle.result()
        assert await handle.state() is ExecutionState.TIMED_OUT


async def test_a_day_passes_in_no_time(app: App) -> None:
    @app.job
    async def report() -> int:
        return 1

    schedule = app.schedule("hourly", report, every("1h"))
    async with AppTest(app) as test:
        await test.advance("1d")
        assert len(await test.executions(schedule=schedule)) == 24
