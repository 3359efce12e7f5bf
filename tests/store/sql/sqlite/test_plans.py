"""The plans of the statements: no hot one reads a table from end to end, whatever stands in it."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from luciole.limits import DAY_US
from luciole.model.ids import ExecutionKey
from luciole.model.lease import Lease
from luciole.model.plan import ReadyRoute
from luciole.model.schedule import Cursor, OverlapCode, Policy, pack_policy
from luciole.store.sql import moves, outbox, planning, settling
from luciole.store.sql.migrate import migrate
from luciole.store.sql.queries import load
from luciole.store.sql.script import Script, run
from luciole.store.sql.sqlite.binding import Prepared, Table, asker
from luciole.store.sql.sqlite.connecting import Durability
from luciole.store.sql.sqlite.dialect import SqliteDialect
from luciole.testing.clock import START_US
from luciole.testing.factories import NODE_A, a_job, a_plan, a_settlement
from tests.store.sql.sqlite.files import a_connection, a_dialect

#: What reads a small table, or pages for people: they may look at all of it.
MAY_SCAN = {
    "applied_migrations", "beat", "cluster", "count_leases", "count_open_entries", "count_parked", "greatest_id",
    "greatest_job", "greatest_trigger", "id_segments", "lease_fences", "leave", "list_jobs", "list_open",
    "list_troubled", "sample_parked", "schema_exists", "zone_rules",
}  # fmt: skip

#: What a piece of values or the temporary table looks like in a plan.
SOURCES = re.compile(
    r"SCAN (\d+ )?(CONSTANT ROWS?|\(subquery-\d+\)|temp\.batch_row|chosen_(step|cursor)|latest|due|counted|seen|found)"
)

STATEMENTS = load("luciole.store.sql.sqlite")
#: Rows in the statement itself, one or several, or in the temporary table: with all their columns, or without the first
#: one, the shard: whoever looks for that first reads all of it.
FORMS = (1, 8, "all", "shared shard")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection on an empty file with the schema."""
    with closing(a_connection(tmp_path / "plans.db", Durability.OFF, has_table=True)) as made:
        prepare(made, a_dialect(tmp_path / "plans.db"))
        yield made


def prepare(connection: sqlite3.Connection, dialect: SqliteDialect) -> None:
    steps = {step.name: step.statement for step in dialect.migrations}
    prepared = {name: Prepared(statement) for name, statement in (STATEMENTS | steps).items()}
    run(migrate(dialect.migrations, 32), asker(connection, prepared, lambda: START_US))


def plan_of(connection: sqlite3.Connection, text: str) -> list[str]:
    """Return the steps of a command's plan."""
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", [1] * text.count("?"))]


def scans(connection: sqlite3.Connection, name: str) -> list[str]:
    """Return the steps of a statement's plans that read something from end to end."""
    statement = STATEMENTS[name]
    found = []
    places = tuple(range(len(statement.columns)))
    tables = {"all": places, "shared shard": places[1:] or places}
    for form in FORMS if statement.columns and not statement.each else (1,):
        for text, *_ in Prepared(statement).commands(tables.get(str(form), 1) if isinstance(form, str) else form):
            found += [step for step in plan_of(connection, text) if step.startswith("SCAN") and not SOURCES.match(step)]
    return found


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - MAY_SCAN - {"create_migration_tables"}))
def test_no_statement_reads_a_whole_table(connection: sqlite3.Connection, name: str) -> None:
    assert scans(connection, name) == []


@pytest.mark.parametrize(
    "name", ["due_cursors", "next_cursors", "open_entries", "prune_walk", "list_by_key", "list_by_schedule"]
)
def test_pages_come_in_the_order_of_an_index(connection: sqlite3.Connection, name: str) -> None:
    """Nothing is sorted that a limit would cut off."""
    plan = plan_of(connection, Prepared(STATEMENTS[name]).commands(1)[0].text)
    assert [step for step in plan if "TEMP B-TREE" in step] == []


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("due_cursors", "cursor USING INDEX cursor_due (shard=? AND due_us>? AND due_us<?)"),
        ("next_cursors", "cursor USING COVERING INDEX cursor_due (shard=? AND due_us>?)"),
        ("ready_heads", "entry USING INDEX entry_ready (shard=? AND priority=?)"),
        ("ready_entries", "entry USING INDEX entry_ready (shard=? AND priority=? AND due_us<?)"),
        ("cancelled_entries", "entry USING INDEX entry_cancel (shard=?)"),
        ("ready_routes", "entry USING INDEX entry_route (shard=? AND priority=? AND route>?)"),
        ("route_entries", "entry USING INDEX entry_route (shard=? AND priority=? AND route=? AND due_us<?)"),
        ("count_ready_entries", "entry USING INDEX entry_ready (shard=? AND priority=? AND due_us<?)"),
        ("list_troubled", "failure USING INDEX failure_at"),
    ],
)
def test_what_is_small_is_found_by_its_small_index(connection: sqlite3.Connection, name: str, index: str) -> None:
    plan = plan_of(connection, Prepared(STATEMENTS[name]).commands(1)[0].text)
    assert f"SEARCH {index}" in "\n".join(plan)


