"""The contract suite: every promise of `luciole.store.spi`, as tests that any store can be put through.

A store's author writes one fixture named `harness` that yields a `StoreHarness`, and imports the cases:

```python
import pytest_asyncio

from luciole.testing.contract import *


@pytest_asyncio.fixture
async def harness():
    harness = await MyHarness.make()
    yield harness
    await harness.close()
```

or names an async function without arguments that returns a harness:

```sh
pytest -p luciole.testing.contract.plugin --pyargs luciole.testing.contract --store-harness mypackage.testing:make
```

No case skips itself, so that equal numbers of cases say that two stores keep the same contract.
"""

from luciole.runtime.extras import require

with require("testing"):
    import pytest

_ROLES = ("catalog", "editing", "executions", "leases", "life", "manual", "outbox", "overlap", "planning")
_MODULES = (*(f"test_{role}" for role in (*_ROLES, "reads", "realigning", "routes", "settling", "strides")), "steps")
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _MODULES))

from luciole.testing.contract.cases import *  # noqa: E402, F403 - after the rewriting of asserts
from luciole.testing.contract.cases import __all__ as __all__  # noqa: E402
