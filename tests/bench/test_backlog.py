"""The backlog profile sees what a misfire policy did not do, and a small one goes well."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from luciole.bench import lock
from luciole.bench.backends import Place
from luciole.bench.backlog.measure import BacklogSpec
from luciole.bench.check import check
from luciole.bench.result import read_result
from luciole.bench.stores import open_fresh
from luciole.limits import SECOND_US
from tests.bench.busy import too_busy
from tests.bench.test_cli import call

AT_US = 1_800_000_000 * SECOND_US

#: Three schedules that missed two fires each, and a new one that fired.
SOUND = f"""
INSERT INTO schedule SELECT id, 3, 'bench', name, '', 1, 1, 1, 1, 'exhausted', NULL, 1, 1 FROM (
    SELECT 7 AS id, 'overdue-once-0' AS name UNION SELECT 8, 'overdue-skip-1' UNION SELECT 9, 'overdue-catch-2'
    UNION SELECT 10, 'fresh-0');
INSERT INTO cursor SELECT 3, schedule_id, {AT_US + 3}, NULL, 5, 1, 1, 1 FROM schedule;
INSERT INTO ledger VALUES (3, 7, {AT_US}, {AT_US}, 1, 'misfire');
INSERT INTO ledger VALUES (3, 8, {AT_US}, {AT_US + 1}, 2, 'misfire');
INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
    created_us, finished_us)
SELECT 3, schedule, at, 0, 1, 10, 1, at, 5, 0, 0, {AT_US + 5}, {AT_US + 6}
FROM (SELECT 7 AS schedule, {AT_US + 1} AS at UNION SELECT 9, {AT_US} UNION SELECT 9, {AT_US + 1}
    UNION SELECT 10, {AT_US + 2});
"""
VALUES: dict[str, int | str] = {
    "namespace": "bench", "prefix": "overdue-", "fires": 7, "fires_each": 2, "end_us": AT_US + 3, "shards": 32,
    "once": 1, "caught": 2, "fresh": 1,
}  # fmt: skip
#: The missed fire of `once` ran as one of `skip`.
SWAPPED = f"""
UPDATE ledger SET fires = 15 - 2 * schedule_id + fires;
UPDATE execution SET schedule_id = 8 WHERE schedule_id = 7 AND fire_us = {AT_US + 1};
"""
BOTH = {"fires_with_an_outcome", "schedules_that_fired_otherwise"}
PLANTED = {
    "the latest missed fire did not run": (
        "UPDATE ledger SET fires = 2 WHERE schedule_id = 7; DELETE FROM execution WHERE schedule_id = 7",
        {"executions_of_fire_once"},
    ),
    "a skipped fire ran": (
        SWAPPED,
        {"executions_of_skip", "executions_of_fire_once"},
    ),
    "one was not caught up": (
        f"DELETE FROM execution WHERE schedule_id = 9 AND fire_us = {AT_US}", BOTH | {"executions_of_catch_up"},
    ),
    "a new fire is lost": (
        "DELETE FROM execution WHERE schedule_id = 10", {"fires_with_an_outcome", "executions_of_fresh_fires"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", ["", *PLANTED])
async def test_a_planted_fault_turns_its_check_red(tmp_path: Path, fault: str) -> None:
    # I4: every missed fire time has the outcome that its policy says.
    path = tmp_path / "backlog.db"
    place = Place(dsn=f"sqlite:///{path}")
    await (await open_fresh(place, shards=32)).close()
    statement, seen = PLANTED.get(fault, ("", set()))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SOUND + statement)
    assert {one.name for one in await check(place, "backlog", VALUES) if not one.passed} == seen


def test_the_policies_share_the_overdue_schedules() -> None:
    spec = BacklogSpec(overdue=100, fresh_rate=1, fresh_s=10)
    assert [spec.of_policy(number) for number in range(3)] == [34, 33, 33]


@pytest.mark.slow
def test_a_small_backlog_is_worked_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")
    code, lines = call("run", "backlog", "--size", "smoke", "--out", str(tmp_path))
    if too_busy(code, lines):
        return
    assert code == 0, lines
    found = read_result(tmp_path).repeats[0]
    assert found.actual["fire_times_missed"] == 3_000
    assert found.actual["late_runs"] == 100 + 300
