"""Intervals and single instants: a grid that never drifts, counted without being listed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luciole.errors import InvalidTrigger
from luciole.model.jitter import jitter_us
from luciole.model.trigger import every, once, trigger_from_spec
from tests.model.work import lines_run

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
NOON_US = round(NOON.timestamp()) * SECOND_US

INSTANTS = st.integers(-(10**15), 7 * 10**15)


def test_jitter_never_adds_up() -> None:
    """1,000 fires of a minute with a jitter of 10 s take 1,000 minutes, give or take one jitter."""
    trigger = every("1m", jitter="10s")
    fire_us, dues = NOON_US, []
    for _ in range(1_000):
        following = trigger.next_us(fire_us)
        assert following is not None
        fire_us = following
        dues.append(fire_us + jitter_us(trigger.jitter_us, 7, fire_us))
    assert fire_us == NOON_US + 1_000 * 60 * SECOND_US
    assert all(50 * SECOND_US < later - earlier < 70 * SECOND_US for earlier, later in pairwise(dues))
    assert len({due % (60 * SECOND_US) for due in dues}) > 990


def test_six_hours_of_seconds_are_counted_without_being_listed() -> None:
    trigger = every("1s")
    assert trigger.count(NOON_US - 1, NOON_US + 6 * HOUR_US) == 21_601
    short = lines_run(lambda: trigger.count(NOON_US, NOON_US + SECOND_US))
    assert lines_run(lambda: trigger.count(NOON_US, NOON_US + 100 * 365 * 24 * HOUR_US)) == short


@given(st.integers(1_000, 10**13), INSTANTS, INSTANTS)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_grid_has_its_anchor_and_equal_steps(interval_us: int, anchor_us: int, after_us: int) -> None:
    anchor = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=anchor_us)
    trigger = every(timedelta(microseconds=interval_us), anchor=anchor)
    fire_us = trigger.next_us(after_us)
    assert fire_us is not None
    assert after_us < fire_us <= after_us + interval_us
    assert (fire_us - anchor_us) % interval_us == 0
    assert trigger.previous_us(fire_us) == fire_us - interval_us
    assert trigger.next_us(fire_us) == fire_us + interval_us
    assert trigger.count(after_us, fire_us - 1) == 0
    assert trigger.count(after_us, fire_us + 41 * interval_us) == 42
    assert trigger.count(fire_us, after_us) == 0


def test_start_and_end_are_fires_themselves() -> None:
    trigger = every("30s", start=NOON, end=NOON + timedelta(minutes=1))
    fires = [NOON, NOON + timedelta(seconds=30), NOON + timedelta(minutes=1)]
    assert trigger.next(NOON - timedelta(days=400)) == fires[0]
    assert [trigger.next(fire) for fire in fires] == [*fires[1:], None]
    assert trigger.previous(NOON + timedelta(days=400)) == fires[-1]
    assert [trigger.previous(fire) for fire in fires] == [None, *fires[:-1]]
    assert trigger.count(0, 2 * NOON_US) == 3


def test_an_instant_fires_once() -> None:
    trigger = once(NOON)
    assert trigger.next(NOON - timedelta(microseconds=1)) == NOON
    assert trigger.next(NOON) is None
    assert trigger.previous(NOON) is None
    assert trigger.previous(NOON + timedelta(microseconds=1)) == NOON
    assert trigger.count(NOON_US - 1, NOON_US) == 1
    assert trigger.count(NOON_US, 2 * NOON_US) == 0
    assert trigger.jitter_us == 0


def test_an_instant_may_be_told_in_any_zone() -> None:
    there = NOON.astimezone(tz=None)
    assert once(there) == once(NOON)
    assert once(NOON) != once(NOON + timedelta(microseconds=1))


@given(st.integers(-(2**70), 2**70))
def test_absurd_instants_get_an_answer(instant_us: int) -> None:
    """A clock set back a year or forward to 2200 asks for what is far away."""
    trigger = every("7h")
    following, before = trigger.next_us(instant_us), trigger.previous_us(instant_us)
    assert following is None or following > instant_us
    assert before is None or before < instant_us
    assert trigger.count(instant_us, instant_us + HOUR_US) in (0, 1)


@pytest.mark.parametrize(
    ("interval", "interval_us"),
    [
        ("30s", 30 * SECOND_US),
        ("1h30m", 90 * 60 * SECOND_US),
        ("1h 30m", 90 * 60 * SECOND_US),
        ("1.5h", 90 * 60 * SECOND_US),
        ("500ms", 500_000),
        ("1500us", 1_500),
        ("2d", 48 * HOUR_US),
        ("1w", 7 * 24 * HOUR_US),
        (90, 90 * SECOND_US),
        (0.25, 250_000),
        (timedelta(minutes=5), 300 * SECOND_US),
    ],
)
def test_an_interval_is_a_duration(interval: str | float | timedelta, interval_us: int) -> None:
    trigger = every(interval)
    assert trigger.interval_us == trigger.least_spacing_us == interval_us
    assert trigger_from_spec(trigger.to_spec()) == trigger


@pytest.mark.parametrize(
    "interval",
    [
        0, -1, "0s", "", " ", "5", "5 minutes", "5q", "-5s", "1e3s", "s", "1m x", "1" * 10_000, "999us", "101000d",
        float("nan"), float("inf"), 1e308, 10**400, True, None, [], b"5s", timedelta(days=-1), timedelta(days=99_999),
    ],
    ids=lambda value: ascii(value)[:20],
)  # fmt: skip
def test_what_is_no_interval_is_refused(interval: object) -> None:
    with pytest.raises(InvalidTrigger, match=r"\Ainterval: .*write"):
        every(interval)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["anchor", "start", "end"])
@pytest.mark.parametrize("moment", [datetime(2026, 1, 1), datetime(1850, 1, 1, tzinfo=UTC), "2026-01-01", 5])  # noqa: DTZ001 - naive on purpose
def test_a_moment_that_is_none_is_refused_by_field(field: str, moment: object) -> None:
    with pytest.raises(InvalidTrigger, match=rf"\A{field}: "):
        every("5m", **{field: moment})  # type: ignore[arg-type]
    with pytest.raises(InvalidTrigger, match=r"\Aat: "):
        once(moment)  # type: ignore[arg-type]


@pytest.mark.parametrize("jitter", ["30s", "31s", -1, "x"])
def test_a_jitter_is_smaller_than_the_interval(jitter: object) -> None:
    with pytest.raises(InvalidTrigger, match=r"\Ajitter: "):
        every("30s", jitter=jitter)  # type: ignore[arg-type]
    assert every("30s", jitter="29.999999s").jitter_us == 29_999_999


def test_bounds_without_a_fire_are_refused() -> None:
    with pytest.raises(InvalidTrigger, match=r"\Aend: it lies before start"):
        every("5m", start=NOON, end=NOON - timedelta(minutes=1))
    with pytest.raises(InvalidTrigger, match=r"\Aend: no fire time lies between"):
        every("1h", start=NOON + timedelta(minutes=1), end=NOON + timedelta(minutes=59))
