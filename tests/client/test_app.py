"""Apps: definitions, enqueues, handles and schedules on the memory store."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from luciole import limits
from luciole.app import App
from luciole.client.retry import Retry
from luciole.errors import (
    AlreadyExists,
    InvalidPayload,
    InvalidTrigger,
    InvalidValue,
    NotFound,
    PayloadTooLarge,
    StoreUnavailable,
)
from luciole.model.execution import ExecutionState
from luciole.model.schedule import ScheduleState
from luciole.model.trigger import cron, every, once
from luciole.runtime.clock import SystemClock
from luciole.store.memory import MemoryState, MemoryStore


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    opened = MemoryStore(MemoryState(), SystemClock())
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def app(store: MemoryStore) -> App:
    return App(store=store, name="shop")


def test_a_decorated_function_stays_a_plain_callable() -> None:
    app = App(name="shop")

    @app.job
    def add(left: int, right: int = 2) -> int:
        """Add two numbers."""
        return left + right

    assert add(1) == 3
    assert (add.name, add.__doc__) == ("shop.add", "Add two numbers.")


async def test_a_decorated_async_function_is_awaited_as_before() -> None:
    app = App(name="shop")

    @app.job(retry=Retry(5), timeout="30s")
    async def double(number: int) -> int:
        return number * 2

    assert await double(4) == 8
    assert (double.spec.retry.limit, double.spec.timeout_us) == (5, 30 * limits.SECOND_US)


async def test_an_enqueued_call_is_durable_with_its_arguments(app: App, store: MemoryStore) -> None:
    @app.job
    async def charge(order_id: int, note: str = "") -> None:
        del order_id, note

    handle = await charge.enqueue(42, note="x")
    view = await store.get_execution(handle.key)
    assert view is not None
    assert (view.handler, view.payload, view.state) == (
        "shop.charge",
        b'{"order_id":42,"note":"x"}',
        ExecutionState.READY,
    )
    assert handle.created
    assert app.find_execution(handle.id) == handle


async def test_a_key_that_exists_returns_the_execution_that_it_names(app: App) -> None:
    @app.job
    async def charge(order_id: int) -> None:
        del order_id

    first = await charge.options(key="order-42").enqueue(42)
    second = await charge.options(key="order-42").enqueue(43)
    assert (first.created, second.created) == (True, False)
    assert first == second


async def test_options_reach_the_execution(app: App, store: MemoryStore) -> None:
    @app.job(labels={"zone": "eu"})
    async def charge(order_id: int) -> None:
        del order_id

    at = datetime(2030, 1, 1, tzinfo=UTC)
    options = charge.options(at=at, priority=9, labels={"gpu": "yes"}, deadline=at + timedelta(hours=1))
    view = await store.get_execution((await options.enqueue(1)).key)
    assert view is not None
    assert (view.priority, view.labels) == (9, (("gpu", "yes"),))
    assert view.deadline_us == view.key.fire_us + limits.HOUR_US
    assert view.due_us == int(at.timestamp()) * limits.SECOND_US


async def test_a_delay_counts_from_the_enqueue(app: App, store: MemoryStore) -> None:
    @app.job
    async def charge(order_id: int) -> None:
        del order_id

    view = await store.get_execution((await charge.options(delay="5m").enqueue(1)).key)
    assert view is not None
    assert view.due_us - view.created_us == 5 * limits.MINUTE_US


async def test_many_calls_come_back_in_their_order(app: App, store: MemoryStore) -> None:
    @app.job
    async def charge(order_id: int, note: str = "") -> None:
        del order_id, note

    handles = await charge.enqueue_many([*range(2_500), charge.bind(7, note="x")])
    last = await store.get_execution(handles[-1].key)
    first = await store.get_execution(handles[0].key)
    assert last is not None
    assert first is not None
    assert (len(set(handles)), first.payload, last.payload) == (
        2_501,
        b'{"order_id":0}',
        b'{"order_id":7,"note":"x"}',
    )


async def test_many_calls_of_several_arguments_are_told_how_to_be_written(app: App) -> None:
    @app.job
    async def charge(order_id: int, note: str) -> None:
        del order_id, note

    with pytest.raises(InvalidPayload, match=r"a call of several arguments is shop\.charge\.bind\(…\)"):
        await charge.enqueue_many([(7, "x")])


async def test_a_crowd_of_callers_shares_statements(app: App, store: MemoryStore, monkeypatch: Any) -> None:  # noqa: ANN401
    @app.job
    async def charge(order_id: int) -> None:
        del order_id

    calls: list[int] = []
    enqueue = store.enqueue

    async def counted(requests: Any) -> Any:  # noqa: ANN401
        calls.append(len(requests))
        return await enqueue(requests)

    monkeypatch.setattr(store, "enqueue", counted)
    await app.open()
    handles = await asyncio.gather(*(charge.enqueue(n) for n in range(500)))
    assert len(set(handles)) == 500
    assert len(calls) < 5


async def test_a_bulk_has_two_batches_under_way_and_a_failure_waits_for_both(
    app: App, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job
    async def charge(order_id: int) -> None:
        del order_id

    under_way, most, ended = 0, 0, 0
    enqueue = store.enqueue
    failing = False

    async def counted(requests: Any) -> Any:  # noqa: ANN401
        nonlocal under_way, most, ended
        under_way += 1
        most = max(most, under_way)
        first = ended == 0
        await asyncio.sleep(0)
        if failing and first:
            under_way -= 1
            raise StoreUnavailable("gone")
        await asyncio.sleep(0)
        answers = await enqueue(requests)
        under_way -= 1
        ended += 1
        return answers

    monkeypatch.setattr(store, "enqueue", counted)
    await app.open()
    handles = await charge.enqueue_many(range(4_500))
    parts = [handle.key.part for handle in handles]
    assert (len(handles), parts, most) == (4_500, sorted(parts, reverse=True), 2)
    failing, ended = True, 0
    with pytest.raises(StoreUnavailable):
        await charge.enqueue_many(range(4_500))
    assert under_way == 0  # I9: whoever hears of the failure knows that nothing of it is still under way.


async def test_a_handle_asks_for_the_end_and_tells_the_state(app: App) -> None:
    @app.job
    async def charge(order_id: int) -> None:
        del order_id

    handle = await charge.enqueue(1)
    assert await handle.state() is ExecutionState.READY
    assert not (await handle.view()).cancel_requested
    await handle.cancel()
    assert await handle.cancel() is ExecutionState.READY
    assert (await handle.view()).cancel_requested  # Its shard's holder hears of it.
    later = await charge.options(delay="1h").enqueue(2)
    assert await later.cancel() is ExecutionState.CANCELLED  # Nobody can be running it.


async def test_an_unknown_execution_is_not_found(app: App) -> None:
    with pytest.raises(NotFound, match="there is none"):
        await app.find_execution("1-0-0-_1").state()


BAD_JOBS: list[tuple[dict[str, Any], str]] = [
    ({"retires": 5}, "did you mean 'retry'"),
    ({"timeout": "soon"}, "timeout"),
    ({"timeout": 0}, "leave it out"),
    ({"priority": 11}, "outside 0 to 9"),
    ({"priority": "high"}, "a str is no priority"),
    ({"run_in": "proces"}, "did you mean 'process'"),
    ({"run_in": "thread"}, "needs a plain function"),
    ({"retry": "5"}, "pass Retry"),
    ({"labels": ["gpu"]}, "a list holds no labels"),
    ({"at_most_once": 1}, "neither True nor False"),
    ({"losses_max": 0}, "losses_max"),
    ({"name": "a\nb"}, "printed"),
]


@pytest.mark.parametrize(("options", "seen"), BAD_JOBS)
def test_a_wrong_option_is_refused_at_definition(options: dict[str, Any], seen: str) -> None:
    async def handler() -> None:
        await asyncio.sleep(0)

    with pytest.raises(InvalidValue, match=seen):
        App(name="shop").job(**options)(handler)


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"dealy": "5m"}, "did you mean 'delay'"),
    ({"delay": "5m", "at": datetime(2030, 1, 1, tzinfo=UTC)}, "exclude each other"),
    ({"at": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001
    ({"at": "tomorrow"}, "a str is no datetime"),
    ({"key": ""}, "0 characters"),
    ({"key": "x" * 500}, "500 characters"),
    ({"deadline": -1}, "deadline"),
]


@pytest.mark.parametrize(("options", "seen"), BAD_OPTIONS)
def test_a_wrong_request_option_is_refused(options: dict[str, Any], seen: str) -> None:
    @App(name="shop").job
    def handler() -> int:
        return 1

    with pytest.raises(InvalidValue, match=seen):
        handler.options(**options)


async def test_arguments_that_can_not_travel_write_nothing(app: App, store: MemoryStore) -> None:
    @app.job
    async def charge(order_id: Any) -> None:  # noqa: ANN401
        del order_id

    with pytest.raises(InvalidPayload, match=r"shop\.charge"):
        await charge.enqueue(object())
    with pytest.raises(PayloadTooLarge, match="over 1,048,576"):
        await charge.enqueue("x" * limits.PAYLOAD_BYTES_MAX)
    with pytest.raises(InvalidPayload):
        await charge.enqueue_many([1, object()])
    with pytest.raises(InvalidValue, match="no connection that an enqueue can join"):
        await charge.options(tx=object()).enqueue(1)
    assert (await store.backlog()).open_entries == 0


async def test_two_functions_with_one_name_are_refused(app: App) -> None:
    @app.job(name="same")
    def one() -> int:
        return 1

    with pytest.raises(AlreadyExists, match="same"):

        @app.job(name="same")
        def two() -> int:
            return 2

    assert [job.name for job in app.jobs] == ["same"]
    assert one() == 1


async def test_declared_schedules_are_stored_once_and_kept(app: App, store: MemoryStore) -> None:
    @app.job
    def report(region: str) -> None:
        del region

    nightly = app.schedule("nightly", report.bind("eu"), cron("30 2 * * *", tz="Europe/Berlin"), overlap="queue_one")
    app.schedule("often", report.bind("us"), every("10s"))
    first, again = await app.declare(), await app.declare()
    assert (first.created, first.changed, first.unchanged) == (2, 0, 0)
    assert (again.created, again.changed, again.unchanged) == (0, 0, 2)
    assert first.ids == again.ids
    view = await nightly.view()
    assert (view.spec.owner, view.spec.job.payload, view.state) == ("shop", b'{"region":"eu"}', ScheduleState.ACTIVE)
    assert view.fire_us is not None
    assert view.fire_us > await store.now_us()


async def test_a_schedule_that_the_code_no_longer_declares_stays(store: MemoryStore) -> None:
    def define(*names: str) -> App:
        app = App(store=store, name="shop")

        @app.job
        def report() -> int:
            return 1

        for name in names:
            app.schedule(name, report, every("10s"))
        return app

    await define("kept", "forgotten").declare()
    app = define("kept")
    await app.declare()
    assert (await app.find_schedule("forgotten").view()).state is ScheduleState.ACTIVE


async def test_two_apps_with_one_schedule_name_are_told_of_each_other(store: MemoryStore) -> None:
    def define(name: str) -> App:
        app = App(store=store, name=name)

        @app.job
        def report() -> int:
            return 1

        app.schedule("nightly", report, every("10s"))
        return app

    await define("shop").declare()
    with pytest.raises(AlreadyExists, match=r"app 'shop', and app 'billing'"):
        await define("billing").declare()
    view = await store.get_schedule("default", "nightly")
    assert view is not None
    assert (view.spec.owner, view.spec.job.handler) == ("shop", "shop.report")


async def test_pause_resume_trigger_and_delete(app: App) -> None:
    @app.job
    def report() -> int:
        return 1

    schedule = app.schedule("often", report, every("10s"))
    await app.declare()
    assert await schedule.next() is not None
    await schedule.pause("too loud")
    await schedule.pause("again")
    paused = await schedule.view()
    assert (paused.state, paused.reason, await schedule.next()) == (ScheduleState.PAUSED, "too loud", None)
    await schedule.resume()
    assert await schedule.next() is not None
    handle = await schedule.trigger()
    assert handle.key.schedule_id == paused.schedule_id
    assert len(await schedule.explain(3)) == 3
    await schedule.delete()
    with pytest.raises(NotFound, match="'often'"):
        await schedule.view()


async def test_a_schedule_is_put_at_run_time(app: App) -> None:
    @app.job
    def remind(user: int) -> int:
        return user

    schedule = await app.put_schedule("remind-7", remind.bind(7), once(datetime(2030, 1, 1, tzinfo=UTC)))
    assert await schedule.next() == datetime(2030, 1, 1, tzinfo=UTC)
    await app.put_schedule("remind-7", remind.bind(7), once(datetime(2031, 1, 1, tzinfo=UTC)))
    assert await schedule.next() == datetime(2031, 1, 1, tzinfo=UTC)


BAD_SCHEDULES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"misfire": "once"}, InvalidValue, "fire_once"),
    ({"misfire": "catch_up"}, InvalidValue, "catch_up=N"),
    ({"misfire": "catch_up", "catch_up": 5}, InvalidValue, "overlap"),
    ({"misfire": "catch_up", "catch_up": 100_000, "overlap": "allow"}, InvalidValue, "over 1000"),
    ({"catch_up": 5}, InvalidValue, "only with it"),
    ({"overlap": "forbidden"}, InvalidValue, "did you mean 'forbid'"),
    ({"overlaps": "forbid"}, InvalidValue, "did you mean 'overlap'"),
    ({"trigger": "* * * * *"}, InvalidTrigger, "use cron()"),
    ({"call": print}, InvalidValue, "pass a job"),
    ({"name": ""}, InvalidValue, "schedule name"),
]


@pytest.mark.parametrize(("changed", "error", "seen"), BAD_SCHEDULES)
def test_a_wrong_schedule_is_refused_at_definition(changed: dict[str, Any], error: type[Exception], seen: str) -> None:
    app = App(name="shop")

    @app.job
    def report() -> int:
        return 1

    arguments: dict[str, Any] = {"name": "n", "call": report, "trigger": every("10s"), **changed}
    with pytest.raises(error, match=seen):
        app.schedule(**arguments)
    assert app.declarations == ()


def test_a_wrong_zone_is_refused_at_definition() -> None:
    with pytest.raises(InvalidTrigger, match="Europe/Berln"):
        cron("30 2 * * *", tz="Europe/Berln")


def test_an_app_is_named_after_its_module() -> None:
    assert App().name.rpartition(".")[2] == "test_app"