class Meter:
    """Counts the steps of SQLite's machine that a script takes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.prepared = {name: Prepared(statement) for name, statement in STATEMENTS.items()}
        self.steps = 0

    def measure(self, script: Script[object]) -> int:
        self.steps = 0
        self.connection.set_progress_handler(self._step, 10)
        self.connection.execute("BEGIN IMMEDIATE")
        run(script, asker(self.connection, self.prepared, lambda: START_US, table=Table()))
        self.connection.execute("ROLLBACK")
        self.connection.set_progress_handler(None, 0)
        return self.steps

    def _step(self) -> int:
        self.steps += 10
        return 0


def fill(connection: sqlite3.Connection, *, history: int) -> list[Cursor]:
    """Write a history, schedules and delayed work that are far from due, and 300 cursors that are due.

    Some delayed work there is in each shard and priority that ever has any: how many of those there are is no history.
    """
    far_us = START_US + 300 * DAY_US
    policy_id = pack_policy(Policy(), a_job())
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE lease SET holder = ?, fence = 1, expires_us = ?", (NODE_A, far_us))
    connection.executemany(
        "INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, "
        "origin, created_us) VALUES (?, ?, ?, 0, 1, 10, 1, 0, 5, 0, 0, 0)",
        ((n % 32, n % 1_000 + 1, START_US - DAY_US - n) for n in range(history)),
    )
    connection.executemany(
        "INSERT INTO cursor VALUES (?, ?, ?, ?, 0, 1, 1, ?)",
        ((n % 32, 1_000_000 + n, far_us + n, far_us + n, policy_id) for n in range(history // 10)),
    )
    for table, columns in (("entry", ""), ("execution", ", origin, created_us")):
        connection.executemany(
            "INSERT INTO " + table + " (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, "
            f"flags{columns}) VALUES (?, 0, ?, ?, 1, 1, 1, ?, ?, 0{', 1, 0' if columns else ''})",
            ((n % 32, far_us + n, -n - 1, far_us + n, n % 10) for n in range(max(history // 50, 320))),
        )
    due = [Cursor(n % 32, 2_000_000 + n, 0, START_US, START_US, 1, 1, policy_id) for n in range(300)]
    connection.executemany(
        "INSERT INTO cursor VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(it.shard, it.schedule_id, it.fire_us, it.due_us, it.revision, *it[5:]) for it in due],
    )
    connection.execute("COMMIT")
    connection.execute("ANALYZE")
    return due


def verbs(due: list[Cursor]) -> dict[str, Script[object]]:
    leases = [Lease(shard=shard, holder=NODE_A, fence=1, expires_us=START_US) for shard in range(32)]
    plan = a_plan(leases, *due)
    plan = type(plan)(moves=tuple(move._replace(overlap=OverlapCode.FORBID) for move in plan.moves), leases=plan.leases)
    keys = [ExecutionKey(it.shard, it.schedule_id, START_US - 1, 0) for it in due]
    return {
        "due_cursors": planning.due_cursors(range(32), START_US, 200),
        "ready_entries": outbox.ready_entries(range(32), START_US, 100),
        "ready_routes": outbox.ready_routes(range(32), START_US, -1, 64),
        "route_entries": outbox.route_entries([ReadyRoute(n, 5, 0) for n in range(32)], START_US, 100),
        "commit_plan": moves.commit_plan(plan, moves.plain_rows(plan)),
        "settle": settling.settle([a_settlement(key) for key in keys]),
    }


@pytest.mark.slow
def test_hot_verbs_cost_the_same_beside_a_million_old_rows(tmp_path: Path) -> None:
    """Statistics are gathered too: what stands in the tables must not talk the planner into a scan."""
    steps: dict[int, dict[str, int]] = {}
    for history in (1_000, 1_000_000):
        path = tmp_path / f"{history}.db"
        with closing(a_connection(path, Durability.OFF, has_table=True)) as connection:
            prepare(connection, a_dialect(path))
            due = fill(connection, history=history)
            meter = Meter(connection)
            steps[history] = {name: meter.measure(script) for name, script in verbs(due).items()}
            scanned = {
                name: found
                for name in STATEMENTS.keys() - MAY_SCAN - {"create_migration_tables"}
                if (found := scans(connection, name))
            }
            assert scanned == {}
    assert steps[1_000].keys() == steps[1_000_000].keys()
    assert {name: count for name, count in steps[1_000_000].items() if count > 1.2 * steps[1_000][name]} == {}
