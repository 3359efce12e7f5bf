"""What about a PostgreSQL server should worry somebody."""

from typing import TYPE_CHECKING

from luciole import limits
from luciole.store.reads import Worry

if TYPE_CHECKING:
    import asyncpg

# Nothing that was deleted or replaced since the oldest snapshot began can be cleared away: every look at what is due
# goes over all of it. The one culprit is named; when it has gone, the next one is.
_OLD_SNAPSHOTS = """
SELECT format('session %s of %s (%s, %s)', pid, coalesce(usename, '?'),
    coalesce(nullif(application_name, ''), 'no name'), coalesce(state, 'state unknown')),
    extract(epoch FROM clock_timestamp() - xact_start)
FROM pg_stat_activity WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
UNION ALL
SELECT format('prepared transaction %L', gid), extract(epoch FROM clock_timestamp() - prepared)
FROM pg_prepared_xacts WHERE database = current_database()
ORDER BY 2 DESC NULLS LAST LIMIT 1
"""

_UNSAFE_SETTINGS = """
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum') AND setting = 'off' ORDER BY name
"""

_MEANT = {
    "autovacuum": "dead rows are never cleared away, and everything slows down; switch it on",
    "fsync": "a power cut may destroy the database; switch it on",
    "full_page_writes": "a power cut may destroy the database; switch it on",
    "synchronous_commit": "a power cut may lose what was acknowledged; switch it on for this role or database",
}


async def look(connection: "asyncpg.Connection[asyncpg.Record]", *, older_us: int | None = None) -> tuple[Worry, ...]:
    """Return what should worry somebody, the worst first.

    Args:
        connection: to the server, idle.
        older_us: the age from which a transaction worries; None: `POSTGRES_OLD_TRANSACTION_US`.
    """
    if older_us is None:
        older_us = limits.POSTGRES_OLD_TRANSACTION_US
    found = [
        Worry(subject=name, text=f"it is {setting} on the server: {_MEANT[name]}")
        for name, setting in await connection.fetch(_UNSAFE_SETTINGS)
    ]
    for culprit, age_s in await connection.fetch(_OLD_SNAPSHOTS):
        if age_s is not None and age_s * limits.SECOND_US >= older_us:
            text = (
                f"{culprit} has been open for {int(age_s)} s: since then no dead row could be cleared away, and "
                "planning and polling slow down; end it (`SELECT pg_terminate_backend(pid)`, or ROLLBACK "
                "PREPARED), and set idle_in_transaction_session_timeout for whoever forgets"
            )
            found.append(Worry(subject="old transaction", text=text))
    return tuple(found)
