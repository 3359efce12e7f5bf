"""The chaos profile sees what goes wrong, and a small one goes well."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from luciole.bench import lock
from luciole.bench.backends import Place
from luciole.bench.chaos.ledger import read_ledger, reconcile
from luciole.bench.check import check
from luciole.bench.result import read_result
from luciole.bench.stores import open_fresh
from luciole.model.ids import ExecutionKey
from tests.bench.test_cli import call

FIRST = ExecutionKey(1, 2, 3_000_000, 0)
SECOND = ExecutionKey(1, 2, 5_000_000, 0)
ROWS: list[tuple[int, ...]] = [(*FIRST, 1, 10), (*SECOND, 2, 10)]
LINES = [f"{FIRST.text()} 1", f"{SECOND.text()} 1", f"{SECOND.text()} 2"]


def failed(tmp_path: Path, lines: list[str], rows: list[tuple[int, ...]] | None = None) -> set[str]:
    path = tmp_path / "ledger"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    checks = reconcile(read_ledger(path), ROWS if rows is None else rows)  # type: ignore[arg-type] # six numbers each
    return {one.name for one in checks if not one.passed}


def test_a_ledger_that_fits_the_store_passes(tmp_path: Path) -> None:
    assert failed(tmp_path, LINES) == set()


def test_two_starts_with_one_token_are_seen(tmp_path: Path) -> None:
    # I5: one attempt token is one start.
    assert failed(tmp_path, [*LINES, LINES[0]]) == {"ledger_attempts_started_twice"}


def test_a_success_that_never_started_is_seen(tmp_path: Path) -> None:
    assert failed(tmp_path, LINES[:2]) == {"ledger_succeeded_without_a_start"}


def test_a_start_that_the_store_does_not_know_is_seen(tmp_path: Path) -> None:
    assert failed(tmp_path, LINES, ROWS[:1]) == {"ledger_starts_unknown_to_the_store"}


def test_no_start_at_all_is_seen(tmp_path: Path) -> None:
    assert "ledger_starts" in failed(tmp_path, [])
    assert read_ledger(tmp_path / "missing") == {}


def test_a_line_that_a_kill_cut_off_is_none(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_text(f"{LINES[0]}\n{LINES[1][:5]}", encoding="ascii")
    assert list(read_ledger(path)) == [(FIRST, 1)]


#: One schedule of 1 s that fired at 10, 11 and 13 s and was skipped at 12 s; its cursor stands at 14 s.
SOUND = """
INSERT INTO schedule VALUES (7, 3, 'bench', 'chaos-0', '', 1, 1, 1, 1, 'paused', NULL, 1, 1);
INSERT INTO cursor VALUES (3, 7, 14000000, NULL, 5, 1, 1, 1);
INSERT INTO ledger VALUES (3, 7, 12000000, 12000000, 1, 'overlap');
INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
    created_us, finished_us)
SELECT 3, 7, at, 0, 1, 10, attempt, at, 5, 0, 0, at + 1, at + 2
FROM (SELECT 10000000 AS at, 1 AS attempt UNION SELECT 11000000, 2 UNION SELECT 13000000, 1);
INSERT INTO attempt VALUES (3, 7, 11000000, 0, 1, 'lost', NULL, NULL, NULL, 11000002);
"""
VALUES: dict[str, int | str] = {
    "jobs": 1, "namespace": "bench", "prefix": "chaos-", "start_us": 10_000_000, "period_us": 1_000_000, "shards": 32,
}  # fmt: skip

PLANTED = {
    "a fire is lost": ("DELETE FROM execution WHERE fire_us = 13000000", "schedules_with_lost_fire_times"),
    "the first fire is lost": ("DELETE FROM execution WHERE fire_us = 10000000", "schedules_with_lost_fire_times"),
    "nothing ever fired": ("DELETE FROM execution; DELETE FROM ledger", "schedules_with_lost_fire_times"),
    "a skip is not recorded": ("DELETE FROM ledger", "schedules_with_lost_fire_times"),
    "a fire is accounted twice": (
        "INSERT INTO ledger VALUES (3, 7, 11000000, 11000000, 1, 'misfire')", "schedules_with_lost_fire_times",
    ),
    "a second attempt without a first": ("DELETE FROM attempt", "attempts_without_a_recorded_end"),
    "an execution failed": ("UPDATE execution SET state = 11 WHERE fire_us = 10000000", "executions_not_succeeded"),
    "two at once": ("UPDATE execution SET finished_us = 11500000 WHERE fire_us = 10000000", "overlaps"),
}  # fmt: skip


@pytest.mark.parametrize("fault", ["", *PLANTED])
async def test_a_planted_fault_turns_its_check_red(tmp_path: Path, fault: str) -> None:
    # I4: a fire time without an outcome, or with two, is seen.
    path = tmp_path / "chaos.db"
    place = Place(dsn=f"sqlite:///{path}")
    await (await open_fresh(place, shards=32)).close()
    statement, seen = PLANTED.get(fault, ("", ""))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SOUND + statement)
    red = {one.name for one in await check(place, "chaos", VALUES) if not one.passed}
    assert red == ({seen} if seen else set())


@pytest.mark.slow
@pytest.mark.postgres
def test_a_node_that_is_stopped_for_three_leases_sends_no_stale_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: real processes and SIGSTOP under load, several times; and as often with the deadline check off."""
    # I3: its own deadline holds a node back; without it the fence does, and there is something to refuse.
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")
    kills = ("--node-kills", "0", "--executor-kills", "0")
    freezes = ("--freezes", "3", "--rate", "64")
    code, lines = call("run", "chaos", "--backend", "postgres", "--out", str(tmp_path), *kills, *freezes)
    assert code == 0, json.dumps(lines)
    found = read_result(tmp_path).repeats[0]
    assert found.figures["stale_writes_refused"] > 0
    assert found.figures["stale_writes_with_deadline"] == 0


@pytest.mark.slow
@pytest.mark.postgres
def test_the_load_is_back_ten_seconds_after_every_connection_was_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")
    others = ("--node-kills", "0", "--executor-kills", "0", "--freezes", "0", "--rate", "64")
    code, lines = call("run", "chaos", "--backend", "postgres", "--out", str(tmp_path), "--disconnects", "1", *others)
    assert code == 0, json.dumps(lines)
    found = read_result(tmp_path).repeats[0]
    assert "percent_of_the_rate_after_a_disconnect" in {one.name for one in found.checks}
    assert found.figures["back_percent"] >= 98


@pytest.mark.slow
@pytest.mark.postgres
def test_a_node_and_an_executor_are_killed_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # I1, I2, I4, I5, I6: the store and the handlers' ledger agree on every fire time after the kills.
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")
    code, lines = call("run", "chaos", "--size", "smoke", "--backend", "postgres", "--out", str(tmp_path))
    assert code == 0, json.dumps(lines)
    result = read_result(tmp_path)
    assert result.repeats[0].distributions["recovery"].count == 16
    assert {one.name for one in result.repeats[0].checks} >= {"schedules_with_lost_fire_times", "overlaps"}
