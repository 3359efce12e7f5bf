"""Opening a file: what is refused, what is made, and who may do it at once."""

import asyncio
import sys
from pathlib import Path

import pytest

from luciole.errors import SchemaMismatch, StoreCorrupt, StoreUnavailable, Unsupported
from luciole.model.plan import ReadyBatch
from luciole.store.sql.migrate import load_migrations
from luciole.store.sql.sqlite.connecting import Durability
from luciole.store.sql.store import SqlStore
from luciole.testing.contract.steps import enqueued
from luciole.testing.factories import a_job, a_request
from tests.store.sql.sqlite.files import a_dialect, change, look, opened

#: After every due time of these tests.
FAR_US = 10**16

MIGRATIONS = len(load_migrations("luciole.store.sql.sqlite"))


@pytest.mark.parametrize("path", [":memory:", "", "file::memory:?cache=shared"])
def test_what_is_no_file_is_refused_with_advice(path: str) -> None:
    with pytest.raises(Unsupported, match=r"give a path such as 'luciole\.db'"):
        a_dialect(path)


async def test_a_missing_folder_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="unable to open"):
        await SqlStore(a_dialect(tmp_path / "nowhere" / "a.db")).open()


async def test_a_file_that_is_no_database_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"no database at all " * 500)
    with pytest.raises(StoreCorrupt, match="restore the file"):
        await SqlStore(a_dialect(path)).open()
    assert path.read_bytes().startswith(b"no database")


async def test_by_default_a_commit_is_flushed_to_the_disk(tmp_path: Path) -> None:
    """I9: in WAL mode, FULL is what makes each commit survive a power cut."""
    settings = {}
    for durability, expected in ((Durability.FULL, 2), (Durability.NORMAL, 1), (Durability.OFF, 0)):
        dialect = a_dialect(tmp_path / f"{durability}.db", durability=durability)
        store = SqlStore(dialect)
        await store.open()
        connection = dialect._writer.idle_connection()  # noqa: SLF001 - its settings are what this is about
        assert connection is not None
        settings[durability] = connection.execute("PRAGMA synchronous").fetchone()[0] == expected
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        await store.close()
    assert settings == dict.fromkeys(Durability, True)


async def test_a_newer_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with opened(path):
        pass
    change(path, "INSERT INTO migration VALUES (99, '0099_later', 'x', 0)")
    with pytest.raises(SchemaMismatch, match="newer than this version"):
        await SqlStore(a_dialect(path)).open()
    assert look(path, "SELECT count(*) FROM lease") == [(4,)]


async def test_a_changed_migration_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with opened(path):
        pass
    change(path, "UPDATE migration SET checksum = 'another' WHERE number = 1")
    with pytest.raises(StoreCorrupt, match="an applied migration never changes"):
        await SqlStore(a_dialect(path)).open()


async def test_a_migration_that_fails_leaves_nothing_half_done(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    change(path, "CREATE TABLE request_key (mine TEXT)")  # The last table of the first migration is taken.
    with pytest.raises(Exception, match="already exists"):
        await SqlStore(a_dialect(path)).open()
    assert look(path, "SELECT name FROM sqlite_master WHERE type = 'table'") == [("request_key",)]


async def test_many_clients_open_a_new_file_at_once(tmp_path: Path) -> None:
    stores = [SqlStore(a_dialect(tmp_path / "a.db", durability=Durability.FULL)) for _ in range(8)]
    await asyncio.gather(*(store.open() for store in stores))
    assert {store.shards for store in stores} == {32}
    assert look(tmp_path / "a.db", "SELECT count(*) FROM migration") == [(MIGRATIONS,)]
    assert look(tmp_path / "a.db", "SELECT count(*) FROM lease") == [(32,)]
    await asyncio.gather(*(store.close() for store in stores))


_OPENING = """
import asyncio, sys
from pathlib import Path
from luciole.testing.contract.steps import enqueued
from luciole.testing.factories import a_job, a_request
from tests.store.sql.sqlite.files import a_dialect
from luciole.model.plan import ReadyBatch
from luciole.store.sql.migrate import load_migrations
from luciole.store.sql.store import SqlStore

async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    for path in sys.argv[1:]:
        store = SqlStore(a_dialect(Path(path)))
        await store.open()
        assert store.shards == 32
        await store.close()
    print("done", flush=True)

asyncio.run(main())
"""


async def test_processes_that_start_at_once_migrate_a_new_file_once(tmp_path: Path) -> None:
    """Switching a new file's journal is where SQLite answers "locked" at once, whatever its time-out says."""
    paths = [tmp_path / f"{number}.db" for number in range(40)]
    pipe = asyncio.subprocess.PIPE
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", _OPENING, *map(str, paths), stdin=pipe, stdout=pipe)
        for _ in range(6)
    ]
    for process in processes:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
    answers = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    assert [out for out, _ in answers] == [b"done\n"] * 6
    for path in paths:
        assert look(path, "SELECT count(*) FROM migration") == [(MIGRATIONS,)]
        assert look(path, "SELECT count(*) FROM lease") == [(32,)]


async def test_a_file_of_the_version_before_routes_goes_on_and_gets_them(tmp_path: Path) -> None:
    """Goal: what is open stays and is found, and whatever comes from now on is told apart by what it asks."""
    path = tmp_path / "a.db"
    async with opened(path) as store:
        old = await enqueued(store, labels=(("region", "eu"),))
        (other,) = await store.intern_jobs([a_job("other", labels=(("gpu", "yes"),))])
    for command in (
        "DROP INDEX entry_route",
        "ALTER TABLE entry DROP COLUMN route",
        "ALTER TABLE job DROP COLUMN route",
        "DELETE FROM migration WHERE number > 2",
    ):
        change(path, command)
    async with opened(path) as store:
        assert await store.ready_entries([0], FAR_US, limit=10) == ReadyBatch(
            entries=(old._replace(route=0),), next_due_us=None
        )
        (answer,) = await store.enqueue([a_request(1_000, other, 0)])
        batch = await store.ready_entries([0], FAR_US, limit=10)
    assert look(path, "SELECT count(*) FROM job WHERE route = 0") == [(0,)]
    assert {entry.key: entry.route for entry in batch.entries} == {
        old.key: 0,
        answer.key: a_job("other", labels=(("gpu", "yes"),)).route_id(),
    }
