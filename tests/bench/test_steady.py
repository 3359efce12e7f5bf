"""The steady profile sees what is late, lost or doubled, and a small one goes well."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from luciole.bench import lock
from luciole.bench.backends import Place
from luciole.bench.check import check
from luciole.bench.result import read_result
from luciole.bench.steady.judge import ON_TIME_US, Punctuality, punctuality, unmet
from luciole.bench.steady.ledger import START, Reconciliation, Row, Start, ledger_path, read_executions, read_starts
from luciole.bench.steady.sampler import Sample, resources
from luciole.bench.steady.spec import Handler, SteadySpec, read_handler, still_trigger, triggers
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import Usage
from luciole.limits import SECOND_US
from luciole.model.trigger import Trigger
from tests.bench.busy import too_busy
from tests.bench.test_cli import call

AT_US = 1_800_000_000 * SECOND_US
SPEC = SteadySpec(schedules=600, duration_s=180)

FIRST = Start(3, 7, AT_US, 0, 1, AT_US, AT_US + 10)
SECOND = Start(3, 7, AT_US + SECOND_US, 0, 1, AT_US + SECOND_US, AT_US + SECOND_US + 10)
ROWS: list[Row] = [(7, AT_US, 0, 1, 10), (7, AT_US + SECOND_US, 0, 1, 10)]


def failed(starts: Sequence[Start], rows: Sequence[Row] = ROWS) -> set[str]:
    reconciliation = Reconciliation(starts)
    reconciliation.shard(3, rows)
    return {one.name for one in reconciliation.checks() if not one.passed}


def test_ledgers_that_fit_the_store_pass() -> None:
    assert failed([FIRST, SECOND]) == set()


def test_each_disagreement_of_ledger_and_store_is_seen() -> None:
    # I5, I11: one token is one start, and none comes before its due time.
    assert failed([]) == {"ledger_starts", "ledger_succeeded_without_a_start"}
    assert failed([FIRST, FIRST, SECOND]) == {"ledger_attempts_started_twice"}
    assert failed([FIRST]) == {"ledger_succeeded_without_a_start"}
    assert failed([FIRST, SECOND], ROWS[:1]) == {"ledger_starts_unknown_to_the_store"}
    assert failed([FIRST, SECOND, FIRST._replace(shard=4)]) == {"ledger_starts_unknown_to_the_store"}
    assert failed([FIRST, SECOND], [ROWS[0], (*ROWS[1][:4], 12)]) == {"ledger_starts_of_what_was_cancelled"}
    early = SECOND._replace(started_us=SECOND.due_us - 5_000)
    assert failed([FIRST, early]) == {"ledger_starts_before_they_were_due"}


def test_a_record_that_a_kill_cut_off_is_none(tmp_path: Path) -> None:
    ledger_path(tmp_path, 1).write_bytes(START.pack(*FIRST) + START.pack(*SECOND)[:-1])
    ledger_path(tmp_path, 2).write_bytes(START.pack(*SECOND))
    assert list(read_starts(tmp_path)) == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("noop", Handler(kind="noop")),
        ("sleep:200ms", Handler(kind="sleep", duration_ms=200)),
        ("cpu:5ms", Handler(kind="cpu", duration_ms=5)),
    ],
)
def test_a_handler_is_read_as_it_is_written(text: str, meant: Handler) -> None:
    assert read_handler(text) == meant


@pytest.mark.parametrize(
    "wrong",
    [
        {"handler": "sleep:200"},
        {"handler": "noop:5ms"},
        {"duration_s": 90},
        {"slots": 1, "executors": 2},
        {"warmup_s": 180},
    ],
)
def test_parameters_that_contradict_each_other_are_refused(wrong: dict[str, int | str]) -> None:
    spec = SteadySpec(**{"schedules": 600, "duration_s": 180, **wrong})  # type: ignore[arg-type] # wrong on purpose
    with pytest.raises(Usage):
        spec.check()


def fires_of(trigger: Trigger) -> list[int]:
    fires = []
    at_us = trigger.next_us(AT_US - 1)
    while at_us is not None:
        fires.append(at_us)
        at_us = trigger.next_us(at_us)
    return fires


def test_every_schedule_fires_once_a_period_and_not_outside_the_window() -> None:
    fires = [fires_of(trigger) for trigger in triggers(SPEC, AT_US)]
    assert all(len(mine) == SPEC.fires_each for mine in fires)
    assert all(AT_US <= fire_us < AT_US + 180 * SECOND_US for mine in fires for fire_us in mine)
    assert len({mine[0] for mine in fires}) == SPEC.schedules == SPEC.firing


def test_of_a_window_shorter_than_a_period_only_a_part_fires() -> None:
    spec = SteadySpec(schedules=600, duration_s=6)
    fires = [fires_of(trigger) for trigger in triggers(spec, AT_US)]
    assert (len(fires), spec.fires_each, spec.rate) == (spec.firing, 1, 10.0)
    assert [len(mine) for mine in fires] == [1] * 60
    assert (still_trigger(spec, AT_US).next_us(AT_US) or 0) > AT_US + 3_600 * SECOND_US


def started(*lags_us: int) -> Punctuality:
    starts = [Start(0, 1, AT_US, 0, 1, AT_US, AT_US + lag_us) for lag_us in lags_us]
    return punctuality(starts, since_us=AT_US, until_us=AT_US + 60 * SECOND_US, period_us=60 * SECOND_US)


def test_each_clause_of_the_objective_can_be_failed() -> None:
    aligned = SteadySpec(schedules=600, duration_s=180, phase="aligned")
    punctual = started(*[ON_TIME_US] * 1_000)
    assert unmet(SPEC, punctual, missed=0) == unmet(aligned, punctual, missed=0) == []
    one_late = started(*[1] * 999, ON_TIME_US + 1)
    assert unmet(SPEC, one_late, missed=0) == []
    assert [clause.split(":")[0] for clause in unmet(SPEC, started(1, ON_TIME_US + 1), missed=1)] == [
        "missed",
        "on time",
    ]
    assert [clause.split(":")[0] for clause in unmet(aligned, started(60 * SECOND_US), missed=0)] == ["cycle", "p99"]


def test_second_attempts_and_fires_of_the_warm_up_do_not_count_for_punctuality() -> None:
    late = Start(0, 1, AT_US, 0, 2, AT_US, AT_US + 9 * SECOND_US)
    warm = Start(0, 1, AT_US - 1, 0, 1, AT_US - 1, AT_US + 9 * SECOND_US)
    assert (
        punctuality(
            [late, warm, FIRST], since_us=AT_US, until_us=AT_US + 60 * SECOND_US, period_us=60 * SECOND_US
        ).starts
        == 1
    )


def test_resources_have_a_mean_and_a_peak_and_sum_over_the_processes_of_a_part() -> None:
    samples = [
        Sample(
            at_us=second * SECOND_US,
            cpu_us={"node_1": second * 100_000, "node_2": max(0, second - 5) * 1_000_000},
            rss_bytes={"node_1": 1_048_576, "node_2": 2_097_152},
            disk_writes=second * 10,
            disk_reads=0,
            wal_bytes=second * 7,
            open_entries=second,
            oldest_us=second,
            table_bytes=0,
            dead_rows=0,
        )
        for second in range(11)
    ]
    found = resources(samples)
    assert found["node_cores"] == pytest.approx(0.6)
    assert found["node_cores_peak"] == pytest.approx(1.1)
    assert (found["node_rss_mib"], found["iops"], found["wal_bytes_per_s"], found["open_max"]) == (3, 10, 7, 10)
    assert resources(samples[:5]) == {}


#: Two schedules of a window of one period; one fired, one was skipped.
SOUND = f"""
INSERT INTO schedule VALUES (7, 3, 'bench', 'steady-0', '', 1, 1, 1, 1, 'exhausted', NULL, 1, 1);
INSERT INTO schedule VALUES (8, 3, 'bench', 'steady-1', '', 1, 1, 1, 1, 'exhausted', NULL, 1, 1);
INSERT INTO cursor VALUES (3, 7, {AT_US + 1}, NULL, 5, 1, 1, 1);
INSERT INTO cursor VALUES (3, 8, {AT_US + 1}, NULL, 5, 1, 1, 1);
INSERT INTO ledger VALUES (3, 8, {AT_US}, {AT_US}, 1, 'overlap');
INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, flags, origin,
    created_us, finished_us) VALUES (3, 7, {AT_US}, 0, 1, 10, 1, {AT_US}, 5, 0, 0, {AT_US + 1}, {AT_US + 2});
