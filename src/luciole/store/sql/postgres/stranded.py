"""Transactions of our own whose client was stopped in the middle of a statement.

The server ends who idles in a transaction. For a client that has sent half of a statement, parsed and not yet
executed, it waits for ever, whatever its time-outs say, and the locks stay: no other node gets the shards.
(`transaction_timeout` would see it; it came with version 17.)
"""

import logging
from typing import TYPE_CHECKING

from luciole import limits

if TYPE_CHECKING:
    import asyncpg

_log = logging.getLogger("luciole.store")

_END = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND application_name = $1 AND pid <> pg_backend_pid()
AND state = 'active' AND wait_event = 'ClientRead'
AND state_change < clock_timestamp() - $2 * interval '1 microsecond'
"""


async def end_stranded(connection: "asyncpg.Connection[asyncpg.Record]", application: str) -> int:
    """End sessions of ours that have waited for their client, in mid-statement, for longer than they may idle.

    Args:
        connection: to the server, idle.
        application: the name that our sessions go by.

    Returns:
        How many were ended; their clients find their connections broken, and nothing written.
    """
    ended = int(await connection.fetchval(_END, application, limits.POSTGRES_IDLE_IN_TRANSACTION_US))
    if ended:
        _log.warning("%d sessions were ended whose clients stopped in the middle of a statement", ended)
    return ended
