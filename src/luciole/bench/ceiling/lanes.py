"""Measures the ceilings of `rows.py`: each work by several batch sizes and connections, of which the best counts."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

from luciole import limits
from luciole.bench.backends import Place, connect_postgres, sqlite_path
from luciole.bench.ceiling.rows import ROWS, TABLES
from luciole.bench.check import kind_of
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import InvalidRun
from luciole.runtime.chance import system_chance
from luciole.runtime.clock import Clock, SystemClock
from luciole.store.sql.sqlite.connecting import Durability, connect

Work = Literal["enqueue", "settle", "register", "find", "load"]

#: Fewer rows measure the machine's mood; more than the most say nothing further.
_ROWS_MIN: Final = 1_000
_ROWS_MAX: Final = 20_000

#: Large payloads take fewer rows, so that a ceiling is measured in seconds.
_PAYLOAD_BYTES_MAX: Final = 16 * 1_048_576

_BATCHES: Final = (500, 2_000)
_CONNECTIONS: Final = {"postgres": (1, 2, 4), "sqlite": (1,)}  # SQLite has one writer.

#: What has to stand in the store before a work can be done on it.
_BEFORE: Final[dict[Work, Work]] = {"settle": "enqueue", "load": "enqueue", "find": "register"}

#: What a work leaves behind, and how many of it a row of the work is.
_COUNTS: Final[dict[Work, str]] = {
    "enqueue": "SELECT (SELECT count(*) FROM execution) + (SELECT count(*) FROM entry)",
    "settle": "SELECT (SELECT count(*) FROM execution WHERE state = 10) * 2 - (SELECT count(*) FROM entry)",
    "register": "SELECT (SELECT count(*) FROM schedule) + (SELECT count(*) FROM cursor)",
    "find": "SELECT (SELECT count(*) FROM schedule) + (SELECT count(*) FROM cursor)",
    "load": "SELECT (SELECT count(*) FROM execution) + (SELECT count(*) FROM entry)",
}

#: The plan that is best whatever the statistics of the moment say: index look-ups row by row.
_PINNED: Final = ("enable_hashjoin", "enable_mergejoin", "enable_seqscan", "enable_material", "jit")


class RowCeiling(NamedTuple):
    """The best of what was tried for one work."""

    rate: float  #: rows a second
    batch: int
    connections: int


class _Lane(Protocol):
    async def transact(self, statements: Sequence[str], *values: Any) -> None: ...  # noqa: ANN401 - what a driver takes

    async def load(self, statement: str, parts: Sequence[int]) -> None: ...

    async def settle_down(self) -> None: ...

    async def number(self, statement: str) -> int: ...

    async def close(self) -> None: ...


class _PostgresLane:
    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - a connection of asyncpg
        self._connection = connection

    async def transact(self, statements: Sequence[str], *values: Any) -> None:  # noqa: ANN401 - what asyncpg takes
        for statement in statements:  # One statement, which commits by itself.
            await self._connection.execute(statement, *values)

    async def load(self, statement: str, parts: Sequence[int]) -> None:
        prepared = await self._connection.prepare(statement)
        for part in parts:
            await prepared.fetchrow(part % 32, part)

    async def settle_down(self) -> None:
        for table in TABLES:
            await self._connection.execute(f"VACUUM ANALYZE {table}")

    async def number(self, statement: str) -> int:
        return int(await self._connection.fetchval(statement))

    async def close(self) -> None:
        await self._connection.close()


class _SqliteLane:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def transact(self, statements: Sequence[str], *values: Any) -> None:  # noqa: ANN401 - what sqlite3 takes
        self._connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            self._connection.execute(statement, values[: _values_in(statement)]).fetchall()
        self._connection.execute("COMMIT")

    async def load(self, statement: str, parts: Sequence[int]) -> None:
        for part in parts:
            self._connection.execute(statement, (part % 32, part)).fetchone()

    async def settle_down(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    async def number(self, statement: str) -> int:
        return int(self._connection.execute(statement).fetchone()[0])

    async def close(self) -> None:
        self._connection.close()


def _values_in(statement: str) -> int:
    return 3 if "?3" in statement else 2


async def _open_postgres(place: Place) -> _Lane:
    connection = await connect_postgres(place)
    for name in _PINNED:
        await connection.execute(f"SET {name} = off")
    return _PostgresLane(connection)


async def _open_sqlite(place: Place) -> _Lane:
    durability = Durability(place.synchronous)  # As the product opens it: cache, checkpoints, durability.
    return _SqliteLane(
        connect(sqlite_path(place.dsn), durability, chance=system_chance(), monotonic_us=SystemClock().monotonic_us)
    )


_OPEN: dict[str, Callable[[Place], Awaitable[_Lane]]] = {"postgres": _open_postgres, "sqlite": _open_sqlite}


class RowCeilings:
    """The tables of the product in a place of their own, and lanes into them; what is in them is lost."""

    def __init__(self, kind: str, lanes: Sequence[_Lane], clock: Clock) -> None:
        self._kind = kind
        self._sql = ROWS[kind]
        self._lanes = lanes
        self._clock = clock

    @classmethod
    async def open(cls, place: Place, clock: Clock, *, fresh: bool = True) -> "RowCeilings":
        """Open a place.

        Args:
            place: where.
            clock: what times it.
            fresh: its schema is not there yet.
        """
        if fresh:
            await (await open_fresh(place, shards=32)).close()
        kind = kind_of(place)
        return cls(kind, [await _OPEN[kind](place) for _ in range(max(_CONNECTIONS[kind]))], clock)

    async def close(self) -> None:
        """Disconnect."""
        for lane in self._lanes:
            await lane.close()

    async def best(self, work: Work, count: int, *, payload: bytes = b"") -> RowCeiling:
        """Return the best rate of a work over all settings.

        Args:
            work: what the rows are for.
            count: about how many rows the product writes in one go; it is bounded.
            payload: of each execution.

        Raises:
            InvalidRun: other rows were written than should have been.
        """
        rows = min(max(count, _ROWS_MIN), _ROWS_MAX, _PAYLOAD_BYTES_MAX // max(1, len(payload)))
        batches = _BATCHES if work != "load" else _BATCHES[-1:]
        tried = []
        for batch in batches:
            for connections in _CONNECTIONS[self._kind]:
                rate = await self._rate(work, rows, batch, connections, payload)
                tried.append(RowCeiling(rate, batch, connections))
        return max(tried)

    async def _rate(self, work: Work, rows: int, batch: int, connections: int, payload: bytes) -> float:
        first = self._lanes[0]
        for statement in self._sql.clear:
            await first.transact((statement,))
        if work in _BEFORE:
            await self._do(_BEFORE[work], rows, _BATCHES[-1], 1, payload)
        await first.settle_down()
        at_us = self._clock.monotonic_us()
        await self._do(work, rows, batch, connections, payload)
        took_us = self._clock.monotonic_us() - at_us
        written = await first.number(_COUNTS[work])
        if written != 2 * rows:
            raise InvalidRun(f"the ceiling of {work} left {written} of {2 * rows} rows: it measured something else")
        return rows * limits.SECOND_US / took_us

    async def _do(self, work: Work, rows: int, batch: int, connections: int, payload: bytes) -> None:
        """Do it on so many lanes, each with batches of its own."""
        spans = [(low, min(low + batch, rows + 1) - 1) for low in range(1, rows + 1, batch)]

        async def one(number: int) -> None:
            lane = self._lanes[number]
            if work == "load":
                await lane.load(self._sql.load, range(1 + number, rows + 1, connections))
                return
            values = (payload,) if work == "enqueue" else ()
            for low, high in spans[number::connections]:
                await lane.transact(getattr(self._sql, work), low, high, *values)

        await asyncio.gather(*(one(number) for number in range(connections)))


async def measure_rows(
    place: Place, works: Sequence[Work], count: int, clock: Clock, *, payload: bytes = b""
) -> dict[Work, float]:
    """Return the ceiling of each work in an empty place, in rows a second."""
    ceilings = await RowCeilings.open(place, clock)
    try:
        return {work: (await ceilings.best(work, count, payload=payload)).rate for work in works}
    finally:
        await ceilings.close()


async def beside_a_burst(place: Place, plan_rate: float, count: int, clock: Clock) -> dict[str, float]:
    """Return the ceilings of a burst's throughputs by their figures, in a place that has held its sql-ceiling."""
    ceilings = await RowCeilings.open(place, clock, fresh=False)
    try:
        settle = (await ceilings.best("settle", count)).rate
        register = (await ceilings.best("register", count)).rate
    finally:
        await ceilings.close()
    return {
        "sql_ceiling_rate": plan_rate,
        "settle_ceiling_rate": settle,
        "register_ceiling_rate": register,
        "end_to_end_ceiling_rate": one_after_the_other(plan_rate, settle),
    }


def one_after_the_other(*rates: float) -> float:
    """Return the rate of works that are done one after the other: the ceiling of a way that needs them all."""
    return 1 / sum(1 / rate for rate in rates)
