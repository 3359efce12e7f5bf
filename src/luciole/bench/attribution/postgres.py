"""What PostgreSQL says of itself: whom its sessions wait for, and by how much its counters grew."""

from collections import Counter
from typing import Any

from luciole.bench.attribution.document import Series, Sign, Waits
from luciole.bench.attribution.samplers import EVERY_US, Sampler
from luciole.bench.backends import Place, connect_postgres
from luciole.limits import MS_US, SECOND_US
from luciole.runtime.extras import require

#: A session that runs and waits for nothing.
ON_CPU = "CPU"

_LOOK = """
SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS position,
       array(SELECT coalesce(wait_event_type || ':' || wait_event, 'CPU') FROM pg_stat_activity
             WHERE state = 'active' AND backend_type = 'client backend' AND datname = current_database()
             AND pid <> pg_backend_pid()) AS sessions
"""

#: What sessions do and wait for while the log is being flushed; one does it at a time.
_FLUSHING = frozenset({"io:walsync", "io:wal_sync", "io:walwrite", "io:wal_write", "lwlock:walwrite"})

#: Views of counters: each with a query that returns one row of numbers.
_VIEWS = {
    "pg_stat_database": "SELECT * FROM pg_stat_database WHERE datname = current_database()",
    "pg_stat_wal": "SELECT * FROM pg_stat_wal",
    "pg_stat_io": (
        "SELECT sum(reads) AS reads, sum(writes) AS writes, sum(extends) AS extends, sum(hits) AS hits, "
        "sum(evictions) AS evictions, sum(fsyncs) AS fsyncs, sum(read_time) AS read_time, "
        "sum(write_time) AS write_time, sum(fsync_time) AS fsync_time FROM pg_stat_io"
    ),
    "pg_stat_io wal": (
        "SELECT sum(writes) AS writes, sum(write_time) AS write_time, sum(fsyncs) AS fsyncs, "
        "sum(fsync_time) AS fsync_time FROM pg_stat_io WHERE object = 'wal'"
    ),
    "pg_stat_statements": (
        "SELECT sum(calls) AS calls, sum(total_exec_time) AS total_exec_time, sum(rows) AS rows, "
        "sum(wal_bytes) AS wal_bytes, sum(shared_blks_hit) AS shared_blks_hit FROM pg_stat_statements s "
        "JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database() AND query !~ 'pg_stat_'"
    ),
}

#: So many sessions that wait on average are a sign.
_WAITING_SIGN = 0.5

Counters = dict[str, dict[str, float]]


class WaitSampler(Sampler):
    """Active sessions by wait event, and the position in the write-ahead log."""

    name = "waits"

    def __init__(self, place: Place) -> None:
        self._place = place
        self._connection: Any = None
        self._looks: list[tuple[int, int, list[str]]] = []

    async def open(self) -> None:
        """Open a connection of its own."""
        self._connection = await connect_postgres(self._place)
        self._statement = await self._connection.prepare(_LOOK)

    async def look(self, at_us: int) -> None:
        """Ask once."""
        row = await self._statement.fetchrow()
        self._looks.append((at_us, int(row["position"]), list(row["sessions"])))

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()

    def waits(self, begun_us: int, ended_us: int) -> Waits | None:
        """Return average active sessions between two instants; None without a look in between."""
        looks = [sessions for at_us, _, sessions in self._looks if begun_us <= at_us <= ended_us]
        if not looks:
            return None
        counted = Counter(event for sessions in looks for event in sessions)
        return Waits(
            samples=len(looks),
            every_ms=EVERY_US // MS_US,
            sessions={event: round(times / len(looks), 3) for event, times in counted.most_common()},
            log_busy=round(sum(any(map(is_flush, sessions)) for sessions in looks) / len(looks), 3),
        )

    def series(self, zero_us: int) -> list[Series]:
        """Return what was written into the log over time."""
        at_s: list[float] = []
        values: list[float] = []
        for (from_us, former, _), (to_us, latter, _) in zip(self._looks, self._looks[1:], strict=False):
            if to_us > from_us:
                at_s.append(round((to_us - zero_us) / SECOND_US, 3))
                values.append(round((latter - former) * SECOND_US / (to_us - from_us)))
        return [Series(name="write-ahead log", unit="bytes/s", at_s=at_s, values=values)]


def is_flush(event: str) -> bool:
    """Whether a wait event belongs to a flush of the log."""
    return event.lower() in _FLUSHING


def flushes(waits: Waits | None, wall_us: int) -> tuple[int, list[Sign]]:
    """Return how long the log was being flushed in a window, and whether others waited for that."""
    if waits is None:
        return 0, []
    waiting = sum(count for event, count in waits.sessions.items() if is_flush(event))
    signs = [Sign(kind="wait", text=f"{waiting:.1f} sessions waited for the log, on average")]
    return round(waits.log_busy * wall_us), signs if waiting >= _WAITING_SIGN else []


async def read_counters(place: Place) -> Counters:
    """Read the counters that this server has; a view that it lacks, or lacks a column of, is left out."""
    with require("postgres"):
        import asyncpg  # noqa: PLC0415 - an extra, needed here only
    connection = await connect_postgres(place)
    found: Counters = {}
    try:
        for view, query in _VIEWS.items():
            try:
                row = await connection.fetchrow(query)
            except asyncpg.PostgresError:
                continue
            if row:
                found[view] = {name: number for name, value in row.items() if (number := _number(value)) is not None}
    finally:
        await connection.close()
    return found


def grown(before: Counters, after: Counters) -> Counters:
    """Return by how much each counter grew; those that did not are left out."""
    found = {
        view: {
            name: round(value - before[view].get(name, 0), 3)
            for name, value in counters.items()
            if value > before[view].get(name, 0)
        }
        for view, counters in after.items()
        if view in before
    }
    return {view: counters for view, counters in found.items() if counters}


def _number(value: object) -> float | None:
    try:
        return None if isinstance(value, bool | str) else float(value)  # type: ignore[arg-type] # what has no number raises
    except (TypeError, ValueError):
        return None
