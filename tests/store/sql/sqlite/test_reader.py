"""Readers beside the writer: one snapshot for each script, and nobody waits for anybody."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from luciole.errors import StoreUnavailable
from luciole.store.sql.sqlite.connecting import Durability
from luciole.store.sql.sqlite.reader import Reader
from tests.store.sql.sqlite.files import a_connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "reader.db"
    with closing(a_connection(path, Durability.OFF)) as connection:
        connection.execute("CREATE TABLE mark (number INTEGER)")
    return path


@pytest_asyncio.fixture
async def reader(path: Path) -> AsyncIterator[Reader]:
    made = Reader(partial(a_connection, path, Durability.OFF), path=str(path))
    await made.open()
    yield made
    await made.close()


def count(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("SELECT count(*) FROM mark").fetchone()[0]
    return found


async def test_a_script_sees_one_state_of_the_file(reader: Reader, path: Path) -> None:
    def look_twice(connection: sqlite3.Connection) -> tuple[int, int]:
        before = count(connection)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("INSERT INTO mark VALUES (1)")
        return before, count(connection)

    assert await reader.run(look_twice) == (0, 0)
    assert await reader.run(count) == 1


async def test_reading_does_not_wait_for_who_writes(reader: Reader, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO mark VALUES (1)")
        assert await reader.run(count) == 0
        other.execute("COMMIT")
    assert await reader.run(count) == 1


async def test_a_reader_can_not_write(reader: Reader, path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="readonly"):
        await reader.run(lambda connection: connection.execute("INSERT INTO mark VALUES (1)"))
    with closing(sqlite3.connect(path)) as other:
        assert count(other) == 0


async def test_one_failed_read_does_not_spoil_the_next(reader: Reader) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await reader.run(lambda connection: connection.execute("SELECT * FROM absent"))
    with pytest.raises(ZeroDivisionError):
        await reader.run(lambda connection: count(connection) // 0)
    assert await reader.run(count) == 0


async def test_a_closed_reader_says_so(reader: Reader) -> None:
    await reader.close()
    await reader.close()
    with pytest.raises(StoreUnavailable, match="not open"):
        await reader.run(count)
