"""The stores of a run's processes, made as the product makes them."""

from luciole.bench.backends import Place, sqlite_path
from luciole.bench.faults import around
from luciole.runtime.chance import system_chance
from luciole.runtime.clock import SystemClock
from luciole.runtime.steps import Steps
from luciole.store.spi import Store
from luciole.store.sql.sqlite.connecting import Durability
from luciole.store.sql.sqlite.dialect import SqliteDialect
from luciole.store.sql.store import SqlStore


def make_store(place: Place, *, steps: Steps | None = None, pool: int | None = None) -> Store:
    """Return the store of a place, not yet open.

    Args:
        place: where.
        steps: is told what its calls are made of.
        pool: connections for each purpose, fewer than its calls may take; SQLite has one writer anyway.
    """
    clock, chance = SystemClock(), system_chance()
    if place.dsn.startswith("sqlite:"):
        durability = Durability(place.synchronous)
        path = sqlite_path(place.dsn)
        return around(SqlStore(SqliteDialect(path, clock=clock, chance=chance, steps=steps, durability=durability)))
    from luciole.store.sql.postgres.dialect import PostgresDialect  # noqa: PLC0415 - its driver is an extra

    assert place.schema
    dialect = PostgresDialect(
        place.dsn, clock=clock, chance=chance, schema=place.schema, steps=steps, connections_max=pool
    )
    return around(SqlStore(dialect))


async def open_fresh(place: Place, *, shards: int, steps: Steps | None = None) -> Store:
    """Bring the schema of an empty place up to date and open it."""
    store = make_store(place, steps=steps)
    await store.migrate(shards=shards)
    await store.open()
    return store
