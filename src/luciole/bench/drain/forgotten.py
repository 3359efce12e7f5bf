"""A transaction that somebody forgot: open and idle, it keeps dead rows from being cleared away."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from luciole.bench.backends import Place, connect_postgres
from luciole.bench.check import judge
from luciole.bench.result import Check
from luciole.store.sql.postgres.worries import look

#: Waited for the end of a session; then its connection is cut, which ends it as well.
_CLOSE_MAX_S = 10

_SNAPSHOT = "SELECT backend_xmin::text FROM pg_stat_activity WHERE pid = $1"
_AGE_S = """
SELECT extract(epoch FROM clock_timestamp() - xact_start)::float8 FROM pg_stat_activity
WHERE pid = $1 AND backend_xmin::text = $2
"""
_DEAD_ROWS = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'entry'"

_NAMED = re.compile(r"session (\d+) of .* has been open for (\d+) s")


class ForgottenTransaction:
    """One that is open; a session of its own watches it."""

    def __init__(self, place: Place, watch: Any, pid: int, snapshot: str | None) -> None:  # noqa: ANN401 - a connection of asyncpg
        self._place = place
        self._watch = watch
        self._snapshot = snapshot
        self.pid = pid  #: of its session on the server

    async def dead_rows(self) -> int:
        """Return the dead rows of the outbox by the counters of the server; a vacuum has just set them right."""
        return int(await self._watch.fetchval(_DEAD_ROWS, self._place.schema) or 0)

    async def checks(self) -> list[Check]:
        """Ask whether it holds the snapshot that it began with, and whether a look at the server names it."""
        least_s = await self._age_s()
        worries = await look(self._watch, older_us=0)  # No window is as long as what worries somebody by itself.
        most_s = await self._age_s()
        named = 0
        if least_s is not None and most_s is not None:
            found = [_NAMED.match(worry.text) for worry in worries if worry.subject == "old transaction"]
            named = sum(int(one[1]) == self.pid and int(least_s) <= int(one[2]) <= int(most_s) for one in found if one)
        return [
            judge("forgotten_snapshot_held", "store", "= 1", int(most_s is not None), {}),
            judge("forgotten_transaction_named_with_its_age", "report", "= 1", named, {}),
        ]

    async def _age_s(self) -> float | None:
        """Return its age; None: the snapshot is no longer held."""
        age_s: float | None = await self._watch.fetchval(_AGE_S, self.pid, self._snapshot)
        return age_s


@asynccontextmanager
async def forgotten_transaction(place: Place) -> AsyncIterator[ForgottenTransaction]:
    """Hold a snapshot of a place, on PostgreSQL, until the context is left, however that comes about.

    Args:
        place: where; what holds dead rows back there does so in its database only.

    Raises:
        BackendUnavailable: the database can't be reached.
    """
    async with _session(place) as forgotten, _session(place) as watch:
        await forgotten.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await forgotten.fetchval("SELECT count(*) FROM entry")  # The first statement takes the snapshot.
        pid = forgotten.get_server_pid()
        yield ForgottenTransaction(place, watch, pid, await watch.fetchval(_SNAPSHOT, pid))


@asynccontextmanager
async def _session(place: Place) -> AsyncIterator[Any]:
    connection = await connect_postgres(place)
    try:
        yield connection
    finally:
        await connection.close(timeout=_CLOSE_MAX_S)
