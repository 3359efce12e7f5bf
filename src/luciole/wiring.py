"""Who knows whom: the only place that chooses implementations."""

from collections.abc import Callable
from functools import cache

from luciole.errors import InvalidValue
from luciole.node import Node, Surroundings
from luciole.runtime.chance import system_chance
from luciole.runtime.clock import SystemClock
from luciole.settings import Settings
from luciole.store.memory import MemoryState, MemoryStore
from luciole.store.spi import Store
from luciole.store.sql.sqlite.connecting import Durability
from luciole.store.sql.sqlite.dialect import SqliteDialect
from luciole.store.sql.store import SqlStore


def make_store(dsn: str) -> Store:
    """Return the store that an address names, not yet open.

    Args:
        dsn: a path or `sqlite:///path`, which may end in `?durability=normal` (or `off`, `full`);
            `postgresql://user@host/database`; or `memory://name`, one database for all of this process that use the
            name.

    Raises:
        InvalidValue: no store has this kind of address, or it asks for a durability that there is not.
        MissingExtra: the store needs a package that is not installed.
    """
    scheme, found, _ = dsn.partition("://")
    make = _STORES.get(scheme if found else "sqlite")
    if make is None:
        raise InvalidValue(f"dsn: {scheme[:40]!r} is no kind of store; there are: {', '.join(sorted(_STORES))}")
    return make(dsn)


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
def _memory_state(dsn: str) -> MemoryState:
    del dsn  # The key of the cache: one state for each.
    return MemoryState()


def _memory(dsn: str) -> Store:
    return MemoryStore(_memory_state(dsn), SystemClock())


def _sqlite(dsn: str) -> Store:
    path, durability = dsn, Durability.FULL
    if "://" in dsn:
        path, _, words = dsn.removeprefix("sqlite://").removeprefix("/").partition("?")
        durability = _durability(words)
    return SqlStore(SqliteDialect(path, clock=SystemClock(), chance=system_chance(), durability=durability))


def _durability(words: str) -> Durability:
    """Return what `durability=normal` asks for; without a word, all of it."""
    name, _, value = words.partition("=")
    if not words:
        return Durability.FULL
    if name != "durability" or value not in set(Durability):
        raise InvalidValue(f"dsn: {words[:40]!r} says nothing to SQLite; write ?durability={'|'.join(Durability)}")
    return Durability(value)


def _postgres(dsn: str) -> Store:
    from luciole.store.sql.postgres.dialect import PostgresDialect  # noqa: PLC0415 - an extra

    return SqlStore(PostgresDialect(dsn, clock=SystemClock(), chance=system_chance()))


_STORES: dict[str, Callable[[str], Store]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
}
