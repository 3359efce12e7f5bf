"""Hints between processes: NOTIFY, at a bounded rate, on one connection that also listens.

A hint is never part of a plan: a commit that notifies takes a lock that all of them share.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from luciole import limits
from luciole.errors import LucioleError
from luciole.model.ids import Shard
from luciole.runtime.clock import Clock
from luciole.runtime.extras import require
from luciole.store.sql.hints import Hints, hint_text
from luciole.store.sql.postgres.pauses import pause_us

with require("postgres"):
    import asyncpg

if TYPE_CHECKING:
    Raw: TypeAlias = asyncpg.Connection[asyncpg.Record]

_log = logging.getLogger("luciole.store")
_EXPECTED = (OSError, TimeoutError, LucioleError, asyncpg.PostgresError, asyncpg.InterfaceError)


class Listener:
    """Tells other processes what may have become due, and hears it from them.

    It comes back by itself when its connection is lost; until then others are found by polling.
    """

    def __init__(
        self, connect: "Callable[[], Awaitable[Raw]]", *, clock: Clock, chance: Callable[[], float], channel: str
    ) -> None:
        """Make a listener; it connects when it is first needed.

        Args:
            connect: opens a connection.
            clock: for waits.
            chance: returns a random number in [0, 1); it spreads reconnections.
            channel: where all processes of one schema meet.
        """
        self._connect = connect
        self._clock = clock
        self._chance = chance
        self._channel = channel
        self._hints = Hints(clock)
        self._raw: Raw | None = None
        self._lost = asyncio.Event()
        self._connecting = asyncio.Lock()
        self._talking = asyncio.Lock()  #: one command at a time; the driver refuses a second
        self._outgoing: set[Shard] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None

    def tell(self, shards: frozenset[Shard]) -> None:
        """Wake who waits here at once, and others within a few milliseconds. Never blocks or fails."""
        self._hints.tell(shards)
        self._outgoing = (self._outgoing or set()) | shards
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send(), name="luciole-postgres-notify")

    async def wait(self, timeout_us: int) -> frozenset[Shard]:
        """Wait for a hint; an empty set when the time is over first, or when anything may have changed."""
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen(), name="luciole-postgres-listen")
        return await self._hints.wait(timeout_us) or frozenset()

    async def close(self) -> None:
        """Stop listening, and disconnect; safe to repeat."""
        for task in (self._sending, self._listening):
            if task:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        self._sending = self._listening = None
        if self._raw:
            self._raw.terminate()
            self._raw = None

    async def _send(self) -> None:
        try:
            while self._outgoing is not None:
                shards, self._outgoing = self._outgoing, None
                raw = await self._connected()
                await self._command(raw, f"NOTIFY {self._channel}, '{hint_text(shards)}'")
                await self._clock.sleep(limits.POSTGRES_NOTIFY_US)
        except Exception as error:  # noqa: BLE001 - the driver knows more errors than it tells of; a hint may be lost
            self._outgoing = None
            self._drop(error)
        finally:
            self._sending = None

    async def _listen(self) -> None:
        """Keep listening; after each connection anything may have changed meanwhile."""
        failures = 0
        while True:
            try:
                raw = await self._connected()
                async with self._talking:
                    await raw.add_listener(self._channel, self._hear)
                failures = 0
                self._hints.tell(frozenset())
                while not await self._clock.wait(self._lost, limits.POSTGRES_LISTEN_CHECK_US):
                    await self._command(raw, "SELECT 1")  # A line that is cut says nothing by itself.
            except Exception as error:  # noqa: BLE001 - whatever it is, hints must be heard again
                self._drop(error)
            failures += 1
            await self._clock.sleep(pause_us(failures, limits.POSTGRES_RECONNECT_MAX_US, self._chance()))

    def _hear(self, _connection: object, pid: int, _channel: str, payload: object) -> None:
        if self._raw is None or pid != self._raw.get_server_pid():
            self._hints.tell(frozenset(int(shard) for shard in str(payload).split(",") if shard.isdigit()))

    async def _connected(self) -> "Raw":
        async with self._connecting:
            if self._raw is None or self._raw.is_closed():
                self._raw = await self._connect()
                self._lost = lost = asyncio.Event()
                self._raw.add_termination_listener(lambda _: lost.set())
            return self._raw

    def _drop(self, error: Exception) -> None:
        """Give the connection up: who knows in which state it is."""
        if not isinstance(error, _EXPECTED):  # Those are said by the other connections, which need theirs for more.
            _log.warning("hints: the connection is made anew after %s: %s", type(error).__name__, error)
        raw, self._raw = self._raw, None
        if raw is not None:
            raw.terminate()

    async def _command(self, raw: "Raw", command: str) -> None:
        async with self._talking:
            watchdog = asyncio.get_running_loop().call_later(
                limits.POSTGRES_LEASE_COMMAND_US / limits.SECOND_US, raw.terminate
            )
            try:
                await raw.execute(command)
            finally:
                watchdog.cancel()
