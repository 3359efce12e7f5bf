"""The ceiling of PostgreSQL: a procedure that loops over batches, without a client in between."""

import asyncio
from collections.abc import Sequence
from importlib.resources import files

from luciole.bench.backends import Place, connect_postgres
from luciole.bench.ceiling.settings import WRITTEN, CeilingSetting, Rate
from luciole.limits import SECOND_US
from luciole.runtime.clock import Clock

#: The plan that is best whatever the statistics of the moment say: index look-ups row by row.
PINNED = {
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "enable_material": "off",
    "jit": "off",
}

#: Far enough from everything that a trigger or a clock says.
_AT_US = 1_900_000_000 * SECOND_US


async def measure_postgres(
    place: Place, settings: Sequence[CeilingSetting], *, jobs: int, shards: int, triggers: int, clock: Clock
) -> list[Rate]:
    """Measure the rate of each setting in a database of its own that has the product's schema.

    Args:
        place: where; what is in its tables is lost.
        settings: batch size and connections, in the order of measuring.
        jobs: rows a measurement.
        shards: as the product has them.
        triggers: distinct ones among the rows.
        clock: what times it.
    """
    housekeeper = await connect_postgres(place)
    connections = []
    try:
        for _ in range(max(setting.connections for setting in settings)):
            connections.append(await connect_postgres(place))
            for name, value in PINNED.items():
                await connections[-1].execute(f"SET {name} = {value}")
        if await housekeeper.fetchval("SELECT to_regclass('ceiling_next')") is None:
            await housekeeper.execute((files("luciole.bench.ceiling") / "postgres.sql").read_text(encoding="utf-8"))
        rates = []
        for setting in settings:
            await housekeeper.execute(f"CALL ceiling_fill({jobs}, {shards}, {triggers}, {_AT_US})")
            for table in ("cursor", "execution", "entry", "ceiling_next"):
                await housekeeper.execute(f"VACUUM ANALYZE {table}")
            await housekeeper.execute("CHECKPOINT")
            wide = max(1, setting.batch * shards // jobs)
            begun_us = clock.monotonic_us()
            await asyncio.gather(
                *(
                    connection.fetchval(
                        f"CALL ceiling_run(ARRAY{list(range(lane, shards, setting.connections))}, "
                        f"{wide}, {setting.batch}, {_AT_US}, 0)"
                    )
                    for lane, connection in enumerate(connections[: setting.connections])
                )
            )
            took_us = clock.monotonic_us() - begun_us
            written = await housekeeper.fetchval(WRITTEN)
            rates.append(Rate(setting, jobs * SECOND_US / took_us, written))
        return rates
    finally:
        for connection in (*connections, housekeeper):
            await connection.close()
