"""An app that runs: node, gateway and executor in one process, around one store."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from luciole.app import App
from luciole.executor.executor import Executor, ExecutorSettings
from luciole.node import Node, Surroundings
from luciole.service.checking import read_labels
from luciole.settings import Settings
from luciole.store.spi import Store
from luciole.wire.connection import Connection
from luciole.wiring import open_store


@dataclass(slots=True, kw_only=True)
class Running:
    """What runs, for those that steer it."""

    app: App
    node: Node
    executor: Executor
    task: "asyncio.Task[None]"  #: the executor's; it ends only when it fails or has drained


@asynccontextmanager
async def running(
    app: App,
    settings: Settings,
    *,
    store: Store | None = None,
    surroundings: Surroundings | None = None,
    own_loop: bool = True,
) -> AsyncIterator[Running]:
    """Run an app inside this event loop; leaving the context drains it.

    The app's schedules are declared first. Enqueues of this process go through the node's own store, so that its
    node hears of them at once.

    Args:
        app: what to run.
        settings: of node and executor.
        store: an open store, closed by whoever opened it; None opens the one of the settings.
        surroundings: clock and chance; the defaults are the real world.
        own_loop: async handlers get a loop and a thread of their own, so that none can hold up the node.
    """
    around = surroundings or Surroundings()
    opened = await open_store(settings.dsn) if store is None else store
    try:
        app.use_store(opened)
        await app.declare()
        node = Node(settings, opened, around)
        executor = Executor(
            app.registry,
            clock=around.clock,
            chance=around.chance,
            settings=executor_settings(settings, own_loop=own_loop),
        )
        await node.start()
        task = asyncio.create_task(executor.run(_local_dial(node)), name="luciole-executor")
        try:
            yield Running(app=app, node=node, executor=executor, task=task)
            await _drain(node, executor, settings.drain_grace_us)
        finally:
            task.cancel()
            await asyncio.wait([task])
            await node.stop()
    finally:
        await app.close()
        if store is None:
            await opened.close()


async def run_app(app: App, settings: Settings, *, stop: asyncio.Event, started: Callable[[Node], None]) -> None:
    """Run an app until it is told to stop, then let it drain.

    Args:
        app: what to run.
        settings: of node and executor.
        stop: set when it should stop.
        started: told once all runs.

    Raises:
        LucioleError: it could not start, or its executor ended by itself.
    """
    async with running(app, settings) as run:
        started(run.node)
        stopping = asyncio.create_task(stop.wait())
        both: set[asyncio.Task[object]] = {stopping, run.task}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        if run.task.done():
            await run.task


def executor_settings(settings: Settings, *, own_loop: bool = True) -> ExecutorSettings:
    """Return what an executor is told, from the settings of its process.

    Raises:
        InvalidValue: the labels can't be read.
    """
    pairs = [pair.partition("=") for pair in settings.labels.split(",") if pair.strip()]
    labels = read_labels({name.strip(): text.strip() for name, _, text in pairs})
    given = {"processes": settings.processes} if settings.processes else {}
    return ExecutorSettings(
        namespace=settings.namespace,
        slots=settings.slots,
        labels=labels,
        token=settings.token,
        own_loop=own_loop,
        **given,
    )


def _local_dial(node: Node) -> Callable[[str], Awaitable[Connection]]:
    async def dial(address: str) -> Connection:
        del address  # There is only one.
        return await node.connect()

    return dial


async def _drain(node: Node, executor: Executor, grace_us: int) -> None:
    """Let what runs end: the node gives its shards up, the executor hands back what has not started."""
    await asyncio.gather(node.drain(grace_us), executor.drain(grace_us))
