"""The short way of a plain enqueue on PostgreSQL writes what the long one does."""

from collections.abc import AsyncIterator

import pytest_asyncio

from luciole.testing.contract.steps import job_id_of, request_id
from luciole.testing.factories import a_job, a_request
from tests.store.postgres_harness import PostgresHarness

NOW_US = 1_800_000_000_000_000


@pytest_asyncio.fixture
async def harness(postgres_dsn: str) -> AsyncIterator[PostgresHarness]:
    made = await PostgresHarness.make(postgres_dsn)
    yield made
    await made.close()


async def _rows(harness: PostgresHarness, table: str) -> list[list[object]]:
    found = await harness.admin.fetch(f"SELECT * FROM {table} ORDER BY part DESC")
    return [[value for name, value in row.items() if name not in {"part", "shard"}] for row in found]


async def test_both_ways_write_the_same_rows(harness: PostgresHarness) -> None:
    """Goal: which statement a request goes by can't be seen afterwards.

    Method: one alone and two in one batch, each with its route told, then without, which goes the long way; the
    clock stands still.
    """
    _, store = harness.clients
    job = a_job()
    job_id = await job_id_of(store, job)
    await harness.stop_clock(NOW_US)
    for told in ({"route": job.route_id()}, {}):
        one, two, three = [
            a_request(await request_id(store), job_id, payload=b"{}", delay_us=5_000_000, **told) for _ in range(3)
        ]
        answers = [*(await store.enqueue([one])), *(await store.enqueue([two, three]))]
        assert [answer.key.fire_us for answer in answers] == [NOW_US + 5_000_000] * 3
    for table in ("execution", "entry"):
        first, *others = await _rows(harness, table)
        assert others == [first] * 5


async def test_a_request_that_is_there_already_writes_nothing(harness: PostgresHarness) -> None:
    """Goal: what the short way takes to be new and is not, is found by the long one (I1).

    Method: the same request again in the same microsecond.
    """
    _, store = harness.clients
    job = a_job()
    request = a_request(await request_id(store), await job_id_of(store, job), payload=b"{}", route=job.route_id())
    await harness.stop_clock(NOW_US)
    (first,) = await store.enqueue([request])
    (again,) = await store.enqueue([request])
    assert (first.created, again.created, again.key) == (True, False, first.key)
    assert len(await _rows(harness, "entry")) == 1
