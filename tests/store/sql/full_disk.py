"""A program that fills a small disk through a store, makes room, and goes on; it says what it saw as JSON.

It runs in a mount namespace of its own, where its first argument is a file system with a few megabytes.
"""

import asyncio
import json
import os
import pwd
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from luciole.errors import StoreFull
from luciole.runtime.chance import system_chance
from luciole.runtime.clock import SystemClock
from luciole.store.sql.postgres.dialect import PostgresDialect
from luciole.store.sql.sqlite.connecting import Durability
from luciole.store.sql.store import SqlStore
from luciole.testing.factories import a_job, a_request
from luciole.testing.servers import PostgresPrograms, PostgresServer
from tests.store.sql.sqlite.files import a_dialect

PAYLOAD_BYTES = 100_000
BALLAST_BYTES = 4_000_000


@asynccontextmanager
async def on_sqlite(disk: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore(a_dialect(disk / "full.db", durability=Durability.FULL))
    await store.open()
    yield store
    await store.close()


@asynccontextmanager
async def on_postgres(disk: Path) -> AsyncIterator[SqlStore]:
    """The server's own files are elsewhere: without room for its log it stops, which is a case of its own."""
    programs = PostgresPrograms.from_wheel() or PostgresPrograms.from_system()
    assert programs is not None
    with PostgresServer(programs) as server:
        space = disk / "space"
        space.mkdir()
        owner = pwd.getpwuid(server.datadir.stat().st_uid)
        os.chown(space, owner.pw_uid, owner.pw_gid)
        dsn = server.create_database()
        server.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
        server.execute("ALTER ROLE CURRENT_USER SET default_tablespace = 'small'")
        store = SqlStore(PostgresDialect(dsn, clock=SystemClock(), chance=system_chance()))
        await store.migrate()
        await store.open()
        yield store
        await store.close()


async def enqueue(store: SqlStore, key: str) -> str | None:
    """Enqueue one; return what was said when there was no room."""
    (job_id,) = await store.intern_jobs([a_job()])
    request = a_request((await store.take_ids(1)).first, job_id, 0, key=key, payload=os.urandom(PAYLOAD_BYTES))
    try:
        await store.enqueue([request])
    except StoreFull as problem:
        return str(problem)
    return None


async def main(kind: str, disk: Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(BALLAST_BYTES))
    async with {"sqlite": on_sqlite, "postgres": on_postgres}[kind](disk) as store:
        stored, said = 0, None
        while said is None and stored < 1_000:
            said = await enqueue(store, f"k{stored}")
            stored += said is None
        again = [await enqueue(store, f"full-{number}") for number in range(3)]
        ballast.unlink()
        after = [await enqueue(store, f"after-{number}") for number in range(5)]
        found = [await store.find_request("default", f"k{number}") is not None for number in range(stored)]
        refused = [await store.find_request("default", f"full-{number}") for number in range(3)]
        states = await store.backlog()
    saw = {
        "stored": stored,
        "said": said,
        "again": again,
        "after": after,
        "found": sum(found),
        "refused": [key is not None for key in refused],
        "open": states.open_entries,
    }
    sys.stdout.write(json.dumps(saw))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
