"""The group commit: whatever is queued now, in one transaction; nobody is told before it is durable."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from luciole.errors import OutcomeUnknown, StoreFull, StoreUnavailable
from luciole.store.sql.sqlite.connecting import Durability, begin_writing
from luciole.store.sql.sqlite.writer import Writer
from tests.store.sql.sqlite.files import a_connection


class ScriptedConnection(sqlite3.Connection):
    """A connection whose commits can be held up, made to fail, and counted."""

    commits = 0
    savepoints = 0
    failing: list[sqlite3.Error | None]  #: of the next commits
    gate: threading.Event
    reached: threading.Event

    def execute(self, command: str, *values: Any) -> sqlite3.Cursor:  # noqa: ANN401 - as sqlite3's own
        self.savepoints += command.startswith("SAVEPOINT")
        if command == "COMMIT":
            self.reached.set()
            assert self.gate.wait(10)
            problem = self.failing.pop(0) if self.failing else None
            if problem:
                raise problem
            self.commits += 1
        return super().execute(command, *values)


class Bench:
    """A writer on a file of its own, and the levers of its connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ticks_us = [0]
        self.gate, self.reached = threading.Event(), threading.Event()
        self.failing: list[sqlite3.Error | None] = []
        self.connections: list[ScriptedConnection] = []
        self.begin: Callable[[sqlite3.Connection], None] = self.begin_now
        self.writer = Writer(
            self._connect,
            path=str(path),
            begin=lambda connection: self.begin(connection),  # noqa: PLW0108 - what it is may change
            monotonic_us=self.now_us,
        )
        self.gate.set()

    def begin_now(self, connection: sqlite3.Connection) -> None:
        begin_writing(connection, chance=lambda: 0.5, monotonic_us=self.now_us)

    def now_us(self) -> int:
        return self.ticks_us[0]

    def _connect(self) -> sqlite3.Connection:
        a_connection(self.path, Durability.OFF).close()
        made = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, factory=ScriptedConnection)
        made.gate, made.reached, made.failing = self.gate, self.reached, self.failing
        made.execute("CREATE TABLE IF NOT EXISTS mark (number INTEGER PRIMARY KEY, thread INTEGER, text BLOB)")
        self.connections.append(made)
        return made

    @property
    def commits(self) -> int:
        return sum(connection.commits for connection in self.connections)

    def marks(self) -> list[int]:
        """What is durable, as another process sees it."""
        other = sqlite3.connect(self.path)
        try:
            return [row[0] for row in other.execute("SELECT number FROM mark ORDER BY number")]
        finally:
            other.close()

    async def hold_commits(self) -> None:
        self.gate.clear()
        self.reached.clear()

    async def until_in_commit(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 10)


def mark(number: int) -> Callable[[sqlite3.Connection], int]:
    def operation(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO mark VALUES (?, ?, NULL)", (number, threading.get_ident()))
        return number

    return operation


@pytest_asyncio.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path / "writer.db")
    await made.writer.open()
    yield made
    made.gate.set()
    await made.writer.close()


async def test_nobody_is_told_before_the_commit(bench: Bench) -> None:
    """I9: nothing is acknowledged before it is durable."""
    await bench.hold_commits()
    told = asyncio.create_task(bench.writer.run(mark(1)))
    await bench.until_in_commit()
    await asyncio.sleep(0)
    assert not told.done()
    assert bench.marks() == []
    bench.gate.set()
    assert await told == 1
    assert bench.marks() == [1]


async def test_what_queues_up_during_a_commit_shares_the_next_one(bench: Bench) -> None:
    await bench.hold_commits()
    first = asyncio.create_task(bench.writer.run(mark(0)))
    await bench.until_in_commit()
    crowd = [asyncio.create_task(bench.writer.run(mark(number))) for number in range(1, 101)]
    await asyncio.sleep(0)
    bench.gate.set()
    assert await asyncio.gather(first, *crowd) == list(range(101))
    assert bench.commits == 2


async def test_a_lone_caller_waits_for_nobody(bench: Bench) -> None:
    for number in range(3):
        assert await bench.writer.run(mark(number)) == number
    assert bench.commits == 3


async def test_a_failed_commit_fails_everybody_in_its_group_and_nobody_else(bench: Bench) -> None:
    """I9: a failed flush fails every waiter of that flush."""
    await bench.hold_commits()
    first = asyncio.create_task(bench.writer.run(mark(0)))
    await bench.until_in_commit()
    crowd = [asyncio.create_task(bench.writer.run(mark(number))) for number in range(1, 11)]
    await asyncio.sleep(0)
    broken = sqlite3.OperationalError("disk I/O error")
    broken.sqlite_errorcode = sqlite3.SQLITE_IOERR
    bench.failing += [None, broken]
    bench.gate.set()
    answers = await asyncio.gather(first, *crowd, return_exceptions=True)
    assert answers[0] == 0
    assert [type(answer) for answer in answers[1:]] == [OutcomeUnknown] * 10
    assert await bench.writer.run(mark(99)) == 99
    assert bench.marks() == [0, 99]


async def test_a_full_disk_at_the_commit_says_that_nothing_was_written(bench: Bench) -> None:
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    bench.failing.append(full)
    with pytest.raises(StoreFull, match="nothing was written"):
        await bench.writer.run(mark(1))
    assert await bench.writer.run(mark(2)) == 2
    assert bench.marks() == [2]


