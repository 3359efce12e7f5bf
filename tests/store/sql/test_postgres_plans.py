"""How PostgreSQL runs the hot statements: each row found by its key, whatever the tables hold."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from luciole.model.ids import ExecutionKey
from luciole.model.outbox import Settled
from luciole.runtime.clock import SystemClock
from luciole.store.sql.postgres.binding import Prepared
from luciole.store.sql.postgres.dialect import PostgresDialect
from luciole.store.sql.postgres.link import PINNED
from luciole.store.sql.queries import load
from luciole.store.sql.script import Query
from luciole.store.sql.store import SqlStore
from luciole.testing.factories import a_settlement

#: What grows without bound. Whoever reads one of these without naming a shard reads all of it.
BIG = {"cursor", "execution", "entry", "attempt", "failure", "ledger"}

#: Every statement that planning, delivering, settling and enqueueing run.
HOT = """
    cancel_entries cancel_executions cancelled_entries check_fences continue_entries continue_executions
    delete_attempts delete_entries delete_executions delete_failures deliver_entries due_cursors due_groups
    end_executions enqueue enqueue_new entries_of_schedules execution_states existing_fires extend_ledger
    find_request_keys
    insert_attempts insert_fire_entries insert_fires insert_ledger last_fires ledger_heads lock_cursors lock_entries
    move_cursors open_entries open_of_schedules prune_walk put_failures ready_entries ready_heads
    ready_routes route_entries
    recorded_outcomes release_entries run_entries schedule_of_request stop_cursors unpark_entries waiting_entries
    write_chosen write_moves write_successes bump_cursors claim_request_keys park_schedules
""".split()  # noqa: SIM905 - as readable as it gets

ROWS = 1_000_000
SHARDS = 32
NOW_US = 1_800_000_000_000_000

Json = dict[str, Any]


@pytest.fixture
async def hot(postgres_dsn: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A hot connection to a migrated database."""
    store = SqlStore(PostgresDialect(postgres_dsn, clock=SystemClock(), chance=lambda: 0.5))
    await store.migrate(shards=SHARDS)
    await store.close()
    connection = await asyncpg.connect(postgres_dsn, server_settings={"search_path": "luciole", **PINNED})
    yield connection
    await connection.close()


async def plan_of(connection: "asyncpg.Connection[asyncpg.Record]", text: str, values: list[str] | None = None) -> Json:
    """Return the generic plan of a command; with values, as it ran."""
    await connection.execute(f"PREPARE it AS {text}")
    count = await connection.fetchval(
        "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'it'"
    )
    given = ", ".join(values if values is not None else ["NULL"] * count)
    execute = f"EXECUTE it({given})" if count else "EXECUTE it"
    how = "ANALYZE, BUFFERS, FORMAT JSON" if values is not None else "FORMAT JSON"
    found: Json = json.loads(await connection.fetchval(f"EXPLAIN ({how}) {execute}"))[0]["Plan"]
    await connection.execute("DEALLOCATE it")
    return found


def nodes_of(plan: Json) -> Iterator[Json]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes_of(child)


def faults_of(plan: Json) -> list[str]:
    """Return the scans of big tables that find more than they look for."""
    return [
        f"{node['Node Type']} of {node['Relation Name']} by {node.get('Index Cond')}"
        for node in nodes_of(plan)
        if node.get("Relation Name") in BIG and "Scan" in node["Node Type"] and not _goes_by_key(node)
    ]


def _goes_by_key(node: Json) -> bool:
    if node["Node Type"] == "Tid Scan":
        return True  # By its place: one row.
    condition = node.get("Index Cond", "")
    narrow = "schedule_id" in condition or "due_us" in condition or "priority" in condition
    return "shard = " in condition and (narrow or node["Index Name"] in {"entry_cancel", "cursor_due"})


