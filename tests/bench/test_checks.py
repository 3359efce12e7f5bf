"""Each question of the checker turns red on a fault that is planted in a burst that went well."""

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeAlias

import pytest

from luciole.bench.backends import Place, connect_postgres, sqlite_path
from luciole.bench.burst.repeat import BurstRepeat
from luciole.bench.burst.spec import BurstSpec, RepeatOrders
from luciole.bench.check import Values, ask, check, questions
from luciole.testing.servers import PostgresServer

JOBS = 40

#: One execution of the burst, and what makes a second of the same schedule out of it.
_ONE = "(SELECT min(schedule_id) FROM execution WHERE fire_us = {at})"
_COPY = (
    "INSERT INTO execution "
    "(shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin, "
    "created_us, finished_us) "
    "SELECT shard, schedule_id, fire_us, 1, job_id, state, attempt, due_us, priority, flags, origin, "
    "created_us, finished_us FROM execution WHERE schedule_id = " + _ONE + " AND fire_us = {at}"
)
_ENTRY = (
    "INSERT INTO entry (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags) "
    "SELECT shard, schedule_id, fire_us, part, job_id, 0, 2, due_us, priority, flags FROM execution "
    "WHERE schedule_id = " + _ONE
)

#: The fault, and the questions that must see it.
FAULTS: dict[str, tuple[str, set[str]]] = {
    "an execution is deleted": (
        "DELETE FROM execution WHERE schedule_id = " + _ONE,
        {"executions_of_the_instant", "succeeded", "fire_times_without_outcome"},
    ),
    "a fire time has two executions": (
        _COPY,
        {"doubles", "executions_beside_the_instant", "overlaps", "succeeded"},
    ),
    "a schedule fired at another time": (
        "UPDATE execution SET fire_us = fire_us + 1 WHERE schedule_id = " + _ONE,
        {"executions_beside_the_instant", "executions_of_the_instant", "fire_times_without_outcome"},
    ),
    "an execution still runs": (
        "UPDATE execution SET state = 2 WHERE schedule_id = " + _ONE,
        {"executions_not_terminal", "succeeded"},
    ),
    "an execution failed": ("UPDATE execution SET state = 11 WHERE schedule_id = " + _ONE, {"succeeded"}),
    "an entry is doubled": (_ENTRY, {"open_entries"}),
    "a cursor moved back": (
        "UPDATE cursor SET fire_us = {at}, due_us = {at} WHERE schedule_id = " + _ONE,
        {"cursors_unmoved"},
    ),
    "a cursor is gone": ("DELETE FROM cursor WHERE schedule_id = " + _ONE, {"cursors_unmoved"}),
    "a cursor moved twice": (
        "UPDATE cursor SET revision = revision + 1 WHERE schedule_id = " + _ONE,
        {"cursors_not_moved_once"},
    ),
    "an execution was tried again": (
        "UPDATE execution SET attempt = 2 WHERE schedule_id = " + _ONE,
        {"second_attempts"},
    ),
    "an outdated fence was accepted": (
        "UPDATE execution SET created_us = {at} - 1 WHERE schedule_id = " + _ONE,
        {"stale_writes_accepted"},
    ),
    "a fire was skipped": (
        "INSERT INTO ledger (shard, schedule_id, first_us, last_us, fires, reason) VALUES (0, 1, 1, 1, 1, 'overlap')",
        {"fires_skipped"},
    ),
    "a schedule is gone": (
        "DELETE FROM schedule WHERE schedule_id = " + _ONE,
        {"schedules", "executions_of_the_instant", "succeeded"},
    ),
    "an execution is in a wrong shard": (
        "UPDATE execution SET shard = (shard + 1) % 32 WHERE schedule_id = " + _ONE,
        {
            "executions_in_a_wrong_shard",
            "executions_beside_the_instant",
            "executions_of_the_instant",
            "succeeded",
            "fire_times_without_outcome",
        },
    ),
    "a lease row is gone": ("DELETE FROM lease WHERE shard = 7", {"lease_rows", "fences_as_granted"}),
    "a shard was taken over": ("UPDATE lease SET fence = fence + 1 WHERE shard = 7", {"fences_as_granted"}),
    "a lease is left": ("UPDATE lease SET holder = 'x' WHERE shard = 7", {"leases_left"}),
    "a node is left": (
        (
            "INSERT INTO node (node_id, host, pid, version, tzdata, started_us, seen_us, telemetry) "
            "VALUES ('x', 'x', 1, 'x', 'x', 1, 1, '')"
        ),
        {"nodes_left"},
    ),
}

