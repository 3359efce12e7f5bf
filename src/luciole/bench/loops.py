"""The event loop of the bench's processes: the one that the product's processes have."""

import asyncio
from collections.abc import Coroutine
from importlib.util import find_spec
from typing import Any, TypeVar

from luciole.runtime.collector import calm_collector

ResultT = TypeVar("ResultT")


def run_here(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end, on uvloop where that is installed, with the collector of the product's processes."""
    calm_collector()
    if find_spec("uvloop") is None:
        return asyncio.run(main)
    import uvloop  # noqa: PLC0415 - an accelerator that may be absent

    return uvloop.run(main)
