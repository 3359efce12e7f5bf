"""A run says what it was asked for only where that took effect: each check of it turns red when it did not."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from luciole.bench.arrivals import Arrived, arrived_as_asked, asked, drawn_as_asked, rate_missed
from luciole.bench.backends import Place, sqlite_path
from luciole.bench.chaos.measure import ChaosSpec, happened
from luciole.bench.result import Check
from luciole.bench.steady.effective import effective
from luciole.bench.steady.spec import SteadySpec
from luciole.bench.stores import open_fresh
from luciole.limits import MS_US, SECOND_US
from luciole.runtime.chance import seeded_chance

RATE, SPAN_US, SEED = 200, 5 * SECOND_US, 7
WANTED = asked(RATE, SPAN_US, SEED)


def failed(checks: list[Check]) -> list[str]:
    return [check.name for check in checks if not check.passed]


def test_requests_that_come_as_they_were_asked_for_pass() -> None:
    assert failed(arrived_as_asked(asked(RATE, SPAN_US, SEED), WANTED)) == []
    assert rate_missed(asked(RATE, SPAN_US, SEED), WANTED) == []
    assert WANTED.count == pytest.approx(RATE * SPAN_US / SECOND_US, rel=0.2)


@pytest.mark.parametrize(
    ("found", "red"),
    [
        (asked(RATE // 2, SPAN_US, SEED), ["requests_of_the_seed", "instants_of_the_seed"]),
        (asked(RATE, SPAN_US // 2, SEED), ["requests_of_the_seed", "instants_of_the_seed"]),
        (asked(RATE, SPAN_US, SEED + 1), ["requests_of_the_seed", "instants_of_the_seed"]),
        (replace(WANTED, marks=WANTED.marks + 1), ["instants_of_the_seed"]),
        (Arrived(), ["requests_of_the_seed", "instants_of_the_seed"]),
    ],
    ids=["half the rate", "half the length", "another seed", "other instants", "none at all"],
)
def test_another_rate_length_or_seed_than_was_asked_for_is_red(found: Arrived, red: list[str]) -> None:
    assert failed(arrived_as_asked(found, WANTED)) == red


def test_requests_that_leave_more_slowly_than_they_were_asked_for_make_a_run_invalid() -> None:
    slow = replace(WANTED, last_us=2 * WANTED.last_us)
    assert failed(arrived_as_asked(slow, WANTED)) == []
    assert rate_missed(slow, WANTED) in (
        [f"requests left at {percent} % of the rate that was asked for"] for percent in (49, 50)
    )


def test_what_chance_drew_beside_the_instants_is_of_the_seed_too() -> None:
    assert failed(arrived_as_asked(WANTED, asked(RATE, SPAN_US, SEED, draws=True))) != []


def test_pauses_of_another_seed_are_red() -> None:
    chance = seeded_chance(SEED)
    drawn = [chance() for _ in range(10)]
    assert drawn_as_asked("pauses", drawn, SEED).passed
    assert not drawn_as_asked("pauses", drawn, SEED + 1).passed


def test_a_fault_that_was_asked_for_and_did_not_happen_is_red() -> None:
    spec = ChaosSpec(
        rate=1, period_s=1, handler_ms=1, node_kills=2, executor_kills=3, freezes=1, disconnects=1, slots=1, shards=1
    )
    seen = {"nodes_killed": 2, "executors_killed": 3, "nodes_frozen": 2, "disconnects": 1}
    assert failed(happened(spec, seen)) == []
    assert [failed(happened(spec, {**seen, name: count - 1})) for name, count in seen.items()] == [
        [name] for name in seen
    ]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(dsn=f"sqlite:///{tmp_path / 'effective.db'}")


DUE_US = 1_000_000_000


async def checked(place: Place, spec: SteadySpec, *, took_us: int, ahead_us: int) -> list[str]:
    """Return what fails of a store with two executions: one that was on time and took a second, and this one."""
    store = await open_fresh(place, shards=4)
    await store.close()
    rows: Iterator[tuple[int, int, int]] = iter([(1, SECOND_US, 0), (2, took_us, ahead_us)])
    with closing(sqlite3.connect(sqlite_path(place.dsn))) as connection, connection:
        connection.executemany(
            "INSERT INTO execution (shard, schedule_id, fire_us, part, job_id, state, attempt, due_us, priority, "
            "flags, origin, created_us, started_us, finished_us) "
            "VALUES (0, ?1, ?2, 0, 1, 3, 1, ?2, 0, 0, 0, ?2 - ?4, ?2, ?2 + ?3)",
            [(number, DUE_US, took, ahead) for number, took, ahead in rows],
        )
    return failed(await effective(place, spec))


@pytest.mark.parametrize(
    ("handler", "plan_ahead_us", "took_us", "ahead_us", "red"),
    [
        ("sleep:200ms", 0, 200 * MS_US, 0, []),
        ("sleep:200ms", 0, 190 * MS_US, 0, ["handler_us_least"]),
        ("noop", 0, 0, 0, []),
        ("noop", 0, 0, 1, ["executions_planned_ahead", "executions_planned_too_far_ahead"]),
        ("noop", SECOND_US, 0, SECOND_US, []),
        ("noop", SECOND_US, 0, 0, ["executions_planned_ahead"]),
        ("noop", SECOND_US, 0, SECOND_US + 1, ["executions_planned_too_far_ahead"]),
    ],
)
async def test_handlers_that_are_shorter_and_plans_that_are_not_as_far_ahead_as_asked_for_are_red(
    place: Place, handler: str, plan_ahead_us: int, took_us: int, ahead_us: int, red: list[str]
) -> None:
    spec = SteadySpec(schedules=2, duration_s=1, handler=handler, plan_ahead_us=plan_ahead_us)
    assert await checked(place, spec, took_us=took_us, ahead_us=ahead_us) == red
