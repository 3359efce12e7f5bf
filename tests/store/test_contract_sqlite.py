"""The SQLite store keeps the contract."""

from collections.abc import AsyncIterator

import pytest_asyncio

from luciole.testing.contract import *  # noqa: F403 - every case
from tests.store.sqlite_harness import SqliteHarness


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[SqliteHarness]:
    made = await SqliteHarness.make()
    yield made
    await made.close()