Run: TypeAlias = Callable[[Place, str], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Burst:
    """A burst that went well, and how to get copies of its store."""

    values: Values
    copy: Callable[[], Place]
    run: Run


async def small_burst(place: Place) -> Values:
    spec = BurstSpec(jobs=JOBS, warm_up_jobs=10, shards=32)
    one = BurstRepeat(RepeatOrders(index=0, spec=spec, place=place, ceiling_place=place, ceiling=[]))
    found = await one.run()
    assert [(check.name, check.found) for check in found.checks if not check.passed] == []
    return one.values


@pytest.fixture(scope="module")
def sqlite_burst(tmp_path_factory: pytest.TempPathFactory) -> Burst:
    folder = tmp_path_factory.mktemp("burst")
    place = Place(dsn=f"sqlite:///{folder / 'whole.db'}")
    values = asyncio.run(small_burst(place))

    def copy() -> Place:
        path = tmp_path_factory.mktemp("copy") / "broken.db"
        shutil.copy(sqlite_path(place.dsn), path)
        return Place(dsn=f"sqlite:///{path}")

    async def run(there: Place, statement: str) -> None:
        with sqlite3.connect(sqlite_path(there.dsn)) as connection:
            connection.execute(statement)
        connection.close()

    return Burst(values=values, copy=copy, run=run)


@pytest.fixture(scope="module")
def postgres_burst(postgres_wheel: PostgresServer) -> Iterator[Burst]:
    dsn = postgres_wheel.create_database()
    values = asyncio.run(small_burst(Place(dsn=dsn, schema="luciole")))
    copies: list[str] = []

    def copy() -> Place:
        copies.append(postgres_wheel.create_database(template=dsn))
        return Place(dsn=copies[-1], schema="luciole")

    async def run(there: Place, statement: str) -> None:
        connection = await connect_postgres(there)
        await connection.execute(statement)
        await connection.close()

    yield Burst(values=values, copy=copy, run=run)
    for one in (*copies, dsn):
        postgres_wheel.drop_database(one)


async def red(burst: Burst, fault: str) -> set[str]:
    place = burst.copy()
    await burst.run(place, fault.replace("{at}", str(burst.values["at_us"])))
    return {one.name for one in await check(place, "burst", burst.values) if not one.passed}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_planted_fault_turns_its_checks_red_on_sqlite(sqlite_burst: Burst, fault: str) -> None:
    # I1, I2, I3, I4, I5, I6: a burst that broke one of them can't pass.
    statement, seen = FAULTS[fault]
    assert await red(sqlite_burst, statement) == seen


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_planted_fault_turns_its_checks_red_on_postgres(postgres_burst: Burst, fault: str) -> None:
    statement, seen = FAULTS[fault]
    assert await red(postgres_burst, statement) == seen


@pytest.mark.slow
async def test_what_is_due_before_the_instant_is_seen(sqlite_burst: Burst) -> None:
    place = sqlite_burst.copy()
    names = ("revision_before", "due_before_the_instant")
    whole = await ask(place, names, sqlite_burst.values)
    assert whole == {"revision_before": int(sqlite_burst.values["revision"]) + 1, "due_before_the_instant": 0}
    one = _ONE.replace("{at}", str(sqlite_burst.values["at_us"]))
    await sqlite_burst.run(place, f"UPDATE cursor SET due_us = 1, revision = 99 WHERE schedule_id = {one}")
    assert await ask(place, names, sqlite_burst.values) == {"revision_before": -1, "due_before_the_instant": 1}


def test_each_question_that_judges_has_a_fault_planted_against_it() -> None:
    judging = {question.name for question in questions() if "burst" in question.of and question.expect != "read"}
    assert judging == set.union(*(seen for _, seen in FAULTS.values()))


def test_the_checker_imports_no_store_code() -> None:
    program = (
        "import sys, luciole; before = set(sys.modules); import luciole.bench.check; "
        "print([name for name in set(sys.modules) - before if name.startswith(('luciole.store', 'luciole.engine'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_every_question_of_the_file_is_read() -> None:
    """A name that the pattern does not fit would be a question that nobody asks."""
    text = (files("luciole.bench.checks") / "questions.sql").read_text(encoding="utf-8")
    assert len(questions()) == text.count("-- name: ") == len({question.name for question in questions()})
