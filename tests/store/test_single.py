"""A store that knows only single items is a whole store, by the one-by-one defaults."""

import asyncio
import inspect

import pytest

from luciole.app import App
from luciole.client.retry import Retry
from luciole.errors import ExecutionFailed, InvalidValue, Unsupported
from luciole.executor.context import current
from luciole.limits import MINUTE_US
from luciole.model.execution import ExecutionState
from luciole.model.trigger import every
from luciole.runtime.clock import Clock
from luciole.store.reads import Page
from luciole.store.single import OneByOne, SingleItems
from luciole.store.spi import Store
from luciole.testing.app import AppTest
from luciole.testing.clock import START_US, FakeClock
from luciole.testing.factories import a_job, a_request
from tests.store import custom

#: What the classes of a custom store may need, blank lines apart.
LINES_MAX = 200


def dicts(clock: Clock) -> Store:
    items: SingleItems = custom.DictStore(clock)
    return OneByOne(items)


def test_a_custom_store_is_small() -> None:
    classes = (custom.DictSchedules, custom.DictStore)
    lines = [line for written in classes for line in inspect.getsource(written).splitlines()]
    assert sum(bool(line.strip()) for line in lines) < LINES_MAX


async def test_an_app_runs_on_a_custom_store() -> None:
    """Goal: the product path, from registration to recorded outcomes, on single items alone."""
    app = App(name="shop")
    seen: list[int] = []

    @app.job
    async def report() -> None:
        seen.append(current().attempt)

    @app.job(retry=Retry(3, delay="10s", jitter=0))
    async def double(number: int) -> int:
        if current().attempt < 3:
            raise ValueError("not yet")
        return number * 2

    @app.job
    async def fail() -> None:
        raise ValueError("never")

    app.schedule("often", report, every("1m"))
    async with AppTest(app, store=dicts) as test:
        first, same = await double.options(key="order").enqueue(21), await double.options(key="order").enqueue(22)
        failed, later = await fail.enqueue(), await double.options(delay="1h").enqueue(4)
        await test.advance("10m")
        assert await first.result() == await same.result() == 42
        with pytest.raises(ExecutionFailed):
            await failed.result()
        assert await later.state() is ExecutionState.READY
        assert seen == [1] * 10


async def test_schedules_of_a_custom_store_do_not_overlap() -> None:
    app = App(name="shop")
    starts: list[int] = []
    done = asyncio.Event()

    @app.job
    async def long() -> None:
        starts.append(1)
        await done.wait()

    app.schedule("long", long, every("1m"), overlap="forbid")
    async with AppTest(app, store=dicts) as test:
        await test.clock.advance(5 * MINUTE_US)
        assert len(starts) == 1
        done.set()
        await test.advance("1m")
        assert len(starts) == 2


async def test_what_a_custom_store_lacks_is_named() -> None:
    store = dicts(FakeClock())
    await store.open()
    assert isinstance(store, Store)
    assert await store.migrate() == 0
    with pytest.raises(Unsupported, match="list_jobs: the store dicts has no such verb"):
        await store.list_jobs(None, limit=1)
    with pytest.raises(Unsupported, match="enqueue_sql"):
        store.enqueue_sql("sqlite3")
    assert await store.prune(0, 0, after=None, limit=1) == Page(rows=(), next=None)


async def test_batches_have_their_bounds_on_a_custom_store_too() -> None:
    store = dicts(FakeClock())
    (job_id,) = await store.intern_jobs([a_job()])
    good = a_request(1, job_id)
    with pytest.raises(InvalidValue):
        await store.enqueue([good, a_request(2, job_id, store.shards)])
    assert (await store.ready_entries([0], START_US, limit=10)).entries == ()