"""
VALUES: dict[str, int | str] = {
    "jobs": 2, "namespace": "bench", "prefix": "steady-", "start_us": AT_US, "end_us": AT_US + 60 * SECOND_US,
    "fires": 2, "fires_each": 1, "shards": 32,
}  # fmt: skip
PLANTED = {
    "a fire is lost": ("DELETE FROM ledger", {"fires_with_an_outcome", "schedules_that_fired_otherwise"}),
    "one stands in for another": ("UPDATE ledger SET schedule_id = 7", {"schedules_that_fired_otherwise"}),
    "a fire outside": ("UPDATE execution SET fire_us = fire_us - 1", {"fires_outside_the_window"}),
    "a cursor stays": (f"UPDATE cursor SET due_us = {AT_US} WHERE schedule_id = 8", {"cursors_still_due"}),
    "an execution failed": ("UPDATE execution SET state = 11", {"executions_not_succeeded"}),
    "a second attempt": ("UPDATE execution SET attempt = 2", {"second_attempts"}),
}  # fmt: skip


@pytest.mark.parametrize("fault", ["", *PLANTED])
async def test_a_planted_fault_turns_its_check_red(tmp_path: Path, fault: str) -> None:
    # I4: a fire time without an outcome, or with two, is seen.
    path = tmp_path / "steady.db"
    place = Place(dsn=f"sqlite:///{path}")
    await (await open_fresh(place, shards=32)).close()
    statement, seen = PLANTED.get(fault, ("", set()))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SOUND + statement)
    assert [len(rows) async for _, rows in read_executions(place, 5)] == [0, 0, 0, 1, 0]
    assert {one.name for one in await check(place, "steady", VALUES) if not one.passed} == seen


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_small_load_starts_on_time_and_is_reconciled(
    tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # I1, I2, I4, I6: store and ledgers agree on every fire time.
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")
    code, lines = call("run", "steady", "--size", "smoke", "--backend", backend, "--out", str(tmp_path))
    if too_busy(code, lines):
        return
    result = read_result(tmp_path)
    assert code in {0, 7}, lines  # On a busy machine a start may be late, but never lost.
    assert result.repeats[0].figures["starts"] == result.actual["schedules_that_fire"] == 30
    window = result.repeats[0].attribution[0]
    assert sum(stage.exclusive_us for stage in window.stages) == window.wall_us
    assert {"compute", "wait_executors", "commit_plan"} <= result.repeats[0].stages_us.keys()
    assert all(one.passed for one in result.repeats[0].checks)
