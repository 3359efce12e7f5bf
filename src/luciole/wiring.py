"""Who knows whom: the only place that chooses implementations."""

from collections.abc import Callable
from functools import cache

from luciole.errors import InvalidValue
from luciole.node import Node, Surroundings
from luciole.runtime.clock import SystemClock
from luciole.settings import Settings
from luciole.store.memory import MemoryState, MemoryStore
from luciole.store.spi import Store


def make_store(dsn: str) -> Store:
    """Return the store that an address names, not yet open.

    Args:
        dsn: `memory://name`, one database for all of this process that use the name.

    Raises:
        InvalidValue: no store has this kind of address.
    """
    scheme, _, rest = dsn.partition("://")
    make = _STORES.get(scheme)
    if make is None:
        raise InvalidValue(f"dsn: {scheme[:40]!r} is no kind of store; there are: {', '.join(sorted(_STORES))}")
    return make(rest)


def build_node(settings: Settings, store: Store, surroundings: Surroundings | None = None) -> Node:
    """Return a node around an open store, not yet started.

    Args:
        settings: the knobs.
        store: an open store; the node does not close it.
        surroundings: time, randomness and identity; default: the real ones.
    """
    return Node(settings, store, surroundings)


async def open_store(dsn: str) -> Store:
    """Return the store that an address names, open.

    Raises:
        InvalidValue: no store has this kind of address.
        StoreUnavailable: it can't be reached.
        SchemaMismatch: migrate first, or upgrade this process.
    """
    store = make_store(dsn)
    await store.open()
    return store


@cache
def _memory_state(name: str) -> MemoryState:
    del name  # The key of the cache: one state for each.
    return MemoryState()


def _memory(name: str) -> Store:
    return MemoryStore(_memory_state(name), SystemClock())


_STORES: dict[str, Callable[[str], Store]] = {"memory": _memory}