async def assert_all_go_by_key(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    statements = load("luciole.store.sql.postgres")
    faults = {}
    for name in HOT:
        for command in Prepared(statements[name]).commands:
            if found := faults_of(await plan_of(connection, command.text)):
                faults[name] = found
    assert faults == {}


async def test_every_hot_statement_goes_by_key_in_empty_tables(hot: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Goal: a plan that was made on the first day, and stays for long, is right for the last."""
    await assert_all_go_by_key(hot)


async def test_a_hash_over_a_whole_table_would_be_noticed(hot: "asyncpg.Connection[asyncpg.Record]") -> None:
    text = """
        SELECT FROM unnest($1::int4[], $2::int8[]) AS batch(shard, id)
        JOIN entry ON entry.shard = batch.shard AND entry.schedule_id = batch.id
    """
    assert faults_of(await plan_of(hot, text)) == []
    for name in PINNED.keys() - {"plan_cache_mode"}:
        await hot.execute(f"RESET {name}; SET {name} = on")
    await hot.execute("SET enable_nestloop = off")
    assert faults_of(await plan_of(hot, text)) != []


@pytest.mark.slow
async def test_every_hot_statement_goes_by_key_among_a_million_rows(
    hot: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    """Goal: cost does not depend on history, nor on how many schedules are not due."""
    await hot.execute("SET synchronous_commit = off")
    await hot.execute(f"""
        INSERT INTO cursor SELECT n % {SHARDS}, n, t, t, 1, 1, 1, 1
        FROM generate_series(1, {ROWS}) n, LATERAL (SELECT {NOW_US} + n * 1000 - 500000 AS t) AS due;
        INSERT INTO execution (shard, state, attempt, priority, flags, origin, schedule_id, fire_us, part, job_id,
            due_us, created_us)
        SELECT n % {SHARDS}, 10, 1, 5, 0, 0, n, {NOW_US} - n, 0, 1, {NOW_US} - n, {NOW_US}
        FROM generate_series(1, {ROWS}) n;
        INSERT INTO entry (shard, state, attempt, priority, flags, schedule_id, fire_us, part, job_id, due_us, route)
        SELECT n % {SHARDS}, n % 2, 1, n % 10, 0, 0, {NOW_US} + n * 1000 - 500000, -n, 1, {NOW_US} + n * 1000 - 500000,
            n % 3
        FROM generate_series(1, 100000) n;
    """)
    for table in ("cursor", "execution", "entry"):
        await hot.execute(f"VACUUM ANALYZE {table}")
    await assert_all_go_by_key(hot)
    everything = [(shard, 100) for shard in range(SHARDS)]
    priorities = [(shard, priority) for shard in range(SHARDS) for priority in range(10)]
    routes = [(shard, priority, route) for shard, priority in priorities for route in range(3)]
    for name, rows, binds, rows_found in (
        ("due_cursors", everything, {"before_us": NOW_US}, 500 + SHARDS),
        ("ready_heads", priorities, {"before_us": NOW_US}, len(priorities)),
        ("ready_entries", priorities, {"before_us": NOW_US, "limit": 100}, 250),
        ("ready_routes", priorities, {"after": -1, "limit": 64}, 240),
        ("route_entries", routes, {"before_us": NOW_US, "limit": 100}, 250),
    ):
        prepared = Prepared(load("luciole.store.sql.postgres")[name])
        ((index, values),) = prepared.calls(Query(name, binds, rows))
        plan = await plan_of(hot, prepared.commands[index].text, [_literal(value) for value in values])
        assert plan["Actual Rows"] == pytest.approx(rows_found, abs=1)
        # Three levels of an index and a page for each row or probe, and two probes for each head or route.
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= 8 * (rows_found + len(rows)), name


async def test_the_end_of_a_run_finds_room_beside_it_and_no_index_hears_of_it(
    hot: "asyncpg.Connection[asyncpg.Record]", postgres_dsn: str
) -> None:
    """Goal: pages that are filled by one plan take the second version of each row that is on them."""
    keys = [(number % 2, number, NOW_US, 0) for number in range(1, 2_001)]
    for table, more in (("execution", "origin, created_us"), ("entry", "failures, losses")):
        await hot.executemany(
            f"INSERT INTO {table} (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags,"
            f" {more}) VALUES ($1, $2, $3, $4, 1, {int(table == 'execution')}, 1, $3, 5, 0, 0, 0)",
            sorted(keys),
        )
    places = "SELECT schedule_id, (ctid::text::point)[0] FROM execution ORDER BY schedule_id"
    before = await hot.fetch(places)
    ends = [a_settlement(ExecutionKey(*key), started_us=NOW_US + key[1], executor_id="0" * 16) for key in keys]
    store = SqlStore(PostgresDialect(postgres_dsn, clock=SystemClock(), chance=lambda: 0.5))
    await store.open()
    answers = [*await store.settle(ends[:1_000]), *await store.settle(ends[1_000:])]
    await store.close()
    assert set(answers) == {Settled.SETTLED}
    # No index names what changed, so a version on the same page is a HOT one.
    assert await hot.fetch(places) == before


def _literal(value: Any) -> str:  # noqa: ANN401 - what a statement takes
    return f"'{{{','.join(map(str, value))}}}'" if isinstance(value, list | tuple) else str(value)
