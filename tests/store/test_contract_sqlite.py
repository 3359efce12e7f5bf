"""The SQLite store keeps the contract."""

import sqlite3
from collections.abc import AsyncIterator

import pytest_asyncio

from luciole.testing.contract import *  # noqa: F403 - every case
from tests import stores
from tests.store.sqlite_harness import SqliteHarness


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[SqliteHarness]:
    stores.note_ran("SQLite", sqlite3.sqlite_version)
    made = await SqliteHarness.make()
    yield made
    await made.close()
