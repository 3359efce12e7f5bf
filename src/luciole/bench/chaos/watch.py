"""What the chaos profile sees of the store while it runs: plain questions, without store code."""

from collections.abc import Collection
from typing import Any

from luciole.model.instant import Instant
from luciole.runtime.clock import Clock

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class Watch:
    """One connection of the bench's own to the server."""

    def __init__(self, connection: Any, clock: Clock) -> None:  # noqa: ANN401 - a connection of asyncpg
        self._connection = connection
        self.clock = clock

    async def now_us(self) -> Instant:
        """Return the store's clock."""
        return int(await self._connection.fetchval(f"SELECT {_NOW}"))

    async def node_of(self, pid: int) -> str | None:
        """Return the identity of the node that a process is; None before its first heartbeat."""
        found: str | None = await self._connection.fetchval(
            "SELECT node_id FROM node WHERE pid = $1 ORDER BY started_us DESC LIMIT 1", pid
        )
        return found

    async def holders(self) -> dict[str, list[int]]:
        """Return the shards of each holder; leases that are over have none."""
        rows = await self._connection.fetch(
            f"SELECT holder, array_agg(shard) AS shards FROM lease "  # noqa: S608 - our own words
            f"WHERE holder IS NOT NULL AND expires_us > {_NOW} GROUP BY holder"
        )
        return {row["holder"]: list(row["shards"]) for row in rows}

    async def fired_since(self, shards: Collection[int], at_us: Instant, period_us: int) -> bool:
        """Whether each of the shards has planned a fire that was due after an instant.

        A cursor stands one period after the last fire time that was planned.
        """
        count = await self._connection.fetchval(
            "SELECT count(*) FROM (SELECT shard FROM cursor WHERE shard = ANY ($1::int[]) "
            "GROUP BY shard HAVING max(fire_us) > $2) fired",
            list(shards),
            at_us + period_us,
        )
        return int(count) == len(shards)

    async def first_fire_after(self, shards: Collection[int], at_us: Instant) -> dict[int, Instant]:
        """Return when each of the shards first created an execution after an instant."""
        rows = await self._connection.fetch(
            "SELECT shard, min(created_us) AS first FROM execution WHERE shard = ANY ($1::int[]) AND created_us > $2 "
            "GROUP BY shard",
            list(shards),
            at_us,
        )
        return {row["shard"]: row["first"] for row in rows}

    async def fired_between(self, from_us: Instant, to_us: Instant) -> int:
        """Return how many executions have their fire time from one instant to before another."""
        return int(
            await self._connection.fetchval(
                "SELECT count(*) FROM execution WHERE fire_us >= $1 AND fire_us < $2", from_us, to_us
            )
        )

    async def end_connections(self) -> int:
        """End all connections to the database but this one, as a restart of the server does; return how many."""
        return int(
            await self._connection.fetchval(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )

    async def open_since(self, at_us: Instant) -> int:
        """Return how many executions of fire times before an instant are still open; a lost one is due anew."""
        return int(await self._connection.fetchval("SELECT count(*) FROM entry WHERE fire_us <= $1", at_us))

    async def open_at_all(self) -> int:
        """Return how many executions are open."""
        return int(await self._connection.fetchval("SELECT count(*) FROM entry"))

    async def redelivered(self, since_us: Instant) -> tuple[int, Instant]:
        """Return how many attempts were lost since an instant, and the latest start of an attempt that followed."""
        row = await self._connection.fetchrow(
            "SELECT count(*) AS lost, coalesce(max(e.started_us), 0) AS latest "
            "FROM attempt a JOIN execution e USING (shard, schedule_id, fire_us, part) "
            "WHERE a.outcome = 'lost' AND a.finished_us > $1 AND e.attempt = a.attempt + 1",
            since_us,
        )
        return int(row["lost"]), int(row["latest"])

    async def telemetry(self, node_id: str) -> str:
        """Return what a node last published of itself."""
        found: str | None = await self._connection.fetchval("SELECT telemetry FROM node WHERE node_id = $1", node_id)
        return found or "{}"

    async def executions(self) -> list[tuple[int, int, int, int, int, int]]:
        """Return every execution as (shard, schedule, fire time, part, attempt, state)."""
        rows = await self._connection.fetch("SELECT shard, schedule_id, fire_us, part, attempt, state FROM execution")
        return [tuple(row) for row in rows]

    async def troubled(self, most: int) -> list[str]:
        """Return, in words, some executions that did not succeed, with the story of their attempts."""
        rows = await self._connection.fetch(
            "SELECT e.shard, e.schedule_id, e.fire_us, e.state, e.attempt, e.error, string_agg(format("
            "'attempt %s of %s started %s ended %s: %s (%s)', a.attempt, a.executor_id, a.started_us, a.finished_us, "
            "a.outcome, a.error), '; ' ORDER BY a.attempt) AS story "
            "FROM execution e LEFT JOIN attempt a USING (shard, schedule_id, fire_us, part) WHERE e.state <> 10 "
            "GROUP BY e.shard, e.schedule_id, e.fire_us, e.part ORDER BY e.fire_us LIMIT $1",
            most,
        )
        return [
            f"schedule {row['schedule_id']} of {row['fire_us']} in shard {row['shard']} ended in state {row['state']} "
            f"with attempt {row['attempt']}: {row['error']}; {row['story']}"
            for row in rows
        ]

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()
