"""The home of a client: one event loop that owns it, reached from every other loop and thread."""

import asyncio
import atexit
import contextlib
import functools
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Concatenate, ParamSpec, TypeVar

from luciole.client.client import Client
from luciole.errors import IllegalState

T = TypeVar("T")
SelfT = TypeVar("SelfT")
P = ParamSpec("P")

#: How long the end of a process waits for its client.
_EXIT_PATIENCE_S = 5

#: Whether this thread is inside a sync twin, where waiting means blocking.
_blocking: ContextVar[bool] = ContextVar("luciole_blocking", default=False)


def twin(method: Callable[Concatenate[SelfT, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[SelfT, P], T]:
    """Return the sync twin of an async method: the one place where sync meets async.

    The method runs in the caller's thread (so that it may use the caller's own connection) and blocks where it
    asks the home for something.

    Raises:
        IllegalState: called on the event loop that it would have to wait for.
    """

    @functools.wraps(method)
    def sync(self: SelfT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        token = _blocking.set(True)
        coroutine = method(self, *args, **kwargs)
        try:
            coroutine.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            _blocking.reset(token)
            coroutine.close()
        raise IllegalState(f"{method.__name__}: this connection needs an event loop; use await {method.__name__}(…)")

    sync.__name__ = f"{method.__name__}_sync"
    sync.__qualname__ = f"{method.__qualname__}_sync"
    sync.__doc__ = f"Do as `{method.__name__}`, for callers without an event loop."
    return sync


def blocking() -> bool:
    """Tell whether this is inside a sync twin, where nothing can be awaited."""
    return _blocking.get()


class _Seat:
    """A loop, and the client that was opened on it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread | None = None) -> None:
        self.loop = loop
        self.thread = thread  #: of a loop of our own
        self.client: Client | None = None
        self.opening: asyncio.Task[Client] | None = None
        self.keeper: AsyncGenerator[None, None] | None = None
        self.pid = os.getpid()

    @property
    def alive(self) -> bool:
        # A forked process has a copy of the loop, but not the thread that runs it.
        return self.loop.is_running() and self.pid == os.getpid()


class Home:
    """Where the client of an app lives: on the loop that used it first, or on one in a thread of its own.

    A client closes with its loop: `asyncio.run` closes it as it closes everything. When the loop is gone, the next
    use opens another.

    Args:
        open_client: opens a client on the running loop.
    """

    def __init__(self, open_client: Callable[[], Awaitable[Client]]) -> None:
        self._open_client = open_client
        self._seat: _Seat | None = None
        self._lock = threading.Lock()

    def here(self) -> Client | None:
        """Return the client where it is open and lives on the running loop; else None: `call` reaches it."""
        seat = self._seat
        if seat is None or _blocking.get() or seat.loop is not asyncio.get_running_loop() or seat.pid != os.getpid():
            return None
        return seat.client

    async def call(self, action: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Run an action with the client, on its loop, from whatever loop or thread this is."""
        if _blocking.get():
            return self._call_blocking(action)
        loop = asyncio.get_running_loop()
        seat = self._seated(loop)
        if seat.loop is loop:
            return await action(seat.client or await self._opened(seat))
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._act(seat, action), seat.loop))

    def bind(self, client: Client) -> None:
        """Use a client that lives on the running loop and is closed by its owner."""
        seat = _Seat(asyncio.get_running_loop())
        seat.client = client
        with self._lock:
            self._seat = seat

    async def close(self) -> None:
        """Close the client, if there is one; the next use opens another."""
        with self._lock:
            seat, self._seat = self._seat, None
        if seat is None or not seat.alive:
            return
        if _blocking.get():
            _refuse_own_loop(seat)
            asyncio.run_coroutine_threadsafe(_leave(seat), seat.loop).result()
        elif seat.loop is asyncio.get_running_loop():
            await _leave(seat)
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_leave(seat), seat.loop))
        if seat.thread is not None:
            seat.loop.call_soon_threadsafe(seat.loop.stop)
            seat.thread.join()

    def _call_blocking(self, action: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        seat = self._seated(None)
        _refuse_own_loop(seat)
        future = asyncio.run_coroutine_threadsafe(self._act(seat, action), seat.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _seated(self, loop: asyncio.AbstractEventLoop | None) -> _Seat:
        seat = self._seat
        if seat is not None and seat.alive:
            return seat
        with self._lock:
            if self._seat is None or not self._seat.alive:
                self._seat = _own_seat() if loop is None else _Seat(loop)
                if loop is None:
                    atexit.register(_leave_at_exit, self._seat)
            return self._seat

    async def _act(self, seat: _Seat, action: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        _blocking.set(False)  # The context came along from the caller's thread; here is a loop.
        return await action(seat.client or await self._opened(seat))

    async def _opened(self, seat: _Seat) -> Client:
        """Return the seat's client; the first caller opens it, and a failure is for all who wait for this try."""
        if seat.client is None:
            if seat.opening is None:
                seat.opening = asyncio.get_running_loop().create_task(self._open(seat))
            await asyncio.shield(seat.opening)
        assert seat.client is not None
        return seat.client

    async def _open(self, seat: _Seat) -> Client:
        try:
            seat.client = client = await self._open_client()
        finally:
            seat.opening = None
        seat.keeper = _keep(client)
        await anext(seat.keeper)
        return client


async def _keep(client: Client) -> AsyncGenerator[None, None]:
    """Close the client when its loop closes its asynchronous generators."""
    try:
        yield
    finally:
        await client.close()


async def _leave(seat: _Seat) -> None:
    client, seat.client = seat.client, None
    if seat.keeper is not None:
        await seat.keeper.aclose()
    elif client is not None:  # Bound: what is queued becomes durable while its owner's store is still open.
        await client.close()


def _leave_at_exit(seat: _Seat) -> None:
    if seat.alive:
        # All that was answered is durable already: nothing may hold up or spoil the end of the process.
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(_leave(seat), seat.loop).result(timeout=_EXIT_PATIENCE_S)


def _own_seat() -> _Seat:
    loop = asyncio.new_event_loop()
    started = threading.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.call_soon(started.set)
        try:
            loop.run_forever()
        finally:
            loop.close()

    thread = threading.Thread(target=run, name="luciole-client", daemon=True)
    thread.start()
    started.wait()
    return _Seat(loop, thread)


def _refuse_own_loop(seat: _Seat) -> None:
    with contextlib.suppress(RuntimeError):
        if asyncio.get_running_loop() is seat.loop:
            raise IllegalState("a sync twin would block the event loop that has to answer it; use await instead")
