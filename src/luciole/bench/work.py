"""Work by the server's own counters: commits, statements, write-ahead log; nearly free of noise."""

from contextlib import suppress
from typing import Any

import msgspec

from luciole.bench.backends import Place, connect_postgres, sqlite_path
from luciole.runtime.extras import require

#: What one full-page image costs where nothing measures it.
_PAGE_BYTES = 8_192


#: Without the bench's own questions to the counters.
_STATEMENTS = """
SELECT query, sum(calls)::bigint, query ~* '^ *(begin|commit|rollback|start transaction)' AS control
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = current_database() AND query !~ 'pg_stat_'
GROUP BY query
"""

_SHOWN_MAX = 20
_SHOWN_CHARACTERS = 200


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Counters at one moment, or the difference of two; None: the server does not say."""

    commits: int | None = None
    statements: int | None = None  #: without those that begin and end transactions
    control: int | None = None  #: those that begin and end transactions
    by_text: dict[str, int] = {}  #: calls of each statement, without those
    log_position: int | None = None  #: bytes of write-ahead log since ever
    images: int | None = None  #: full-page images


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """What a window wrote into the log."""

    bytes: int  #: without full-page images
    image_bytes: int


async def read_work(place: Place) -> Work:
    """Read the counters; on SQLite there are none."""
    if place.dsn.startswith("sqlite:"):
        return Work()
    with require("postgres"):
        import asyncpg  # noqa: PLC0415 - an extra, needed here only
    connection = await connect_postgres(place)
    try:
        rows: list[tuple[str, int, bool]] | None = None
        with suppress(asyncpg.PostgresError):
            rows = [tuple(row) for row in await connection.fetch(_STATEMENTS)]
        row = await connection.fetchrow(
            "SELECT xact_commit, pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS position, "
            "(SELECT wal_fpi FROM pg_stat_wal) AS images FROM pg_stat_database WHERE datname = current_database()"
        )
        return Work(
            commits=row["xact_commit"],
            statements=None if rows is None else sum(calls for _, calls, control in rows if not control),
            control=None if rows is None else sum(calls for _, calls, control in rows if control),
            by_text={text: calls for text, calls, control in rows or () if not control},
            log_position=int(row["position"]),
            images=row["images"],
        )
    finally:
        await connection.close()


def statements_between(before: Work, after: Work) -> dict[str, int]:
    """Return the statements that were called most between two readings, with their calls."""
    calls = {text: count - before.by_text.get(text, 0) for text, count in after.by_text.items()}
    most = sorted(calls.items(), key=lambda pair: -pair[1])[:_SHOWN_MAX]
    return {" ".join(text.split())[:_SHOWN_CHARACTERS]: count for text, count in most if count}


async def prepare_counting(place: Place) -> None:
    """Make what counts statements and reads the log, where the server has it and lets us."""
    if place.server_pid is None:
        return
    connection = await connect_postgres(place)
    try:
        for extension in ("pg_stat_statements", "pg_walinspect"):
            await _tried(connection, f"CREATE EXTENSION IF NOT EXISTS {extension} SCHEMA public")
    finally:
        await connection.close()


async def read_log(place: Place, before: Work, after: Work) -> Log | None:
    """Return what was written into the log between two readings, by its records where the server can read them."""
    if before.log_position is None or after.log_position is None:
        return None
    total = after.log_position - before.log_position
    with require("postgres"):
        import asyncpg  # noqa: PLC0415 - an extra, needed here only
    connection = await connect_postgres(place)
    try:
        image_bytes = await connection.fetchval(
            "SELECT sum(fpi_size)::bigint FROM pg_get_wal_stats("
            "'0/0'::pg_lsn + $1::bigint::numeric, '0/0'::pg_lsn + $2::bigint::numeric)",
            before.log_position,
            after.log_position,
        )
    except asyncpg.PostgresError:
        image_bytes = ((after.images or 0) - (before.images or 0)) * _PAGE_BYTES
    finally:
        await connection.close()
    return Log(bytes=max(0, total - int(image_bytes)), image_bytes=int(image_bytes))


async def quiesce(place: Place) -> list[str]:
    """Write back what is dirty and collect what is dead; return what the server would not let us do."""
    if place.dsn.startswith("sqlite:"):
        import sqlite3  # noqa: PLC0415 - only this kind needs it

        connection = sqlite3.connect(sqlite_path(place.dsn), isolation_level=None, timeout=10)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()
        return []
    connection = await connect_postgres(place)
    try:
        tables = await connection.fetch(
            "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = $1", place.schema
        )
        failed = [await _tried(connection, f"VACUUM ANALYZE {row['name']}") for row in tables]
        failed.append(await _tried(connection, "CHECKPOINT"))
    finally:
        await connection.close()
    return [reason for reason in failed if reason]


async def _tried(connection: Any, statement: str) -> str | None:  # noqa: ANN401 - a connection of asyncpg
    with require("postgres"):
        import asyncpg  # noqa: PLC0415 - an extra, needed here only
    try:
        await connection.execute(statement)
    except asyncpg.PostgresError as error:
        return f"{statement}: {error}"
    return None
