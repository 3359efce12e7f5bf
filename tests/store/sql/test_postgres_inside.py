"""Enqueueing inside a user's own transaction, on each driver that `tx=` accepts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from luciole.errors import InvalidValue, Unsupported
from luciole.limits import SECOND_US
from luciole.model.execution import EnqueueRequest, ExecutionState
from luciole.store.sql.postgres.inside import KINDS
from luciole.testing.contract.steps import execution_of, heard, job_id_of
from luciole.testing.factories import a_request
from tests.store.postgres_harness import PostgresHarness

#: Runs a body on a connection of a kind and commits, or rolls back when told so.
Transact = Callable[..., Awaitable[None]]


async def on_asyncpg(dsn: str, body: Callable[[Any], Any], *, commits: bool) -> None:
    connection = await asyncpg.connect(dsn)
    transaction = connection.transaction()
    await transaction.start()
    await body(connection)
    await (transaction.commit() if commits else transaction.rollback())
    await connection.close()


async def on_psycopg(dsn: str, body: Callable[[Any], Any], *, commits: bool) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, row_factory=dict_row) as connection:
        await body(connection)
        await (connection.commit() if commits else connection.rollback())


async def on_psycopg_sync(dsn: str, body: Callable[[Any], Any], *, commits: bool) -> None:
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        body(connection)
        (connection.commit if commits else connection.rollback)()


def on_sqlalchemy(driver: str) -> Transact:
    async def transact(dsn: str, body: Callable[[Any], Any], *, commits: bool) -> None:
        engine = create_async_engine(dsn.replace("postgresql:", f"postgresql+{driver}:"))
        async with AsyncSession(engine) as session:
            await body(session)
            await (session.commit() if commits else session.rollback())
        await engine.dispose()

    return transact


async def on_sqlalchemy_connection(dsn: str, body: Callable[[Any], Any], *, commits: bool) -> None:
    engine = create_async_engine(dsn.replace("postgresql:", "postgresql+asyncpg:"))
    async with engine.connect() as connection:
        await body(connection)
        await (connection.commit() if commits else connection.rollback())
    await engine.dispose()


async def on_sqlalchemy_sync(dsn: str, body: Callable[[Any], Any], *, commits: bool) -> None:
    engine = create_engine(dsn.replace("postgresql:", "postgresql+psycopg:"))
    with Session(engine) as session:
        session.execute(text("SELECT 1"))
        body(session)
        (session.commit if commits else session.rollback)()
    engine.dispose()


TRANSACTS: list[tuple[str, Transact]] = [
    ("asyncpg", on_asyncpg),
    ("psycopg", on_psycopg),
    ("psycopg_sync", on_psycopg_sync),
    ("sqlalchemy", on_sqlalchemy("asyncpg")),
    ("sqlalchemy", on_sqlalchemy("psycopg")),
    ("sqlalchemy", on_sqlalchemy_connection),
    ("sqlalchemy_sync", on_sqlalchemy_sync),
]


@pytest.fixture
async def harness(postgres_dsn: str) -> AsyncIterator[PostgresHarness]:
    made = await PostgresHarness.make(postgres_dsn)
    yield made
    await made.close()


async def requests_of(harness: PostgresHarness) -> list[EnqueueRequest]:
    store = harness.clients[0]
    first, job_id = (await store.take_ids(3)).first, await job_id_of(store)
    return [
        a_request(first, job_id, 1, payload=b"\x00%s{}:x", key="order-1", labels=(("zone", "eu"),)),
        a_request(first + 1, job_id, 2, payload=None, delay_us=60_000_000),
        a_request(first + 2, job_id, 3, payload=b"", fire_us=5, priority=9),
    ]


def test_every_kind_is_tried_here() -> None:
    assert {kind for kind, _ in TRANSACTS} == {*KINDS}


@pytest.mark.parametrize(("kind", "transact"), TRANSACTS)
async def test_an_execution_comes_with_the_commit(harness: PostgresHarness, kind: str, transact: Transact) -> None:
    store = harness.clients[0]
    requests = await requests_of(harness)
    enqueue = store.enqueue_sql(kind)
    answers: list[Any] = []

    def body(connection: object) -> Any:  # noqa: ANN401 - awaitable for async kinds
        answer = enqueue(connection, requests)
        return collected(answer) if hasattr(answer, "__await__") else answers.extend(answer)

    async def collected(answer: Awaitable[Any]) -> None:
        answers.extend(await answer)

    await transact(harness.dsn, body, commits=False)
    assert [answer.created for answer in answers] == [True] * 3
    assert await store.execution_states([answer.key for answer in answers]) == (None,) * 3
    answers.clear()
    await transact(harness.dsn, body, commits=True)
    views = [await execution_of(store, answer.key) for answer in answers]
    assert [view.state for view in views] == [ExecutionState.READY] * 3
    assert [view.payload for view in views] == [b"\x00%s{}:x", b"", b""]
    assert views[0].labels == (("zone", "eu"),)
    assert views[2].due_us == await due_of(harness, answers[2].key)


@pytest.mark.parametrize(("kind", "transact"), TRANSACTS)
async def test_who_waits_elsewhere_hears_of_the_commit_and_not_before(
    harness: PostgresHarness, kind: str, transact: Transact
) -> None:
    """Goal: what is enqueued inside a user's transaction is found by a hint, like any other, not by the next poll."""
    store, elsewhere = harness.clients
    requests = await requests_of(harness)
    enqueue = store.enqueue_sql(kind)
    heard_early: list[bool] = []
    await heard(harness, elsewhere.wait_hint(1))
    while await heard(harness, elsewhere.wait_hint(SECOND_US)):
        pass  # That it listens, and what the making of the ids has told.
    waiting = asyncio.ensure_future(elsewhere.wait_hint(600 * SECOND_US))

    async def told(answer: Awaitable[Any] | None) -> None:
        if answer is not None:
            await answer
        await elsewhere.now_us()  # A round trip, in which a hint would come.
        heard_early.append(waiting.done())

    def body(connection: object) -> Any:  # noqa: ANN401 - awaitable for async kinds
        answer = enqueue(connection, requests)
        return told(answer) if hasattr(answer, "__await__") else None

    await transact(harness.dsn, body, commits=True)
    assert heard_early == [False] * (not kind.endswith("_sync"))
    async with asyncio.timeout(30):
        assert await waiting == {1, 2, 3}


