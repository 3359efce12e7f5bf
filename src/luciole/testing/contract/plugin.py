"""The fixture of the cases when they run from here: a plugin with the option that names a store's harness."""

import importlib
from collections.abc import AsyncIterator
from typing import Any

from luciole.runtime.extras import require
from luciole.testing.contract.harness import StoreHarness

with require("testing"):
    import pytest
    import pytest_asyncio


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the store's harness."""
    parser.addoption(
        "--store-harness",
        default="luciole.testing.contract.harness:MemoryHarness.make",
        help="MODULE:FUNCTION, an async function that returns a StoreHarness (default: the memory store's)",
    )


@pytest_asyncio.fixture
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[StoreHarness]:
    """Yield a fresh database for one case."""
    module, _, path = request.config.getoption("--store-harness").partition(":")
    make: Any = importlib.import_module(module)
    for name in path.split("."):
        make = getattr(make, name)
    made: StoreHarness = await make()
    yield made
    await made.close()
