"""One connection of ours: what the server is asked for when it opens, and running queries on it."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from luciole import limits
from luciole.errors import InvalidValue, Unsupported
from luciole.runtime.extras import require
from luciole.runtime.steps import Steps
from luciole.store.sql.postgres.binding import Prepared
from luciole.store.sql.postgres.failures import refusal
from luciole.store.sql.script import Query, Row

with require("postgres"):
    import asyncpg

OLDEST_VERSION = 15

#: Hot statements find everything by key. With little data, or stale statistics, the planner would rather read whole
#: tables (a quarter of the rate), and after five executions it would weigh a generic plan anew. A plan that was made
#: while a table was empty stays for long, so every way to read all of a table is off.
PINNED = {
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_material": "off",
    "enable_memoize": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}

#: What our sessions are called on the server.
APPLICATION = "luciole"

#: A hint is no data: its commit need not wait for the disk, where it would stand in the way of those that must.
HINTING = {"synchronous_commit": "off"}

#: Kept below the least time to live of a lease: no stopped client sits on an open transaction, and nobody waits
#: for a lock longer than that. The keep-alives end the session of a client whose machine is gone.
_SESSION = {
    "application_name": APPLICATION,
    "default_transaction_isolation": "read committed",
    "idle_in_transaction_session_timeout": f"{limits.POSTGRES_IDLE_IN_TRANSACTION_US // limits.MS_US}ms",
    "lock_timeout": f"{limits.POSTGRES_LOCK_US // limits.MS_US}ms",
    "statement_timeout": f"{limits.POSTGRES_STATEMENT_US // limits.MS_US}ms",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "timezone": "UTC",
}

_FORM = "postgresql://user:password@host:5432/database"
_SCHEMA_NAME = re.compile("[a-z_][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class Place:
    """Which database, and how to speak of it without its password."""

    dsn: str
    schema: str = "luciole"

    def __post_init__(self) -> None:
        if not _is_readable(self.dsn):
            # Nothing of it is shown: where a password is not quoted, any part may be a piece of it.
            raise InvalidValue(
                f"dsn: it can't be read; it looks like {_FORM}, with special characters of the password as %XX"
            )
        if not _SCHEMA_NAME.fullmatch(self.schema):
            raise InvalidValue(f"schema: {self.schema[:80]!r} must be lower-case letters, digits and underscores")

    def __str__(self) -> str:
        parts = urlsplit(self.dsn)
        return (parts.netloc.rpartition("@")[2] or "local socket") + parts.path

    def __repr__(self) -> str:
        return f"<{self}>"


def _is_readable(dsn: str) -> bool:
    """Whether the parts of a DSN are what they seem to be: an unquoted password shifts them."""
    try:
        parts = urlsplit(dsn)
        hosts = parts.netloc.rpartition("@")[2]
        return (
            parts.scheme in {"postgresql", "postgres"}
            and "@" not in parts.path + parts.query
            and not parts.fragment
            and ("," in hosts or parts.port != 0)
        )
    except ValueError:
        return False


class Link:
    """A connection, with the statements that it has prepared."""

    def __init__(
        self, raw: "asyncpg.Connection[asyncpg.Record]", prepared: Mapping[str, Prepared], steps: Steps | None = None
    ) -> None:
        self.raw = raw
        self._steps = steps
        self._prepared = prepared
        self._ready: dict[str, dict[int, asyncpg.prepared_stmt.PreparedStatement[asyncpg.Record]]] = {}

    @property
    def closed(self) -> bool:
        """Whether it can't be used any more."""
        return self.raw.is_closed()

    def has_nothing_to_do(self, query: Query) -> bool:
        """Whether a query is answered without the server: another statement does its work, or it has no rows."""
        return self._prepared[query.name].does_nothing(query)

    def ask(self, query: Query, may_send: Callable[[], None]) -> Awaitable[Sequence[Row]]:
        """Run one query; return the rows of its one answering command.

        Args:
            query: what to run.
            may_send: called before anything is sent, with nothing awaited in between; it raises when that is too late.
        """
        return self._ask(query, may_send) if self._steps is None else self._timed(self._steps, query, may_send)

    async def _timed(self, steps: Steps, query: Query, may_send: Callable[[], None]) -> Sequence[Row]:
        begun_us = steps.begin()
        try:
            return await self._ask(query, may_send)
        finally:
            steps.end("statement", begun_us)

    async def _ask(self, query: Query, may_send: Callable[[], None]) -> Sequence[Row]:
        prepared = self._prepared[query.name]
        ready = self._ready.get(query.name)
        if ready is None:
            ready = self._ready[query.name] = {}
        answer: list[Any] = []
        for index, values in prepared.calls(query):
            statement = ready.get(index)
            if statement is None:  # Each when it is first needed: it may speak of what the one before it made.
                # By name: an unnamed one would be parsed and planned again for each execution.
                may_send()
                text, name = prepared.commands[index].text, f"{query.name}_{index}"
                statement = ready[index] = await self.raw.prepare(text, name=name)
            may_send()  # I3: once more, however long preparing took.
            answer += await statement.fetch(*values)
        return answer

    async def execute(self, command: str) -> None:
        """Run a command without values."""
        if self._steps is None:
            await self.raw.execute(command)
            return
        begun_us = self._steps.begin()
        try:
            await self.raw.execute(command)
        finally:
            self._steps.end("commit" if command == "COMMIT" else "statement", begun_us)

    def drop(self) -> None:
        """Close it at once, whatever is under way."""
        self.raw.terminate()

    async def close(self) -> None:
        """Say goodbye and close it."""
        try:
            await self.raw.close(timeout=limits.POSTGRES_CONNECT_US / limits.SECOND_US)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self.drop()


async def connect(place: Place, settings: Mapping[str, str]) -> "asyncpg.Connection[asyncpg.Record]":
    """Open a connection.

    Args:
        place: the database.
        settings: server settings beside those that every connection of ours has.

    Raises:
        InvalidValue: the server will never let us in like this; the message says why.
        StoreUnavailable: it can't be reached at the moment.
        Unsupported: it is too old.
    """
    try:
        raw: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(
            place.dsn,
            server_settings={**_SESSION, "search_path": place.schema, **settings},
            statement_cache_size=0,  # What is worth preparing is prepared by name.
            timeout=limits.POSTGRES_CONNECT_US / limits.SECOND_US,
        )
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as problem:
        raise refusal(problem, str(place)) from problem
    version = raw.get_server_version()
    if version.major < OLDEST_VERSION:
        raw.terminate()
        raise Unsupported(
            f"postgresql: {place}: the server has version {version.major}.{version.minor}; "
            f"Luciole needs {OLDEST_VERSION} or newer"
        )
    return raw
