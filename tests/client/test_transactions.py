"""`tx=`: an enqueue inside the user's own transaction happens with it or not at all, on every driver."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from luciole.app import App
from luciole.client.job import Job
from luciole.errors import IllegalState, InvalidValue, StoreUnavailable, Unsupported
from luciole.model.execution import ExecutionState
from luciole.wiring import make_store, open_store

Charge: TypeAlias = Job[[int], None, None]


def an_app(dsn: str) -> tuple[App, Charge]:
    app = App(dsn, name="shop")

    @app.job
    def charge(order_id: int) -> None:
        del order_id

    return app, charge


@pytest.fixture
def sqlite_dsn(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shop.db'}"


def path_of(dsn: str) -> str:
    return dsn.removeprefix("sqlite:///")


@pytest.mark.parametrize("isolation", ["IMMEDIATE", "DEFERRED", None])
def test_sqlite3_takes_the_enqueue_with_the_users_rows_or_not_at_all(sqlite_dsn: str, isolation: Any) -> None:  # noqa: ANN401
    app, charge = an_app(sqlite_dsn)
    with app:
        connection = sqlite3.connect(path_of(sqlite_dsn), isolation_level=isolation)
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        connection.commit()
        for order_id, keeps in ((1, True), (2, False)):
            if isolation is None:
                connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO orders VALUES (?)", (order_id,))
            handle = charge.options(tx=connection, key=f"order-{order_id}").enqueue_sync(order_id)
            assert handle.created
            if keeps:
                connection.commit()
                assert handle.state_sync() is ExecutionState.READY
            else:
                connection.rollback()
        orders = [order_id for (order_id,) in connection.execute("SELECT id FROM orders")]
        connection.close()
        # The key of the transaction that was rolled back is free again.
        fresh = charge.options(key="order-2").enqueue_sync(2)
        known = charge.options(key="order-1").enqueue_sync(1)
    assert (orders, fresh.created, known.created) == ([1], True, False)


def test_a_key_that_exists_does_not_abort_the_users_transaction(sqlite_dsn: str) -> None:
    app, charge = an_app(sqlite_dsn)
    with app:
        first = charge.options(key="k").enqueue_sync(1)
        connection = sqlite3.connect(path_of(sqlite_dsn))
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO orders VALUES (1)")
        again = charge.options(tx=connection, key="k").enqueue_sync(1)
        connection.commit()
        count = connection.execute("SELECT count(*) FROM orders").fetchone()
        connection.close()
    assert (again == first, again.created, count) == (True, False, (1,))


def test_many_calls_join_one_transaction(sqlite_dsn: str) -> None:
    app, charge = an_app(sqlite_dsn)
    with app:
        connection = sqlite3.connect(path_of(sqlite_dsn))
        handles = charge.options(tx=connection).enqueue_many_sync(range(2_500))
        connection.rollback()
        connection.close()
        backlog = charge.enqueue_sync(1)
    assert len(set(handles)) == 2_500
    assert backlog.created


def test_a_first_use_inside_a_transaction_says_what_to_do_beforehand(
    sqlite_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luciole.limits.SQLITE_BUSY_US", 50_000)
    app, charge = an_app(sqlite_dsn)
    with app:
        app.close_sync()
        connection = sqlite3.connect(path_of(sqlite_dsn))
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match=r"app\.open"):
            charge.options(tx=connection).enqueue_sync(1)
        connection.rollback()
        connection.close()


def test_a_connection_to_another_file_is_refused(sqlite_dsn: str, tmp_path: Path) -> None:
    app, charge = an_app(sqlite_dsn)
    with app:
        connection = sqlite3.connect(tmp_path / "other.db")
        with pytest.raises(InvalidValue, match=r"other\.db"):
            charge.options(tx=connection).enqueue_sync(1)
        connection.close()


async def test_a_sync_sqlalchemy_session_on_sqlite(sqlite_dsn: str) -> None:
    app, charge = an_app(sqlite_dsn)
    engine = sqlalchemy.create_engine(sqlite_dsn)
    async with app:
        with Session(engine) as session, session.begin():
            kept = await charge.options(tx=session).enqueue(1)
        with Session(engine) as session:
            await charge.options(tx=session, key="gone").enqueue(2)
            session.rollback()
        assert await kept.state() is ExecutionState.READY
        assert (await charge.options(key="gone").enqueue(2)).created
    engine.dispose()


async def test_the_memory_store_joins_nobodys_transaction() -> None:
    app, charge = an_app("memory://tx")
    connection = sqlite3.connect(":memory:")
    async with app:
        with pytest.raises(Unsupported, match="memory store"):
            await charge.options(tx=connection).enqueue(1)
    connection.close()


@pytest.fixture
async def migrated_dsn(postgres_dsn: str) -> str:
    store = make_store(postgres_dsn)
    await store.migrate()
    await store.close()
    return postgres_dsn


#: Opens a transaction that commits or rolls back at its end, and yields what `tx=` is given.
Transaction: TypeAlias = Callable[[str, bool], Any]


@asynccontextmanager
async def by_asyncpg(dsn: str, commits: bool) -> AsyncIterator[object]:  # noqa: FBT001
    connection = await asyncpg.connect(dsn)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await (transaction.commit() if commits else transaction.rollback())
    await connection.close()


@asynccontextmanager
async def by_asyncpg_pool(dsn: str, commits: bool) -> AsyncIterator[object]:  # noqa: FBT001
    async with asyncpg.create_pool(dsn, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield connection
        await (transaction.commit() if commits else transaction.rollback())


@asynccontextmanager
async def by_psycopg(dsn: str, commits: bool) -> AsyncIterator[object]:  # noqa: FBT001
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        await connection.execute("SELECT 1")
        yield connection
        await (connection.commit() if commits else connection.rollback())


@asynccontextmanager
async def by_psycopg_sync(dsn: str, commits: bool) -> AsyncIterator[object]:  # noqa: FBT001
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT 1")
        yield connection
        if commits:
            connection.commit()
        else:
            connection.rollback()


@asynccontextmanager
async def by_sqlalchemy(dsn: str, commits: bool) -> AsyncIterator[object]:  # noqa: FBT001
    engine = create_async_engine(dsn.replace("postgresql://", "postgresql+asyncpg://"))
    async with AsyncSession(engine) as session:
        yield session
        await (session.commit() if commits else session.rollback())
    await engine.dispose()


@asynccontextmanager
async def by_sqlalchemy_sync(dsn: str, commits: bool) -> AsyncIterator[object]:  # noqa: FBT001
    engine = sqlalchemy.create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session:
        yield session
        if commits:
            session.commit()
        else:
            session.rollback()
    engine.dispose()


@pytest.mark.parametrize(
    "transaction",
    [by_asyncpg, by_asyncpg_pool, by_psycopg, by_psycopg_sync, by_sqlalchemy, by_sqlalchemy_sync],
)
async def test_postgres_takes_the_enqueue_with_the_transaction_or_not_at_all(
    migrated_dsn: str, transaction: Transaction
) -> None:
    app, charge = an_app(migrated_dsn)
    async with app:
        key = transaction.__name__
        async with transaction(migrated_dsn, True) as tx:
            kept = await charge.options(tx=tx, key=f"{key}-1").enqueue(1)
            again = await charge.options(tx=tx, key=f"{key}-1").enqueue(1)
            many = await charge.options(tx=tx).enqueue_many(range(20))
        async with transaction(migrated_dsn, False) as tx:
            await charge.options(tx=tx, key=f"{key}-2").enqueue(2)
        assert await kept.state() is ExecutionState.READY
        assert (again == kept, again.created, len(set(many))) == (True, False, 20)
        assert (await charge.options(key=f"{key}-2").enqueue(2)).created
    store = await open_store(migrated_dsn)
    assert (await store.backlog()).open_entries >= 22
    await store.close()


async def test_a_sync_twin_joins_a_sync_connection(migrated_dsn: str) -> None:
    def enqueue() -> ExecutionState:
        app, charge = an_app(migrated_dsn)
        with app, psycopg.connect(migrated_dsn) as connection:
            connection.execute("SELECT 1")
            handle = charge.options(tx=connection).enqueue_sync(1)
            connection.commit()
            return handle.state_sync()

    assert await asyncio.to_thread(enqueue) is ExecutionState.READY


async def test_a_sync_twin_can_not_wait_for_an_async_connection(migrated_dsn: str) -> None:
    app, charge = an_app(migrated_dsn)
    async with app, by_asyncpg(migrated_dsn, False) as tx:
        with pytest.raises(IllegalState, match=r"use await enqueue"):
            await asyncio.to_thread(charge.options(tx=tx).enqueue_sync, 1)
