"""The ceiling of SQLite: the plainest statements by `executemany` in one thread, at the same durability."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from luciole.bench.ceiling.settings import WRITTEN, CeilingSetting, Rate
from luciole.bench.verdict import InvalidRun
from luciole.limits import DAY_US, SECOND_US
from luciole.runtime.chance import system_chance
from luciole.runtime.clock import Clock
from luciole.store.sql.sqlite.connecting import Durability, connect

_AT_US = 1_900_000_000 * SECOND_US

_GUARD = "SELECT 1 FROM lease WHERE shard = ? AND holder = 'ceiling' AND fence = 1 AND expires_us > ?"
_DUE = """
SELECT shard, schedule_id, fire_us, due_us, revision, trigger_id, job_id FROM cursor
WHERE shard = ? AND due_us IS NOT NULL AND due_us <= ? ORDER BY due_us LIMIT ?
"""
_MOVE = """
UPDATE cursor SET fire_us = ?, due_us = ?, revision = revision + 1
WHERE shard = ? AND schedule_id = ? AND fire_us = ? AND revision = ?
"""
_CREATE = """
INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
    created_us)
SELECT ?1, ?2, ?3, 0, ?4, 1, 1, ?5, 5, 0, 0, ?6
WHERE NOT EXISTS (SELECT 1 FROM entry WHERE shard = ?1 AND schedule_id = ?2)
"""
_ENTER = """
INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags)
VALUES (?, ?, ?, 0, ?, 0, 1, ?, 5, 0)
"""


def measure_sqlite(
    path: Path,
    settings: Sequence[CeilingSetting],
    *,
    jobs: int,
    shards: int,
    triggers: int,
    clock: Clock,
) -> list[Rate]:
    """Measure the rate of each setting in a file of its own that has the product's schema.

    Args:
        path: the file; what is in it is lost.
        settings: batch sizes, in the order of measuring.
        jobs: rows a measurement.
        shards: as the product has them.
        triggers: distinct ones among the rows.
        clock: what times it.

    Raises:
        InvalidRun: a lease was lost, although nobody else is here.
    """
    # As the product opens it: cache, checkpoints, durability.
    connection = connect(path, Durability.FULL, chance=system_chance(), monotonic_us=clock.monotonic_us)
    try:
        rates = []
        for setting in settings:
            _fill(connection, jobs, shards, triggers)
            begun_us = clock.monotonic_us()
            next_us = {n: _AT_US + DAY_US + n for n in range(triggers)}
            wide = max(1, setting.batch * shards // jobs)
            for first in range(0, shards, wide):
                while _write(connection, range(first, min(first + wide, shards)), setting.batch, next_us):
                    continue
            took_us = clock.monotonic_us() - begun_us
            written = connection.execute(WRITTEN).fetchone()[0]
            rates.append(Rate(setting, jobs * SECOND_US / took_us, written))
        return rates
    finally:
        connection.close()


def _fill(connection: sqlite3.Connection, jobs: int, shards: int, triggers: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for table in ("cursor", "execution", "entry"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
    connection.execute("UPDATE lease SET holder = 'ceiling', fence = 1, expires_us = 9000000000000000")
    connection.executemany(
        "INSERT INTO cursor (shard, schedule_id, fire_us, due_us, revision, trigger_id, job_id, policy_id) "
        "VALUES (?, ?, ?, ?, 1, ?, 1, 1)",
        ((n % shards, n, _AT_US, _AT_US, n % triggers) for n in range(1, jobs + 1)),
    )
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _write(connection: sqlite3.Connection, shards: Iterable[int], batch: int, next_us: Mapping[int, int]) -> bool:
    """Write one batch of some shards as one transaction; return whether there may be more."""
    connection.execute("BEGIN IMMEDIATE")
    due: list[tuple[int, ...]] = []
    for shard in shards:
        if connection.execute(_GUARD, (shard, _AT_US)).fetchone() is None:
            raise InvalidRun("the ceiling lost its own lease")
        due += connection.execute(_DUE, (shard, _AT_US, batch)).fetchall()
    connection.executemany(
        _MOVE,
        [
            (next_us[trigger], next_us[trigger], shard, schedule, fire_us, revision)
            for shard, schedule, fire_us, _, revision, trigger, _ in due
        ],
    )
    connection.executemany(
        _CREATE,
        [(shard, schedule, fire_us, job, due_us, _AT_US) for shard, schedule, fire_us, due_us, _, _, job in due],
    )
    connection.executemany(
        _ENTER, [(shard, schedule, fire_us, job, due_us) for shard, schedule, fire_us, due_us, _, _, job in due]
    )
    connection.execute("COMMIT")
    return len(due) >= batch
