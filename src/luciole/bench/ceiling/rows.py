# ruff: noqa: S608, ISC004 - statements of our own, made of names and numbers of our own
"""Ceilings of what is no burst: the same rows, written or read by the server alone, in tables of the product.

The client sends one statement for a whole batch and hears nothing but its end, so that what it costs is the server's.
A further kind of store is an entry in `ROWS`, and a way to open it in `lanes.py`.
"""

from typing import Final, NamedTuple

from luciole.limits import DAY_US, SECOND_US

#: Far enough from everything that a trigger or a clock says.
_AT_US: Final = 1_900_000_000 * SECOND_US

#: As long as the ids and names that the product writes.
_EXECUTOR: Final = "ceiling-0123456789abcd"

_EXECUTION = "(shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags"


class RowSql(NamedTuple):
    """What one kind of store is asked: each a transaction over ids `$1` to `$2`; one id is one row of its table."""

    clear: tuple[str, ...]
    enqueue: tuple[str, ...]  #: an execution with a payload `$3`, and its entry
    settle: tuple[str, ...]  #: the end of an execution, and its entry gone
    register: tuple[str, ...]  #: a schedule and its cursor
    find: tuple[str, ...]  #: schedules by their names, all columns read
    load: str  #: one execution by its key: shard `$1`, part `$2`


TABLES: Final = ("execution", "entry", "schedule", "cursor")

_SERIES = "WITH RECURSIVE series(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM series WHERE n < ?2) "
_KEYS = f"(SELECT n % 32, 0, {_AT_US}, n FROM series)"
_KEY = "(shard, schedule_id, fire_us, part)"
_SCHEDULE = (
    "schedule (schedule_id, shard, namespace, name, owner, job_id, trigger_id, policy_id, version, state, "
    "created_us, updated_us)"
)
_CURSOR = "cursor (shard, schedule_id, fire_us, due_us, revision, trigger_id, job_id, policy_id)"

ROWS: Final = {
    "postgres": RowSql(
        clear=(f"TRUNCATE {', '.join(TABLES)}",),
        enqueue=(
            f"WITH made AS (INSERT INTO execution {_EXECUTION}, origin, created_us, payload, content_type, namespace) "
            f"SELECT n % 32, 0, {_AT_US}, n, 1, 1, 1, {_AT_US}, 5, 0, 1, {_AT_US}, $3, 'application/json', 'bench' "
            "FROM generate_series($1::bigint, $2::bigint) n RETURNING shard, schedule_id, fire_us, part) "
            f"INSERT INTO entry {_EXECUTION}) "
            f"SELECT shard, schedule_id, fire_us, part, 1, 1, 1, {_AT_US}, 5, 0 FROM made",
        ),
        settle=(
            "WITH gone AS (DELETE FROM entry e USING generate_series($1::bigint, $2::bigint) n "
            f"WHERE e.shard = (n % 32)::smallint AND e.schedule_id = 0 AND e.fire_us = {_AT_US} AND e.part = n "
            "RETURNING e.shard, e.part) "
            f"UPDATE execution x SET state = 10, started_us = {_AT_US}, finished_us = {_AT_US}, "
            f"executor_id = '{_EXECUTOR}' FROM gone g "
            f"WHERE x.shard = g.shard AND x.schedule_id = 0 AND x.fire_us = {_AT_US} AND x.part = g.part",
        ),
        register=(
            f"WITH made AS (INSERT INTO {_SCHEDULE} "
            "SELECT n, n % 32, 'ceiling', 'ceiling-' || lpad(n::text, 8, '0'), 'ceiling', 1, 1 + n % 24, 1, 1, "
            f"'active', {_AT_US}, {_AT_US} FROM generate_series($1::bigint, $2::bigint) n "
            "RETURNING shard, schedule_id, trigger_id) "
            f"INSERT INTO {_CURSOR} SELECT shard, schedule_id, {_AT_US}, {_AT_US}, 1, trigger_id, 1, 1 FROM made",
        ),
        find=(
            "SELECT count(*), max(s.version), max(s.state), max(s.owner), max(c.revision), max(c.due_us) "
            "FROM generate_series($1::bigint, $2::bigint) n "
            "JOIN schedule s ON s.namespace = 'ceiling' AND s.name = 'ceiling-' || lpad(n::text, 8, '0') "
            "JOIN cursor c ON c.shard = s.shard AND c.schedule_id = s.schedule_id",
        ),
        load=(
            "SELECT state, attempt, due_us, payload, content_type, result FROM execution "
            f"WHERE shard = $1 AND schedule_id = 0 AND fire_us = {_AT_US} AND part = $2"
        ),
    ),
    "sqlite": RowSql(
        clear=tuple(f"DELETE FROM {table}" for table in TABLES),
        enqueue=(
            f"{_SERIES} INSERT INTO execution {_EXECUTION}, origin, created_us, payload, content_type, namespace) "
            f"SELECT n % 32, 0, {_AT_US}, n, 1, 1, 1, {_AT_US}, 5, 0, 1, {_AT_US}, ?3, 'application/json', 'bench' "
            "FROM series",
            f"{_SERIES} INSERT INTO entry {_EXECUTION}) "
            f"SELECT n % 32, 0, {_AT_US}, n, 1, 1, 1, {_AT_US}, 5, 0 FROM series",
        ),
        settle=(
            f"{_SERIES} UPDATE execution SET state = 10, started_us = {_AT_US}, finished_us = {_AT_US}, "
            f"executor_id = '{_EXECUTOR}' WHERE {_KEY} IN {_KEYS}",
            f"{_SERIES} DELETE FROM entry WHERE {_KEY} IN {_KEYS}",
        ),
        register=(
            f"{_SERIES} INSERT INTO {_SCHEDULE} SELECT n, n % 32, 'ceiling', printf('ceiling-%08d', n), 'ceiling', 1, "
            f"1 + n % 24, 1, 1, 'active', {_AT_US}, {_AT_US} FROM series",
            f"{_SERIES} INSERT INTO {_CURSOR} SELECT n % 32, n, {_AT_US}, {_AT_US + DAY_US}, 1, 1 + n % 24, 1, 1 "
            "FROM series",
        ),
        find=(
            f"{_SERIES} SELECT count(*), max(s.version), max(s.state), max(s.owner), max(c.revision), max(c.due_us) "
            "FROM series CROSS JOIN schedule s ON s.namespace = 'ceiling' AND s.name = printf('ceiling-%08d', n) "
            "CROSS JOIN cursor c ON c.shard = s.shard AND c.schedule_id = s.schedule_id",
        ),
        load=(
            "SELECT state, attempt, due_us, payload, content_type, result FROM execution "
            f"WHERE shard = ?1 AND schedule_id = 0 AND fire_us = {_AT_US} AND part = ?2"
        ),
    ),
}
