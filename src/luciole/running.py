"""What runs: a node with its gateway, an executor, or a whole app in one process; each drains when it is left."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from luciole import limits
from luciole.app import App
from luciole.errors import StoreUnavailable
from luciole.executor.executor import Executor, ExecutorSettings
from luciole.node import Node, Surroundings
from luciole.runtime.backoff import Backoff
from luciole.service.checking import read_labels
from luciole.settings import Settings
from luciole.store.spi import Store
from luciole.wire.connection import Connection
from luciole.wire.transport import parse_address
from luciole.wiring import build_node, open_store

_log = logging.getLogger("luciole.running")

ResultT = TypeVar("ResultT")

_EVERYWHERE = ("0.0.0.0", "[::]")  # noqa: S104 - compared with, not bound


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
    stop: asyncio.Event | None = None,
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
        stop: given, a store that is down at the start is waited for until this is set; None: it is an error at once.
    """
    around = surroundings or Surroundings()
    async with _store(settings, store, stop) as opened:
        app.use_store(opened)
        try:
            await app.declare()
            async with running_node(settings, opened, surroundings=around, drains=False) as node:
                executor = Executor(
                    app.registry,
                    clock=around.clock,
                    chance=around.chance,
                    settings=executor_settings(settings, own_loop=own_loop),
                )
                task = asyncio.create_task(executor.run(_local_dial(node)), name="luciole-executor")
                try:
                    yield Running(app=app, node=node, executor=executor, task=task)
                    # The node gives its shards up while the executor ends what runs and hands back the rest.
                    await asyncio.gather(node.drain(settings.drain_grace_us), executor.drain(settings.drain_grace_us))
                finally:
                    task.cancel()
                    await asyncio.wait([task])
        finally:
            await app.close()


@asynccontextmanager
async def running_node(
    settings: Settings, store: Store, *, surroundings: Surroundings | None = None, drains: bool = True
) -> AsyncIterator[Node]:
    """Run a node around an open store, with its gateway on the network when `settings.listen` says so.

    Args:
        settings: the knobs.
        store: an open store, closed by whoever opened it.
        surroundings: clock, chance and identity; the defaults are the real world.
        drains: leaving the context waits for what executors still run here.

    Raises:
        InvalidValue: the address can't be had, or must not be listened on without TLS and a token.
        LucioleError: it can't start; nothing is left half started.
    """
    if settings.listen is None:
        async with _started(build_node(settings, store, surroundings), settings, drains=drains) as node:
            yield node
        return
    from luciole.gateway.server import GatewayServer, ServerSettings  # noqa: PLC0415 - an extra

    made: asyncio.Future[Node] = asyncio.get_running_loop().create_future()

    async def take(connection: Connection) -> None:
        # The port is known before the node is, so an executor may dial before there is one.
        await (await asyncio.shield(made)).sessions.serve(connection)

    server = GatewayServer(
        take,
        ServerSettings(
            listen=settings.listen, token=settings.token, tls_cert=settings.tls_cert, tls_key=settings.tls_key
        ),
    )
    await server.start()
    try:
        settings = replace(settings, listen=server.address, advertise=settings.advertise or _reachable(server.address))
        node = build_node(settings, store, surroundings)
        async with _started(node, settings, drains=drains):
            made.set_result(node)
            yield node
    finally:
        made.cancel()
        await server.stop()


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
    async with running(app, settings, stop=stop) as run:
        started(run.node)
        await _until(stop, run.task)


async def run_node(settings: Settings, *, stop: asyncio.Event, started: Callable[[Node, str], None]) -> None:
    """Run a node until it is told to stop, then let it drain.

    Args:
        settings: of the node.
        stop: set when it should stop.
        started: told the node, and where it listens ("" when nowhere), once it runs.

    Raises:
        LucioleError: it could not start.
    """
    async with _store(settings, None, stop) as store, running_node(settings, store) as node:
        started(node, node.settings.listen or "")
        await stop.wait()


