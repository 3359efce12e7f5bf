"""The least SQL that does the work: loops over one plain table, without the product, as ceilings of the same run.

`insert` makes one row durable at a time, in one statement that commits by itself; `transaction` does the same with
a begin and a commit around it, as a program does that has more to say; `pull` takes rows in batches and keeps
them as done. A further kind of store is an entry in `BARE`, and a way to open it.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from luciole import limits
from luciole.bench.backends import Place, connect_postgres, sqlite_path
from luciole.bench.check import kind_of
from luciole.runtime.clock import Clock

#: Rows that one turn of the pull loop takes.
PULL_BATCH: Final = 500

_TABLE = "bench_bare"


class BareSql(NamedTuple):
    """The statements of one kind of store; the values come in the order that their names say."""

    create: tuple[str, ...]
    insert: str  #: id, job_id, due_us, payload
    fill: str  #: how many, payload
    pull: str
    settle: str  #: ended_us
    any_entry: str


_COLUMNS = (
    "(id bigint PRIMARY KEY, job_id bigint NOT NULL, due_us bigint NOT NULL, state int NOT NULL, ended_us bigint, "
)

BARE: Final = {
    "postgres": BareSql(
        create=(
            f"CREATE TABLE {_TABLE} {_COLUMNS} payload bytea)",
            f"CREATE INDEX ON {_TABLE} (id) WHERE state = 0",
        ),
        insert=f"INSERT INTO {_TABLE} VALUES ($1, $2, $3, 9, NULL, $4)",  # noqa: S608 - a name of our own
        fill=f"INSERT INTO {_TABLE} SELECT -n, 1, 0, 0, NULL, $2 FROM generate_series(1, $1::bigint) AS n",  # noqa: S608
        pull=(
            f"UPDATE {_TABLE} SET state = 1 WHERE id IN (SELECT id FROM {_TABLE} WHERE state = 0 ORDER BY id "  # noqa: S608
            f"LIMIT {PULL_BATCH} FOR UPDATE SKIP LOCKED) RETURNING id, payload"
        ),
        settle=f"UPDATE {_TABLE} SET state = 2, ended_us = $1 WHERE state = 1",  # noqa: S608
        any_entry="SELECT CAST(EXISTS (SELECT 1 FROM entry) AS int)",
    ),
    "sqlite": BareSql(
        create=(
            f"CREATE TABLE {_TABLE} {_COLUMNS} payload blob)",
            f"CREATE INDEX {_TABLE}_ready ON {_TABLE} (id) WHERE state = 0",
        ),
        insert=f"INSERT INTO {_TABLE} VALUES (?, ?, ?, 9, NULL, ?)",  # noqa: S608
        fill=(
            "WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < ?1) "  # noqa: S608
            f"INSERT INTO {_TABLE} SELECT -n, 1, 0, 0, NULL, ?2 FROM count"
        ),
        pull=(
            f"UPDATE {_TABLE} SET state = 1 WHERE id IN (SELECT id FROM {_TABLE} WHERE state = 0 ORDER BY id "  # noqa: S608
            f"LIMIT {PULL_BATCH}) RETURNING id, payload"
        ),
        settle=f"UPDATE {_TABLE} SET state = 2, ended_us = ? WHERE state = 1",  # noqa: S608
        any_entry="SELECT EXISTS (SELECT 1 FROM entry)",
    ),
}


class _Line(Protocol):
    async def do(self, command: str) -> None: ...

    async def rows(self, statement: str, *values: Any) -> Sequence[Any]: ...  # noqa: ANN401 - what a driver takes

    async def close(self) -> None: ...


class _PostgresLine:
    """One connection; each statement is prepared once, as by whoever wants to be fast."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - a connection of asyncpg
        self._connection = connection
        self._prepared: dict[str, Any] = {}

    async def do(self, command: str) -> None:
        await self._connection.execute(command)

    async def rows(self, statement: str, *values: Any) -> Sequence[Any]:  # noqa: ANN401 - same
        if statement not in self._prepared:
            self._prepared[statement] = await self._connection.prepare(statement)
        rows: Sequence[Any] = await self._prepared[statement].fetch(*values)
        return rows

    async def close(self) -> None:
        await self._connection.close()


class _SqliteLine:
    """One connection, as durable as the product's."""

    def __init__(self, connection: sqlite3.Connection, durability: str) -> None:
        self._connection = connection
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {durability}")

    async def do(self, command: str) -> None:
        self._connection.execute(command)

    async def rows(self, statement: str, *values: Any) -> Sequence[Any]:  # noqa: ANN401 - what sqlite3 takes
        return self._connection.execute(statement, values).fetchall()

    async def close(self) -> None:
        self._connection.close()


async def _open_postgres(place: Place) -> _Line:
    return _PostgresLine(await connect_postgres(place))


async def _open_sqlite(place: Place) -> _Line:
    durability = place.dsn.partition("?durability=")[2] or "full"
    return _SqliteLine(sqlite3.connect(sqlite_path(place.dsn), isolation_level=None, timeout=10), durability)


_OPEN: dict[str, Callable[[Place], Awaitable[_Line]]] = {"postgres": _open_postgres, "sqlite": _open_sqlite}


class Bare:
    """The plain table of one place, and the loops over it."""

    def __init__(self, line: _Line, sql: BareSql, clock: Clock) -> None:
        self._line = line
        self._sql = sql
        self._clock = clock
        self._last = 0

    @classmethod
    async def open(cls, place: Place, clock: Clock) -> "Bare":
        """Make the table in a place; it goes with it."""
        kind = kind_of(place)
        bare = cls(await _OPEN[kind](place), BARE[kind], clock)
        for statement in bare._sql.create:
            await bare._line.do(statement)
        return bare

    async def close(self) -> None:
        """Disconnect."""
        await self._line.close()

    async def insert_rate(self, count: int, payload: bytes, *, begun: bool = False) -> float:
        """Insert rows one by one, each durable before the next; return rows a second.

        Args:
            count: how many.
            payload: of each.
            begun: with a begin and a commit around each, instead of a statement that commits by itself.
        """
        at_us = self._clock.monotonic_us()
        for _ in range(count):
            self._last += 1
            if begun:
                await self._line.do("BEGIN")
            await self._line.rows(self._sql.insert, self._last, 1, self._last, payload)
            if begun:
                await self._line.do("COMMIT")
        return count * limits.SECOND_US / (self._clock.monotonic_us() - at_us)

    async def pull_rate(self, count: int, payload: bytes) -> float:
        """Take prepared rows in batches and keep each as done, durably; return rows a second."""
        await self._line.rows(self._sql.fill, count, payload)
        at_us = self._clock.monotonic_us()
        left = count
        while left > 0:
            left -= len(await self._line.rows(self._sql.pull))
            await self._line.rows(self._sql.settle, self._clock.now_us())
        return count * limits.SECOND_US / (self._clock.monotonic_us() - at_us)

    async def any_entry(self) -> bool:
        """Tell whether the outbox of the place has an entry."""
        return bool((await self._line.rows(self._sql.any_entry))[0][0])