async def test_an_operation_that_fails_rolls_back_alone(bench: Bench) -> None:
    def half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO mark VALUES (50, 0, NULL)")
        connection.execute("INSERT INTO mark VALUES (51, 0, NULL)")
        raise RuntimeError("half way")

    await bench.hold_commits()
    first = asyncio.create_task(bench.writer.run(mark(0)))
    await bench.until_in_commit()
    crowd = [asyncio.create_task(bench.writer.run(operation)) for operation in (mark(1), half, mark(2))]
    await asyncio.sleep(0)
    bench.gate.set()
    answers = await asyncio.gather(first, *crowd, return_exceptions=True)
    assert answers[:2] == [0, 1]
    assert isinstance(answers[2], RuntimeError)
    assert answers[3] == 2
    assert bench.commits == 2
    assert bench.marks() == [0, 1, 2]


async def test_a_lone_operation_needs_no_savepoint_and_leaves_nothing_when_it_fails(bench: Bench) -> None:
    def half(connection: sqlite3.Connection) -> None:
        mark(50)(connection)
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        await bench.writer.run(half)
    assert bench.marks() == []
    assert bench.commits == 0
    assert await bench.writer.run(mark(1)) == 1
    assert [connection.savepoints for connection in bench.connections] == [0]
    assert bench.marks() == [1]


async def test_when_sqlite_gives_up_a_transaction_the_others_of_the_group_are_done_again(bench: Bench) -> None:
    def give_up(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("database or disk is full")

    await bench.hold_commits()
    first = asyncio.create_task(bench.writer.run(mark(0)))
    await bench.until_in_commit()
    crowd = [asyncio.create_task(bench.writer.run(operation)) for operation in (mark(1), give_up, mark(2))]
    await asyncio.sleep(0)
    bench.gate.set()
    answers = await asyncio.gather(first, *crowd, return_exceptions=True)
    assert isinstance(answers.pop(2), sqlite3.OperationalError)
    assert answers == [0, 1, 2]
    assert bench.marks() == [0, 1, 2]


async def test_a_group_that_takes_long_is_committed_in_parts_and_in_order(bench: Bench) -> None:
    order: list[int] = []

    def slow(number: int) -> Callable[[sqlite3.Connection], None]:
        def operation(connection: sqlite3.Connection) -> None:
            mark(number)(connection)
            order.append(number)
            bench.ticks_us[0] += 30_000

        return operation

    await bench.hold_commits()
    first = asyncio.create_task(bench.writer.run(mark(0)))
    await bench.until_in_commit()
    crowd = [asyncio.create_task(bench.writer.run(slow(number))) for number in range(1, 7)]
    await asyncio.sleep(0)
    bench.gate.set()
    await asyncio.gather(first, *crowd)
    assert order == list(range(1, 7))
    assert bench.commits == 1 + 3


async def test_a_large_operation_ends_its_group(bench: Bench) -> None:
    """Two large ones in one commit would make both callers compute at the same time and then wait at the same time."""
    await bench.hold_commits()
    first = asyncio.create_task(bench.writer.run(mark(0)))
    await bench.until_in_commit()
    crowd = [asyncio.create_task(bench.writer.run(mark(n), is_large=n in {2, 3})) for n in range(1, 6)]
    await asyncio.sleep(0)
    bench.gate.set()
    assert list(await asyncio.gather(first, *crowd)) == list(range(6))
    assert bench.commits == 1 + 3  # (1, 2), (3), (4, 5)


async def test_no_wake_up_is_lost_however_callers_and_commits_interleave(bench: Bench) -> None:
    async def caller(number: int) -> None:
        for step in range(20):
            for _ in range((number * 7 + step * 3) % 5):
                await asyncio.sleep(0)
            assert await bench.writer.run(mark(number * 100 + step)) == number * 100 + step

    async with asyncio.timeout(30):
        await asyncio.gather(*(caller(number) for number in range(50)))
    assert len(bench.marks()) == 1_000


async def test_a_caller_that_gave_up_keeps_nobody_else_waiting(bench: Bench) -> None:
    await bench.hold_commits()
    first = asyncio.create_task(bench.writer.run(mark(0)))
    await bench.until_in_commit()
    gone, stays = (asyncio.create_task(bench.writer.run(mark(number))) for number in (1, 2))
    await asyncio.sleep(0)
    gone.cancel()
    bench.gate.set()
    assert list(await asyncio.gather(first, stays)) == [0, 2]
    assert bench.marks() == [0, 2]


async def test_closing_waits_for_what_is_queued(bench: Bench) -> None:
    await bench.hold_commits()
    told = [asyncio.create_task(bench.writer.run(mark(number))) for number in range(3)]
    await bench.until_in_commit()
    closing = asyncio.create_task(bench.writer.close())
    await asyncio.sleep(0)
    bench.gate.set()
    await closing
    assert [task.result() for task in told] == [0, 1, 2]
    with pytest.raises(StoreUnavailable, match="not open"):
        await bench.writer.run(mark(3))
    assert bench.marks() == [0, 1, 2]


async def test_one_thread_does_all_the_writing_and_it_is_not_the_loop(bench: Bench) -> None:
    await asyncio.gather(*(bench.writer.run(mark(number)) for number in range(10)))
    await bench.writer.run(mark(10))
    threads = await bench.writer.run(lambda c: c.execute("SELECT DISTINCT thread FROM mark").fetchall())
    assert len(threads) == 1
    assert threads[0][0] != threading.get_ident()


async def test_a_file_that_others_keep_locked_is_unavailable_after_a_bound(bench: Bench) -> None:
    other = sqlite3.connect(bench.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    # The bound lies behind the clock at its third look.
    looks = iter([0, 0, 10_000_000])
    bench.begin = lambda c: begin_writing(c, chance=lambda: 0.0, monotonic_us=lambda: next(looks))
    with pytest.raises(StoreUnavailable, match="locked"):
        await bench.writer.run(mark(1))
    other.execute("ROLLBACK")
    other.close()
    bench.begin = bench.begin_now
    assert await bench.writer.run(mark(2)) == 2
    assert bench.marks() == [2]
