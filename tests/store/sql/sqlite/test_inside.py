"""Enqueueing inside a transaction of the user's own, on the same file."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from luciole.errors import InvalidValue, Unsupported
from luciole.limits import SECOND_US
from luciole.model.execution import EnqueueRequest
from luciole.store.sql.store import SqlStore
from luciole.testing.clock import FakeClock
from luciole.testing.factories import a_job, a_request
from tests.store.sql.sqlite.files import look, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "app.db"


@pytest_asyncio.fixture
async def store(path: Path) -> AsyncIterator[SqlStore]:
    async with opened(path) as made:
        await made.intern_jobs([a_job()])
        yield made


@pytest.fixture
def mine(path: Path, store: SqlStore) -> Iterator[sqlite3.Connection]:
    assert store.shards  # It comes first.
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (number INTEGER)")
    yield connection
    connection.close()


def requests(*numbers: int, **fields: Any) -> list[EnqueueRequest]:  # noqa: ANN401 - the fields of a request
    return [a_request(number, 1, 0, **fields) for number in numbers]


def counts(path: Path) -> list[tuple[object, ...]]:
    return look(path, "SELECT (SELECT count(*) FROM execution), (SELECT count(*) FROM entry), count(*) FROM orders")


async def test_what_was_enqueued_comes_with_the_user_s_commit(
    store: SqlStore, mine: sqlite3.Connection, path: Path
) -> None:
    mine.execute("INSERT INTO orders VALUES (1)")
    answers = store.enqueue_sql("sqlite3")(mine, requests(1, 2))
    assert [answer.created for answer in answers] == [True, True]
    assert counts(path) == [(0, 0, 0)]
    mine.commit()
    assert counts(path) == [(2, 2, 1)]


async def test_it_goes_with_the_user_s_rollback(store: SqlStore, mine: sqlite3.Connection, path: Path) -> None:
    store.enqueue_sql("sqlite3")(mine, requests(1))  # Before any write of the user's: it is part of theirs.
    mine.execute("INSERT INTO orders VALUES (1)")
    mine.rollback()
    assert counts(path) == [(0, 0, 0)]


async def test_a_user_without_a_transaction_gets_one_for_the_call(store: SqlStore, path: Path) -> None:
    alone = sqlite3.connect(path, isolation_level=None)
    store.enqueue_sql("sqlite3")(alone, requests(1))
    assert look(path, "SELECT count(*) FROM entry") == [(1,)]
    assert not alone.in_transaction
    alone.close()


async def test_a_key_that_exists_returns_its_execution_and_the_transaction_goes_on(
    store: SqlStore, mine: sqlite3.Connection, path: Path
) -> None:
    (first,) = await store.enqueue(requests(1, key="order-42"))
    mine.execute("INSERT INTO orders VALUES (1)")
    (again,) = store.enqueue_sql("sqlite3")(mine, requests(2, key="order-42"))
    mine.commit()
    assert (again.key, again.created) == (first.key, False)
    assert counts(path) == [(1, 1, 1)]


async def test_a_refused_request_leaves_the_transaction_as_it_was(
    store: SqlStore, mine: sqlite3.Connection, path: Path
) -> None:
    mine.execute("INSERT INTO orders VALUES (1)")
    with pytest.raises(InvalidValue):
        store.enqueue_sql("sqlite3")(mine, requests(1, priority=99))
    mine.commit()
    assert counts(path) == [(0, 0, 1)]


async def test_the_user_s_row_factory_is_theirs(store: SqlStore, mine: sqlite3.Connection) -> None:
    mine.row_factory = lambda _, row: {"row": row}
    (answer,) = store.enqueue_sql("sqlite3")(mine, requests(1, key="k"))
    mine.commit()
    assert await store.find_request("default", "k") == answer.key
    assert mine.execute("SELECT 1").fetchone() == {"row": (1,)}


async def test_a_connection_on_another_file_is_refused(store: SqlStore, tmp_path: Path) -> None:
    for other in (sqlite3.connect(tmp_path / "other.db"), sqlite3.connect(":memory:")):
        with pytest.raises(InvalidValue, match="enqueue inside needs one file"):
            store.enqueue_sql("sqlite3")(other, requests(1))
        other.close()


async def test_kinds_that_do_not_work_are_refused_with_those_that_do(store: SqlStore) -> None:
    assert store.capabilities.transactional_enqueue == ("sqlite3", "sqlalchemy_sync")
    with pytest.raises(Unsupported, match="sqlite3, sqlalchemy_sync"):
        store.enqueue_sql("asyncpg")


@pytest.mark.parametrize("orm", [False, True], ids=["connection", "session"])
@pytest.mark.parametrize("commits", [True, False])
async def test_sqlalchemy_decides_with_its_own_transaction(
    store: SqlStore, path: Path, mine: sqlite3.Connection, *, orm: bool, commits: bool
) -> None:
    mine.close()
    engine = create_engine(f"sqlite:///{path}")
    with Session(engine) if orm else engine.connect() as connection:
        connection.execute(text("INSERT INTO orders VALUES (1)"))
        store.enqueue_sql("sqlalchemy_sync")(connection, requests(1))
        if commits:
            connection.commit()
        else:
            connection.rollback()
    engine.dispose()
    assert counts(path) == ([(1, 1, 1)] if commits else [(0, 0, 0)])


async def test_a_commit_of_the_user_wakes_who_waits(path: Path) -> None:
    clock = FakeClock()
    async with opened(path, clock=clock) as store:
        await store.intern_jobs([a_job()])
        assert await waited(store, clock) is False  # Commits of its own wake nobody.
        mine = sqlite3.connect(path)
        store.enqueue_sql("sqlite3")(mine, requests(1))
        assert await waited(store, clock) is False
        mine.commit()
        mine.close()
        assert await waited(store, clock) is True


async def waited(store: SqlStore, clock: FakeClock) -> bool:
    """Wait for a hint for a second; return whether it came before the time was over."""
    waiting = asyncio.create_task(store.wait_hint(SECOND_US))
    await clock.advance(SECOND_US - 1)
    early = waiting.done()
    await clock.advance(1)
    assert await waiting == frozenset()
    return early
