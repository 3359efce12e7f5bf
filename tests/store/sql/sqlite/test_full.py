"""A full disk: a clear error of its class, nothing lost, and work goes on by itself once there is room."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from luciole.errors import StoreFull, StoreUnavailable
from luciole.store.sql.sqlite.dialect import SqliteDialect
from luciole.store.sql.store import SqlStore
from luciole.testing.factories import a_job, a_request
from tests.store.sql.sqlite.files import SHARDS, a_dialect, look


async def set_pages(dialect: SqliteDialect, pages: int | None) -> None:
    """Let the file have so many pages more than now; None: as many as it wants."""

    def limit(connection: sqlite3.Connection) -> None:
        most = 1 << 30 if pages is None else connection.execute("PRAGMA page_count").fetchone()[0] + pages
        connection.execute(f"PRAGMA max_page_count = {most}")

    await dialect._writer.run(limit)  # noqa: SLF001 - only its own connection can be limited


async def test_a_full_disk_is_said_and_survived(tmp_path: Path) -> None:
    path = tmp_path / "full.db"
    dialect = a_dialect(path)
    store = SqlStore(dialect, shards=SHARDS)
    await store.open()
    await store.intern_jobs([a_job()])
    await set_pages(dialect, 64)
    payload = bytes(20_000)
    answers = await asyncio.gather(
        *(store.enqueue([a_request(number, 1, number % SHARDS, payload=payload)]) for number in range(1, 41)),
        return_exceptions=True,
    )
    full = [answer for answer in answers if isinstance(answer, StoreFull)]
    stored = {answer[0].key.part for answer in answers if isinstance(answer, tuple)}
    assert full
    assert "nothing was written" in str(full[0])
    assert len(full) + len(stored) == 40
    assert {row[0] for row in look(path, "SELECT part FROM execution")} == stored
    # What needs no room goes on.
    assert len(await store.acquire_leases("a" * 16, range(SHARDS), ttl_us=1_000_000)) == SHARDS
    await set_pages(dialect, None)
    await asyncio.gather(*(store.enqueue([a_request(100 + number, 1, 0, payload=payload)]) for number in range(10)))
    await store.close()
    assert look(path, "PRAGMA integrity_check") == [("ok",)]
    assert look(path, "SELECT count(*) FROM execution") == look(path, "SELECT count(*) FROM entry")
    assert look(path, "SELECT count(*) FROM execution") == [(len(stored) + 10,)]


async def test_a_read_only_file_is_unavailable(tmp_path: Path) -> None:
    dialect = a_dialect(tmp_path / "a.db")
    store = SqlStore(dialect, shards=SHARDS)
    await store.open()
    await dialect._writer.run(lambda connection: connection.execute("PRAGMA query_only = ON"))  # noqa: SLF001 - a fault
    with pytest.raises(StoreUnavailable, match="readonly"):
        await store.take_ids(1)
    await store.close()
