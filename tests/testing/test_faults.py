"""Inputs that broke schedulers in the field, given to a whole app in virtual time."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from luciole.app import App
from luciole.client.retry import Retry
from luciole.errors import ExecutionFailed
from luciole.executor.context import RetryLater, Stop, current
from luciole.executor.executor import Executor, ExecutorSettings
from luciole.model.execution import ExecutionState
from luciole.model.trigger import every, once
from luciole.testing.app import AppTest
from luciole.wire.connection import Connection


@pytest.fixture
def app() -> App:
    return App(name="shop")


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


RESULTS: list[tuple[Callable[[], Any], ExecutionState]] = [
    (lambda: "a\x00b", ExecutionState.SUCCEEDED),
    (lambda: 2**70, ExecutionState.SUCCEEDED),
    (lambda: float("nan"), ExecutionState.FAILED),
    (lambda: "\ud800", ExecutionState.FAILED),
    (lambda: "x" * 50_000_000, ExecutionState.FAILED),
    (object, ExecutionState.FAILED),
    (endless, ExecutionState.FAILED),
]


@pytest.mark.parametrize(("make", "state"), RESULTS)
async def test_no_result_keeps_the_state_from_moving_on(
    app: App, make: Callable[[], Any], state: ExecutionState
) -> None:
    @app.job
    async def answer() -> Any:  # noqa: ANN401 - that is the question
        return make()

    async with AppTest(app) as test:
        handle = await answer.enqueue()
        await test.advance("1s")
        view = await handle.view()
    assert view.state is state  # I8: stored, or refused with a clear error.
    assert (view.error is None) is (state is ExecutionState.SUCCEEDED)


async def test_an_error_with_any_text_is_recorded(app: App) -> None:
    @app.job
    async def shout() -> None:
        raise ValueError("\x00\ud800" + "x" * 100_000)

    async with AppTest(app) as test:
        handle = await shout.enqueue()
        await test.advance("1s")
        view = await handle.view()
    assert view.state is ExecutionState.FAILED
    assert view.error is not None
    assert len(view.error) < 10_000


async def test_one_bad_payload_does_not_keep_the_others_of_its_batch(app: App) -> None:
    @app.job
    async def charge(order_id: int) -> int:
        return order_id

    async with AppTest(app) as test:
        client = App(store=test.store, name="shop")

        @client.job(name="shop.charge")
        async def older(order: str) -> str:
            return order

        good = await charge.enqueue_many(range(20))
        bad = await older.enqueue("not a number")
        more = await charge.enqueue_many(range(20))
        await test.advance("5s")
        assert [await handle.result() for handle in [*good, *more]] == [*range(20), *range(20)]
        view = await bad.view()
        await client.close()
    assert view.state in {ExecutionState.FAILED, ExecutionState.PARKED}
    assert "order" in (view.error or "")


async def test_work_for_a_handler_that_nobody_knows_is_parked_and_can_be_repaired(app: App) -> None:
    async with AppTest(app) as test:
        client = App(store=test.store, name="shop")

        @client.job
        async def newcomer() -> str:
            return "done"

        handle = await newcomer.enqueue()
        await test.advance("10m")
        parked = await handle.view()
        assert parked.state is ExecutionState.PARKED  # I7: not dropped.
        assert "shop.newcomer" in (parked.error or "")

        async def dial(address: str) -> Connection:
            del address
            return await test.running.node.connect()

        executor = Executor(client.registry, clock=test.clock, settings=ExecutorSettings(own_loop=False))
        task = asyncio.create_task(executor.run(dial))
        # An executor that knows the handler is repair enough.
        await test.advance("1m")
        assert await handle.result() == "done"
        task.cancel()
        await asyncio.wait([task])
        await client.close()


async def test_a_handler_chooses_its_own_pause_or_its_end(app: App) -> None:
    @app.job(retry=Retry(5, delay="1h"))
    async def patient() -> int:
        if current().attempt < 3:
            raise RetryLater("10s", reason="closed")
        return current().attempt

    @app.job(retry=Retry(5))
    async def final() -> None:
        raise Stop("no use")

    async with AppTest(app) as test:
        one, two = await patient.enqueue(), await final.enqueue()
        await test.advance("20s")
        assert await one.result() == 3
        with pytest.raises(ExecutionFailed, match="no use"):
            await two.result()
        assert (await two.view()).attempt == 1


async def test_a_timeout_ends_an_attempt_and_a_retry_follows(app: App) -> None:
    @app.job(timeout="5s", retry=Retry(1, delay="1s", jitter=0))
    async def stuck() -> int:
        if current().attempt == 1:
            await asyncio.Event().wait()
        return current().attempt

    async with AppTest(app) as test:
        handle = await stuck.enqueue()
        await test.clock.advance(10_000_000)
        assert await handle.result() == 2
        assert [attempt.outcome for attempt in (await handle.view()).attempts] == ["timed_out"]


async def test_an_execution_past_its_deadline_does_not_start(app: App) -> None:
    started: list[int] = []

    @app.job(retry=Retry(1, delay="1m", jitter=0))
    async def late() -> None:
        started.append(current().attempt)
        raise ValueError("once more")

    async with AppTest(app) as test:
        handle = await late.options(deadline="30s").enqueue()
        await test.advance("5m")
        view = await handle.view()
    assert view.state.terminal
    assert started == [1]


async def test_a_schedule_paused_over_its_due_time_does_not_fire_when_it_is_resumed(app: App) -> None:
    @app.job
    async def report() -> int:
        return 1

    schedule = app.schedule("hourly", report, every("1h"))
    async with AppTest(app) as test:
        await test.advance("30m")
        await schedule.pause()
        await test.advance("1h")
        await schedule.resume()
        await test.advance("1m")
        assert await test.executions(schedule=schedule) == []
        await test.advance("1h")
        assert len(await test.executions(schedule=schedule)) == 1


async def test_a_one_off_that_fired_does_not_fire_again_when_the_app_starts_again(app: App) -> None:
    @app.job
    async def remind() -> int:
        return 1

    async with AppTest(app) as test:
        schedule = await app.put_schedule("reminder", remind, once(test.now + timedelta(minutes=1)))
        await test.advance("1m")
        await app.put_schedule("reminder", remind, once(test.now))  # As the code says at each start.
        await app.declare()
        await test.advance("1h")
        assert len(await test.executions(schedule=schedule)) == 1


async def test_two_schedules_with_one_expression_and_one_job_both_fire(app: App) -> None:
    @app.job
    async def report() -> int:
        return 1

    names = ("first", "second")
    for name in names:
        app.schedule(name, report, every("1m"))
    async with AppTest(app) as test:
        await test.advance("1m")
        assert [len(await test.executions(schedule=name)) for name in names] == [1, 1]


async def test_an_interval_of_a_second_that_was_down_for_hours_runs_once(app: App) -> None:
    @app.job
    async def tick() -> int:
        return 1

    schedule = app.schedule("often", tick, every("1s"))
    async with AppTest(app) as test:
        await test.advance("2s")
        test.clock.jump(6 * 3_600_000_000)  # The machine was suspended.
        await test.advance("10m")
        rows = await test.executions(schedule=schedule)
        view = await schedule.view()
        ledger = await test.store.list_ledger(view.schedule_id, view.shard, limit=10)
    assert len(rows) < 700  # Those of the last minutes, and one for all hours before.
    assert len(ledger) < 5
    assert sum(row.fires for row in ledger) + len(rows) == 6 * 3_600 + 602  # I4: an outcome for each of them.
