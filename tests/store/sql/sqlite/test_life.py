"""The life of a writer's and a reader's connection: whoever gives up meanwhile, we close it, and not the collector."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from luciole.store.sql.sqlite.connecting import begin_writing
from luciole.store.sql.sqlite.reader import Reader
from luciole.store.sql.sqlite.writer import Writer
from tests.store.sql.sqlite.files import a_connection


class Door:
    """Opens connections, when it may, and knows which are open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.gate, self.reached = threading.Event(), threading.Event()
        self.failure: Exception | None = None
        self.connections: list[sqlite3.Connection] = []

    def connect(self) -> sqlite3.Connection:
        self.reached.set()
        assert self.gate.wait(30)
        if self.failure:
            raise self.failure
        self.connections.append(a_connection(self.path))
        return self.connections[-1]

    def open_ones(self) -> int:
        return sum(is_open(connection) for connection in self.connections)


def is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def a_writer(door: Door) -> Writer:
    def begin(connection: sqlite3.Connection) -> None:
        begin_writing(connection, chance=lambda: 0.5, monotonic_us=lambda: 0)

    return Writer(door.connect, path=str(door.path), begin=begin, monotonic_us=lambda: 0)


def a_reader(door: Door) -> Reader:
    return Reader(door.connect, path=str(door.path))


@pytest.fixture(params=[a_writer, a_reader])
def make(request: pytest.FixtureRequest) -> Callable[[Door], Writer | Reader]:
    made: Callable[[Door], Writer | Reader] = request.param
    return made


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path / "a.db")


async def test_callers_that_open_at_once_share_one_connection(
    door: Door, make: Callable[[Door], Writer | Reader]
) -> None:
    lane = make(door)
    callers = [asyncio.create_task(lane.open()) for _ in range(3)]
    assert await asyncio.to_thread(door.reached.wait, 30)
    door.gate.set()
    await asyncio.gather(*callers)
    assert await lane.run(lambda connection: connection.execute("SELECT 7").fetchone()[0]) == 7
    assert len(door.connections) == 1
    await lane.close()
    assert door.open_ones() == 0


async def test_who_is_cancelled_while_opening_leaves_nothing_open(
    door: Door, make: Callable[[Door], Writer | Reader]
) -> None:
    lane = make(door)
    gone, stays = asyncio.create_task(lane.open()), asyncio.create_task(lane.open())
    assert await asyncio.to_thread(door.reached.wait, 30)
    gone.cancel()
    await asyncio.sleep(0)
    door.gate.set()
    await stays
    assert gone.cancelled()
    assert await lane.run(lambda connection: connection.execute("SELECT 7").fetchone()[0]) == 7
    assert door.open_ones() == 1
    await lane.close()
    assert door.open_ones() == 0


async def test_closing_while_opening_leaves_nothing_open(door: Door, make: Callable[[Door], Writer | Reader]) -> None:
    lane = make(door)
    opening = asyncio.create_task(lane.open())
    assert await asyncio.to_thread(door.reached.wait, 30)
    closing = asyncio.create_task(lane.close())
    await asyncio.sleep(0)
    door.gate.set()
    await asyncio.gather(opening, closing)
    assert len(door.connections) == 1
    assert door.open_ones() == 0


async def test_after_an_opening_that_failed_the_next_one_may_succeed(
    door: Door, make: Callable[[Door], Writer | Reader]
) -> None:
    door.gate.set()
    door.failure = sqlite3.OperationalError("not yet")
    lane = make(door)
    with pytest.raises(sqlite3.OperationalError, match="not yet"):
        await lane.open()
    door.failure = None
    await lane.open()
    assert await lane.run(lambda connection: connection.execute("SELECT 7").fetchone()[0]) == 7
    await lane.close()
    assert door.open_ones() == 0