async def run_executor(
    app: App, settings: Settings, *, stop: asyncio.Event, started: Callable[[Executor], None], declares: bool = True
) -> None:
    """Run an app's handlers for nodes elsewhere until it is told to stop, then let it drain.

    Args:
        app: whose handlers.
        settings: of the executor.
        stop: set when it should stop.
        started: told once it runs; nodes may still be out of reach.
        declares: store the app's schedules first, when it has any.

    Raises:
        LucioleError: it could not start, or every node refused it.
    """
    from luciole.executor.dial import GrpcDial  # noqa: PLC0415 - an extra

    surroundings = Surroundings()
    nodes = split_nodes(settings.nodes)
    if declares and app.declarations:
        await _patient(app.declare, settings, stop)
    executor = Executor(
        app.registry,
        clock=surroundings.clock,
        chance=surroundings.chance,
        settings=executor_settings(settings),
    )
    task = asyncio.create_task(executor.run(GrpcDial(settings.tls_ca), nodes))
    try:
        started(executor)
        await _until(stop, task)
        await executor.drain(settings.drain_grace_us)
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])
        await app.close()


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
        threads=settings.threads,
        labels=labels,
        token=settings.token,
        own_loop=own_loop,
        **given,
    )


def split_nodes(nodes: str) -> Sequence[str]:
    """Return the addresses of a list separated by commas.

    Raises:
        InvalidValue: one of them is no address.
    """
    return [parse_address(address.strip(), field="nodes").text for address in nodes.split(",") if address.strip()]


@asynccontextmanager
async def _store(settings: Settings, store: Store | None, stop: asyncio.Event | None) -> AsyncIterator[Store]:
    if store is not None:
        yield store
        return
    open_it = partial(open_store, settings.dsn)
    opened = await (open_it() if stop is None else _patient(open_it, settings, stop))
    try:
        yield opened
    finally:
        await opened.close()


async def _patient(call: Callable[[], Awaitable[ResultT]], settings: Settings, stop: asyncio.Event) -> ResultT:
    """Call what needs the store; while that is down, again and again, for as long as the settings say.

    Databases and what uses them are often started together, and in any order.

    Raises:
        StoreUnavailable: it is still down, or this process was told to stop.
    """
    around, backoff = Surroundings(), Backoff()
    end_us = around.clock.monotonic_us() + settings.wait_for_store_us
    failures = 0
    while True:
        try:
            result = await call()
        except StoreUnavailable as problem:
            failures += 1
            left_us = end_us - around.clock.monotonic_us()
            if left_us <= 0 or stop.is_set():
                raise
            _log.warning("the store is down, waiting %.0f s more for it: %s", left_us / limits.SECOND_US, problem)
            await around.clock.wait(stop, min(backoff.delay_us(failures, around.chance()), left_us))
        else:
            if failures:
                _log.info("the store is there")
            return result


@asynccontextmanager
async def _started(node: Node, settings: Settings, *, drains: bool) -> AsyncIterator[Node]:
    await node.start()
    try:
        yield node
        if drains:
            await node.drain(settings.drain_grace_us)
    finally:
        await node.stop()


async def _until(stop: asyncio.Event, task: "asyncio.Task[None]") -> None:
    """Wait until the event is set, or the task ends by itself, which raises what ended it."""
    stopping = asyncio.create_task(stop.wait())
    both: set[asyncio.Task[object]] = {stopping, task}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
    if task.done():
        await task


def _local_dial(node: Node) -> Callable[[str], "asyncio.Future[Connection]"]:
    def dial(address: str) -> "asyncio.Future[Connection]":
        del address  # There is only one.
        return asyncio.ensure_future(node.connect())

    return dial


def _reachable(listen: str) -> str:
    """Return what others may call an address: a wildcard becomes this host's name."""
    host, _, port = listen.rpartition(":")
    return f"{socket.getfqdn()}:{port}" if host in _EVERYWHERE else listen
