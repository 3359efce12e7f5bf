"""The ceiling of whichever store a place is on."""

from collections.abc import Sequence

from luciole.bench.backends import Place, sqlite_path
from luciole.bench.ceiling.settings import CeilingSetting, Rate
from luciole.bench.ceiling.sqlite import measure_sqlite
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import InvalidRun
from luciole.runtime.clock import Clock


async def measure_ceiling(
    place: Place, settings: Sequence[CeilingSetting], *, jobs: int, shards: int, triggers: int, clock: Clock
) -> list[Rate]:
    """Measure each setting once, in a place of its own that gets the product's schema.

    Raises:
        InvalidRun: other rows were written than should have been.
    """
    store = await open_fresh(place, shards=shards)
    await store.close()
    if place.dsn.startswith("sqlite:"):
        rates = measure_sqlite(
            sqlite_path(place.dsn), settings, jobs=jobs, shards=shards, triggers=triggers, clock=clock
        )
    else:
        from luciole.bench.ceiling.postgres import measure_postgres  # noqa: PLC0415 - its driver is an extra

        rates = await measure_postgres(place, settings, jobs=jobs, shards=shards, triggers=triggers, clock=clock)
    for one in rates:
        if one.written != jobs:
            raise InvalidRun(f"the ceiling wrote {one.written} of {jobs} jobs: it measured something else")
    return rates
