"""The gateway inside one process: frames are handed over as they are, without a copy."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from luciole import limits
from luciole.errors import Unavailable
from luciole.wire.connection import Connection
from luciole.wire.messages import Message


class _Pipe:
    """One direction: at most `limits.LOCAL_FRAMES_MAX` frames wait in it, then the sender does."""

    __slots__ = ("_changed", "_frames", "broken", "closed")

    def __init__(self) -> None:
        self._frames: deque[Sequence[Message]] = deque()
        self._changed = asyncio.Condition()
        self.closed = False
        self.broken = False

    async def put(self, frame: Sequence[Message]) -> None:
        async with self._changed:
            while len(self._frames) >= limits.LOCAL_FRAMES_MAX and not self.closed:
                await self._changed.wait()
            if self.closed:
                raise Unavailable("the in-process connection is closed; connect again")
            self._frames.append(frame)
            self._changed.notify_all()

    async def get(self) -> Sequence[Message]:
        async with self._changed:
            while not self._frames and not self.closed:
                await self._changed.wait()
            if self.broken:
                raise Unavailable("the in-process connection broke; connect again")
            if not self._frames:
                return ()
            frame = self._frames.popleft()
            self._changed.notify_all()
            return frame

    async def end(self, *, broken: bool) -> None:
        async with self._changed:
            self.closed = True
            self.broken = self.broken or broken
            self._changed.notify_all()


class LocalConnection:
    """One end of a connection inside one event loop; `local_pair` makes both.

    A frame that was sent before an orderly `close` still arrives.
    """

    __slots__ = ("_incoming", "_outgoing")

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def send(self, frame: Sequence[Message]) -> None:
        """Hand one frame to the other end; wait while too many are on their way.

        Raises:
            Unavailable: either end closed the connection, or it was severed.
        """
        if frame:  # An empty one would say that this end closed.
            await self._outgoing.put(frame)

    async def receive(self) -> Sequence[Message]:
        """Return the next frame; an empty one says that an end closed in order.

        Raises:
            Unavailable: the connection was severed.
        """
        return await self._incoming.get()

    async def close(self) -> None:
        """End the connection in order; safe to repeat."""
        await self._outgoing.end(broken=False)
        await self._incoming.end(broken=False)

    async def sever(self) -> None:
        """Break the connection as a lost network would: frames on their way are gone."""
        await self._outgoing.end(broken=True)
        await self._incoming.end(broken=True)


def local_pair() -> tuple[LocalConnection, LocalConnection]:
    """Return the two ends of a new connection inside this event loop."""
    there, back = _Pipe(), _Pipe()
    return LocalConnection(back, there), LocalConnection(there, back)


class LocalGateway:
    """Connects executors of this process with its node.

    Args:
        serve: runs the node's end of one connection until it ends (`Sessions.serve`).
    """

    def __init__(self, serve: Callable[[Connection], Awaitable[None]]) -> None:
        self._serve = serve
        self._served: dict[asyncio.Task[None], LocalConnection] = {}

    async def connect(self) -> LocalConnection:
        """Return the executor's end of a new connection."""
        ours, theirs = local_pair()
        task = asyncio.create_task(self._run(ours), name="luciole-local-session")
        self._served[task] = ours
        task.add_done_callback(self._forget)
        return theirs

    async def close(self) -> None:
        """End all connections and wait for their sessions."""
        for connection in tuple(self._served.values()):
            await connection.close()
        if self._served:
            await asyncio.wait(tuple(self._served))

    async def sever(self) -> None:
        """Break all connections, as the sudden end of a process would."""
        for connection in tuple(self._served.values()):
            await connection.sever()

    async def _run(self, connection: LocalConnection) -> None:
        try:
            await self._serve(connection)
        finally:
            await connection.close()

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._served[task]
        if not task.cancelled():
            task.exception()  # A session logs its own trouble; here it only must not be "never retrieved".
