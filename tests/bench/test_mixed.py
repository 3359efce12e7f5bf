"""The mixed profile sees what becomes of requests, and a small one goes well."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from luciole.bench import lock
from luciole.bench.backends import Place
from luciole.bench.check import check
from luciole.bench.mixed.measure import RequestsBeside
from luciole.bench.mixed.requests import CANCELLED_SHARE, RETRIED_SHARE, Requests, choose
from luciole.bench.percentiles import Distribution
from luciole.bench.result import Repeat, read_result
from luciole.bench.stores import open_fresh
from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.runtime.chance import seeded_chance
from tests.bench.busy import too_busy
from tests.bench.test_cli import call

AT_US = 1_800_000_000 * SECOND_US

#: A schedule that fired once, and four requests: two that ran, one at its second attempt, one cancelled.
SOUND = f"""
INSERT INTO schedule VALUES (7, 3, 'bench', 'steady-0', '', 1, 1, 1, 1, 'exhausted', NULL, 1, 1);
INSERT INTO cursor VALUES (3, 7, {AT_US + 1}, NULL, 5, 1, 1, 1);
INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
    created_us, finished_us)
SELECT 3, schedule, {AT_US}, part, 1, state, attempt, {AT_US}, 5, 0, 0, {AT_US + 1}, {AT_US + 2}
FROM (SELECT 7 AS schedule, 0 AS part, 10 AS state, 1 AS attempt
    UNION SELECT 0, -1, 10, 1 UNION SELECT 0, -2, 10, 1 UNION SELECT 0, -3, 10, 2 UNION SELECT 0, -4, 12, 1);
INSERT INTO attempt VALUES (3, 0, {AT_US}, -3, 1, 'failed', NULL, NULL, NULL, {AT_US + 2});
"""
VALUES: dict[str, int | str] = {
    "jobs": 1, "namespace": "bench", "prefix": "steady-", "start_us": AT_US, "end_us": AT_US + 60 * SECOND_US,
    "fires": 1, "fires_each": 1, "shards": 32, "plain": 2, "retried": 1, "cancelled": 1, "requests": 4,
}  # fmt: skip
PLANTED = {
    "a request is lost": ("DELETE FROM execution WHERE part = -1", {"requests", "requests_that_succeeded_at_once"}),
    "a request failed": ("UPDATE execution SET state = 11 WHERE part = -1", {"requests_that_succeeded_at_once"}),
    "a fire failed": ("UPDATE execution SET state = 11 WHERE part = 0", {"scheduled_not_succeeded"}),
    "no retry": (
        "UPDATE execution SET attempt = 1 WHERE part = -3",
        {"requests_that_succeeded_at_once", "requests_that_succeeded_at_the_second_attempt"},
    ),
    "a failure is not recorded": (
        "DELETE FROM attempt", {"first_attempts_recorded_as_failed", "attempts_without_a_recorded_end"},
    ),
    "cancelled work ran": (
        "UPDATE execution SET state = 10 WHERE part = -4", {"requests_cancelled", "requests_that_succeeded_at_once"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", ["", *PLANTED])
async def test_a_planted_fault_turns_its_check_red(tmp_path: Path, fault: str) -> None:
    # I5: each request has the one outcome that it must have.
    path = tmp_path / "mixed.db"
    place = Place(dsn=f"sqlite:///{path}")
    await (await open_fresh(place, shards=32)).close()
    statement, seen = PLANTED.get(fault, ("", set()))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SOUND + statement)
    assert {one.name for one in await check(place, "mixed", VALUES) if not one.passed} == seen


def test_requests_are_of_each_kind_in_its_share() -> None:
    chance = seeded_chance(1)
    kinds = [choose(chance())[0] for _ in range(10_000)]
    assert kinds.count("cancelled") / 10_000 == pytest.approx(CANCELLED_SHARE, abs=0.02)
    assert kinds.count("retried") / 10_000 == pytest.approx(RETRIED_SHARE, abs=0.02)


@pytest.mark.parametrize(("late_us", "valid"), [(SECOND_US // 2, True), (2 * SECOND_US, False)])
def test_a_starved_generator_makes_the_run_invalid(late_us: int, valid: bool) -> None:  # noqa: FBT001 - a parameter
    late = Distribution()
    late.add(late_us, 100)
    beside = RequestsBeside(10, 1)
    times = dict.fromkeys(("late", "taken", "cancel_time"), late.percentiles())
    beside._told = {"plain": 1, "retried": 0, "cancelled": 0, "arrived": {}, **times}  # noqa: SLF001 - as the process tells it
    repeat = Repeat(index=0)
    beside.fill(repeat)
    assert (not repeat.invalid) == valid


@pytest.mark.parametrize("ended", [3, 2])
def test_a_cancellation_in_time_without_effect_is_a_violation(ended: int) -> None:
    beside = RequestsBeside(10, 1)
    beside._told = {"plain": 1, "retried": 0, "cancelled": 3, "cancelled_at_once": ended, "arrived": {}}  # noqa: SLF001 - as it tells it
    one = beside.checks()[0]
    assert (one.name, one.passed) == ("cancels_in_time_that_took_effect_at_once", ended == 3)


async def test_cancellations_that_are_under_way_at_once_are_all_counted() -> None:
    asked = asyncio.Barrier(2)

    class Cancelled:
        key = ExecutionKey(0, 0, 1 << 62, -1)

        async def cancel(self) -> ExecutionState:
            await asked.wait()
            return ExecutionState.CANCELLED

    requests = Requests()
    one: Any = Cancelled()
    await asyncio.gather(requests._cancel(one), requests._cancel(one))  # noqa: SLF001 - without a store
    assert requests._cancelled_at_once == 2  # noqa: SLF001 - same


@pytest.mark.slow
def test_a_small_mixture_ends_as_it_must(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")
    code, lines = call("run", "mixed", "--size", "smoke", "--out", str(tmp_path))
    if too_busy(code, lines):
        return
    result = read_result(tmp_path)
    assert code in {0, 7}, lines  # On a busy machine it may be late, but nothing is lost.
    assert result.repeats[0].figures["requests"] > 0
    assert result.repeats[0].figures["cancelled"] > 0
    assert all(one.passed for one in result.repeats[0].checks)