async def due_of(harness: PostgresHarness, key: tuple[int, ...]) -> int:
    due_us: int = await harness.admin.fetchval("SELECT due_us FROM entry WHERE part = $1", key[3])
    return due_us


@pytest.mark.parametrize(("kind", "transact"), TRANSACTS)
async def test_a_key_that_exists_never_aborts_the_transaction(
    harness: PostgresHarness, kind: str, transact: Transact
) -> None:
    store = harness.clients[0]
    requests = await requests_of(harness)
    (before,) = await store.enqueue(requests[:1])
    enqueue = store.enqueue_sql(kind)
    answers: list[Any] = []

    def body(connection: object) -> Any:  # noqa: ANN401 - awaitable for async kinds
        answer = enqueue(connection, requests)
        return collected(answer) if hasattr(answer, "__await__") else answers.extend(answer)

    async def collected(answer: Awaitable[Any]) -> None:
        answers.extend(await answer)

    await transact(harness.dsn, body, commits=True)
    assert [answer.created for answer in answers] == [False, True, True]
    assert answers[0].key == before.key


async def test_a_connection_in_no_transaction_is_refused(harness: PostgresHarness) -> None:
    """Goal: nobody believes that an enqueue will be rolled back when there is nothing to roll back."""
    store = harness.clients[0]
    requests = await requests_of(harness)
    connection = await asyncpg.connect(harness.dsn)
    with pytest.raises(InvalidValue, match="no transaction"):
        await store.enqueue_sql("asyncpg")(connection, requests)
    await connection.close()
    with (
        psycopg.connect(harness.dsn, autocommit=True) as free,
        pytest.raises(InvalidValue, match="no transaction"),
    ):
        store.enqueue_sql("psycopg_sync")(free, requests)
    assert await store.find_request("default", "order-1") is None


async def test_another_database_is_refused(harness: PostgresHarness) -> None:
    engine = create_engine("sqlite://")
    with Session(engine) as session, pytest.raises(InvalidValue, match="postgresql"):
        harness.clients[0].enqueue_sql("sqlalchemy_sync")(session, await requests_of(harness))
    engine.dispose()


async def test_an_unknown_kind_is_refused_with_the_known_ones(harness: PostgresHarness) -> None:
    with pytest.raises(Unsupported, match="asyncpg, psycopg, sqlalchemy, psycopg_sync, sqlalchemy_sync"):
        harness.clients[0].enqueue_sql("sqlite3")
