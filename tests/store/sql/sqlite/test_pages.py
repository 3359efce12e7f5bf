"""What a group commit writes: pages for runs of requests, not for each request."""

import sqlite3
from contextlib import closing
from pathlib import Path

from luciole.model.execution import EnqueueRequest, request_shard
from luciole.model.job import JobSpec
from luciole.runtime.chance import seeded_chance
from luciole.runtime.clock import SystemClock
from luciole.store.sql.sqlite.dialect import SqliteDialect
from luciole.store.sql.store import SqlStore

_SHARDS = 32
_CALLERS = 64


def frames_in_log(path: Path) -> int:
    """Empty the log; return how many pages stood in it."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        # Older versions of SQLite count no frames when they truncate the log.
        busy, frames, _ = connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert not busy
    return int(frames)


async def test_a_crowd_writes_far_fewer_pages_than_it_has_callers(tmp_path: Path) -> None:
    """Each shard that a commit touches costs a page of the entries, one of each of their indexes, one of executions."""
    path = tmp_path / "pages.db"
    store = SqlStore(SqliteDialect(path, clock=SystemClock(), chance=seeded_chance(7)))
    await store.migrate(shards=_SHARDS)
    await store.open()
    (job_id,) = await store.intern_jobs([JobSpec(namespace="a", handler="h")])
    first = (await store.take_ids(2_048)).first
    requests = [
        EnqueueRequest(
            namespace="a",
            request_id=number,
            shard=request_shard("a", None, number, _SHARDS),
            job_id=job_id,
            payload=b"{}",
        )
        for number in range(first, first + 960 + _CALLERS)
    ]
    await store.enqueue(requests[:-_CALLERS])  # The pages of every shard are there.
    filled = frames_in_log(path)
    answers = await store.enqueue(requests[-_CALLERS:])
    crowd = frames_in_log(path)
    await store.close()
    assert all(answer.created for answer in answers)
    assert filled > crowd > 0
    assert crowd <= _CALLERS * 3 // 4
