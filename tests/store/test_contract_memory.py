"""The memory store keeps the contract."""

from collections.abc import AsyncIterator

import pytest_asyncio

from luciole.testing.contract import *  # noqa: F403 - every case
from luciole.testing.contract.harness import MemoryHarness
from tests import stores


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[MemoryHarness]:
    stores.note_ran("memory", "(the specification)")
    made = await MemoryHarness.make()
    yield made
    await made.close()
