"""How a ceiling is measured: the settings that are tried, and what each reached."""

from collections.abc import Sequence
from typing import NamedTuple

from luciole.bench.result import Ceiling

#: Whole jobs: an execution, its entry, and its cursor moved once.
WRITTEN = """
SELECT count(*) FROM cursor c
JOIN execution x ON x.shard = c.shard AND x.schedule_id = c.schedule_id
JOIN entry e ON e.shard = x.shard AND e.schedule_id = x.schedule_id AND e.fire_us = x.fire_us
WHERE c.fire_us > x.fire_us AND c.revision = 2
"""


class CeilingSetting(NamedTuple):
    """One way to write the rows."""

    batch: int  #: jobs a transaction
    connections: int


class Rate(NamedTuple):
    """What one setting reached."""

    setting: CeilingSetting
    rate: float  #: jobs a second
    written: int  #: rows that stand in the store afterwards, counted there


def settings_to_try(kind: str, extent: str) -> list[CeilingSetting]:
    """Return the settings for a kind of store; `extent` is "full" or "short"."""
    batches = (500, 1_000, 2_000) if extent == "full" else (1_000, 2_000)
    if kind == "sqlite":
        return [CeilingSetting(batch, 1) for batch in batches]  # It has one writer.
    return [CeilingSetting(batch, connections) for batch in batches for connections in (2, 3, 4)]


def ceiling_of(rates: Sequence[Rate]) -> Ceiling:
    """Return the ceiling: the best of what was tried."""
    best = max(rates, key=lambda one: one.rate)
    return Ceiling(
        name="sql-ceiling",
        rate=best.rate,
        batch=best.setting.batch,
        connections=best.setting.connections,
        tried=[
            {"batch": one.setting.batch, "connections": one.setting.connections, "rate": round(one.rate, 1)}
            for one in rates
        ],
    )
