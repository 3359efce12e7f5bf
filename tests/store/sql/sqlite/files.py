"""SQLite stores on files, as the tests of this folder need them."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from luciole.runtime.chance import seeded_chance
from luciole.runtime.clock import Clock, SystemClock
from luciole.store.sql.sqlite.connecting import Durability, connect
from luciole.store.sql.sqlite.dialect import SqliteDialect
from luciole.store.sql.store import SqlStore

SHARDS = 4


def a_dialect(
    path: Path | str, *, clock: Clock | None = None, durability: Durability = Durability.OFF
) -> SqliteDialect:
    """Return a dialect that is not connected."""
    return SqliteDialect(path, clock=clock or SystemClock(), chance=seeded_chance(7), durability=durability)


@asynccontextmanager
async def opened(
    path: Path, *, clock: Clock | None = None, durability: Durability = Durability.OFF
) -> AsyncIterator[SqlStore]:
    """Yield an open store."""
    store = SqlStore(a_dialect(path, clock=clock, durability=durability), shards=SHARDS)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def a_connection(path: Path, durability: Durability = Durability.OFF, *, has_table: bool = False) -> sqlite3.Connection:
    """Return a connection as the product opens it."""
    return connect(
        path, durability, chance=seeded_chance(7), monotonic_us=SystemClock().monotonic_us, has_table=has_table
    )


def look(path: Path, command: str) -> list[tuple[object, ...]]:
    """Ask the file, behind the store's back."""
    with closing(sqlite3.connect(path, timeout=5)) as connection:
        return connection.execute(command).fetchall()


def change(path: Path, command: str) -> None:
    """Change the file, behind the store's back."""
    with closing(sqlite3.connect(path, timeout=5)) as connection, connection:
        connection.execute(command)
