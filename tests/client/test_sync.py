"""The sync edge: each async verb has a twin, from any thread, with or without a loop about."""

import asyncio
import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from luciole.app import App
from luciole.client.client import Client
from luciole.client.handle import Handle
from luciole.client.home import Home, blocking, twin
from luciole.client.job import Job, JobWithOptions
from luciole.client.schedule import Schedule
from luciole.errors import IllegalState, InvalidPayload, InvalidValue, ResultTimeout, StoreUnavailable
from luciole.model.trigger import every
from luciole.runtime.clock import SystemClock
from luciole.store.memory import MemoryState, MemoryStore


def an_app(dsn: str) -> tuple[App, Job[[int], int, int]]:
    app = App(dsn, name="shop")

    @app.job
    def charge(order_id: int) -> int:
        return order_id

    return app, charge


@pytest.mark.parametrize("kind", [App, Handle, Job, JobWithOptions, Schedule])
def test_each_async_verb_has_a_sync_twin(kind: type) -> None:
    verbs = {name for name, value in inspect.getmembers(kind, inspect.iscoroutinefunction) if not name.startswith("_")}
    twins = {name.removesuffix("_sync") for name in dir(kind) if name.endswith("_sync")}
    assert verbs
    assert twins == verbs


def test_a_program_without_a_loop_enqueues_and_reads() -> None:
    app, charge = an_app("memory://sync-1")
    with app:
        handle = charge.enqueue_sync(1)
        assert handle.state_sync().name == "READY"
        assert len(charge.enqueue_many_sync([1, 2, 3])) == 3
        app.schedule("often", charge.bind(1), every("10s"))
        assert app.declare_sync().created == 1
        assert app.find_schedule("often").next_sync() is not None
        with pytest.raises(ResultTimeout, match="goes on"):
            handle.result_sync(timeout="1ms")
        with pytest.raises(InvalidPayload):
            charge.enqueue_sync("one", 2)  # type: ignore[arg-type, call-arg]


def test_many_threads_share_one_home() -> None:
    app, charge = an_app("memory://sync-2")
    with app, ThreadPoolExecutor(8) as threads:
        handles = list(threads.map(charge.enqueue_sync, range(200)))
    assert len(set(handles)) == 200


async def test_a_twin_on_the_loop_that_must_answer_it_is_refused() -> None:
    app, charge = an_app("memory://sync-3")
    async with app:
        with pytest.raises(IllegalState, match="use await"):
            charge.enqueue_sync(1)


async def test_a_thread_beside_a_loop_uses_the_client_of_the_loop() -> None:
    app, charge = an_app("memory://sync-4")
    async with app:
        await charge.enqueue(1)
        handle = await asyncio.to_thread(charge.enqueue_sync, 2)
        assert (await handle.view()).payload == b'{"order_id":2}'


async def test_another_loop_is_served_by_the_first() -> None:
    app, charge = an_app("memory://sync-5")
    async with app:

        def elsewhere() -> Handle[int]:
            return asyncio.run(charge.enqueue(2))

        handle = await asyncio.to_thread(elsewhere)
        assert (await handle.view()).payload == b'{"order_id":2}'


def test_what_runs_at_home_may_wait_although_its_caller_blocks() -> None:
    async def open_client() -> Client:
        store = MemoryStore(MemoryState(), SystemClock())
        await store.open()
        return Client(store, SystemClock(), close_store=store.close)

    async def look(client: Client) -> bool:
        del client
        return blocking()

    async def ask(home: Home) -> tuple[bool, bool]:
        return blocking(), await home.call(look)

    home = Home(open_client)
    assert twin(ask)(home) == (True, False)
    twin(Home.close)(home)


class CountedStore(MemoryStore):
    """Counts how often it is closed."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1
        await super().close()


def test_each_loop_closes_its_client_and_the_next_opens_another(monkeypatch: pytest.MonkeyPatch) -> None:
    stores: list[CountedStore] = []
    state = MemoryState()

    async def open_store(dsn: str) -> CountedStore:
        del dsn
        stores.append(CountedStore(state, SystemClock()))
        await stores[-1].open()
        return stores[-1]

    monkeypatch.setattr("luciole.wiring.open_store", open_store)
    _, charge = an_app("memory://unused")
    keys = {asyncio.run(charge.enqueue(n)).key for n in range(3)}
    assert [store.closed for store in stores] == [1, 1, 1]
    assert len(keys) == 3


async def test_a_store_that_is_down_is_tried_again_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    state = MemoryState()
    answers: list[Any] = [StoreUnavailable("down"), MemoryStore(state, SystemClock())]

    async def open_store(dsn: str) -> MemoryStore:
        del dsn
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        store: MemoryStore = answer
        await store.open()
        return store

    monkeypatch.setattr("luciole.wiring.open_store", open_store)
    app, charge = an_app("memory://unused")
    results = await asyncio.gather(charge.enqueue(1), charge.enqueue(2), return_exceptions=True)
    assert [type(result) for result in results] == [StoreUnavailable, StoreUnavailable]
    assert (await charge.enqueue(3)).created
    await app.close()


async def test_an_app_runs_inside_a_program_of_its_own(tmp_path: Path) -> None:
    app, charge = an_app(f"sqlite:///{tmp_path / 'shop.db'}")
    async with app.running(slots=4) as run:
        assert await (await charge.enqueue(42)).result(timeout="30s") == 42
        assert run.executor.gauges()["slots"] == 4
    with pytest.raises(InvalidValue, match="did you mean slots"):
        app.running(slot=4)


SCRIPT = """
import asyncio
from luciole.app import App
app = App("memory://script")
@app.job
def charge(order_id: int) -> int:
    return order_id
{body}
print("done", app.name, charge.name)
"""


FORKED = """
import os
from luciole.app import App
app = App("sqlite:///{path}", name="shop")
@app.job
def charge(order_id: int) -> int:
    return order_id
charge.enqueue_sync(1)
child = os.fork()
if not child:
    charge.enqueue_sync(2)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(charge.enqueue_sync(3).state_sync().name)
"""


def test_a_forked_process_opens_a_client_of_its_own(tmp_path: Path) -> None:
    script = FORKED.format(path=tmp_path / "shop.db")
    ended = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "READY\n"), ended.stderr


@pytest.mark.parametrize("body", ["charge.enqueue_sync(1)", "asyncio.run(charge.enqueue(1))"])
def test_a_script_ends_by_itself_without_closing_anything(tmp_path: Path, body: str) -> None:
    script = tmp_path / "store_front.py"
    script.write_text(SCRIPT.format(body=body), encoding="utf-8")
    ended = subprocess.run([sys.executable, "-W", "error", script], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done store_front store_front.charge\n", "")
