"""The PostgreSQL store keeps the contract."""

from collections.abc import AsyncIterator

import pytest_asyncio

from luciole.testing.contract import *  # noqa: F403 - every case
from tests.store.postgres_harness import PostgresHarness


@pytest_asyncio.fixture
async def harness(postgres_dsn: str) -> AsyncIterator[PostgresHarness]:
    made = await PostgresHarness.make(postgres_dsn)
    yield made
    await made.close()
