"""Jitter and the spacing that bounds it; and the memo, which knows neither."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luciole.errors import InvalidTrigger
from luciole.model.jitter import jitter_us
from luciole.model.next_fire_memo import NextFireMemo
from luciole.model.trigger import Trigger, cron, once

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
NOON_US = round(NOON.timestamp()) * SECOND_US
NIGHTLY = cron("30 2 * * *", tz="Europe/Berlin")


@given(st.integers(1, 10**12), st.integers(0, 2**63 - 1), st.integers(-(2**62), 2**62))
def test_jitter_lies_between_nothing_and_its_bound(bound_us: int, schedule_id: int, fire_us: int) -> None:
    offset_us = jitter_us(bound_us, schedule_id, fire_us)
    assert 0 <= offset_us < bound_us
    assert jitter_us(bound_us, schedule_id, fire_us) == offset_us
    assert jitter_us(0, schedule_id, fire_us) == 0


def test_jitter_is_the_same_for_ever() -> None:
    """Due times stand in databases: another offset for the same fire would move them."""
    offsets = [jitter_us(60 * SECOND_US, schedule_id, NOON_US) for schedule_id in (1, 2, 2**40)]
    assert offsets == [13_059_030, 7_147_770, 20_699_843]


@pytest.mark.parametrize("across", ["schedules", "fires"])
def test_jitter_spreads_evenly(across: str) -> None:
    """10,000 neighbours over 20 parts of the bound: 500 each would be perfect."""
    parts = [0] * 20
    for k in range(10_000):
        schedule_id, fire_us = (k, NOON_US) if across == "schedules" else (7, NOON_US + k * 60 * SECOND_US)
        parts[jitter_us(20 * SECOND_US, schedule_id, fire_us) // SECOND_US] += 1
    assert min(parts) > 350
    assert max(parts) < 650


def test_jitter_never_changes_the_order_of_fires() -> None:
    """In the night of the gap 02:30 fires half an hour early: that, and not a day, bounds the jitter."""
    trigger = cron("30 2 * * *", tz="America/New_York", jitter="23h29m")
    assert trigger.least_spacing_us == 23.5 * HOUR_US
    with pytest.raises(InvalidTrigger, match="jitter: 84600 s is not smaller than the least time between two fires"):
        cron("30 2 * * *", tz="America/New_York", jitter="23h30m")
    assert cron("30 2,3 * * *", tz="America/New_York").least_spacing_us == HOUR_US / 2


@pytest.mark.parametrize(
    ("expression", "options", "spacing_s"),
    [
        ("* * * * *", {}, 60),
        ("*/7 * * * *", {}, 240),
        ("*/7 5 * * *", {}, 420),
        ("0,59 * * * *", {}, 60),
        ("0 0,23 * * *", {}, 3_600),
        ("0 5 * * *", {}, 86_400),
        ("0 5 * * 1-5", {}, 86_400),
        ("0 5 * * mon,wed", {}, 2 * 86_400),
        ("0 5 28,1 * *", {}, 86_400),
        ("0 5 28,2 * *", {}, 2 * 86_400),
        ("0 5 L * *", {}, 28 * 86_400),
        ("0 5 29 2 *", {}, 1_461 * 86_400),
        ("0,20 * * * * *", {"seconds": "first"}, 20),
        ("0,50 59 * * * *", {"seconds": "first"}, 50),
        ("30 2 * * *", {"tz": "Europe/Berlin"}, 23.5 * 3_600),
        ("30 2 * * *", {"tz": "Europe/Berlin", "gap": "shift"}, 23 * 3_600),
        ("30 2 * * *", {"tz": "Europe/Berlin", "gap": "skip"}, 24 * 3_600),
        ("30 2 * * *", {"tz": "Europe/Berlin", "fold": "both"}, 3_600),
        ("10,40 2,3 * * *", {"tz": "Europe/Berlin", "gap": "shift"}, 1_800),
        ("10 2 * * *", {"tz": "Australia/Lord_Howe", "fold": "both"}, 23 * 3_600 + 40 * 60),
        ("45 1 * * *", {"tz": "Australia/Lord_Howe", "fold": "both"}, 1_800),
        # 02:10 moves to 02:40, five minutes before 02:45.
        ("10,45 2 * * *", {"tz": "Australia/Lord_Howe", "gap": "shift"}, 300),
        ("50 2,3 * * *", {"tz": "Europe/Berlin", "gap": "shift"}, 3_600),
    ],
)
def test_the_least_spacing_knows_days_and_changes(expression: str, options: dict[str, str], spacing_s: float) -> None:
    assert cron(expression, **options).least_spacing_us == spacing_s * SECOND_US  # type: ignore[arg-type]


class CountedTrigger:
    """A trigger that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        return getattr(NIGHTLY, name)

    def next_us(self, after_us: int) -> int | None:
        self.asked += 1
        return NIGHTLY.next_us(after_us)


def test_a_memo_asks_once_and_stays_within_its_bound() -> None:
    memo, trigger = NextFireMemo(entries_max=100), CountedTrigger()
    asked: Trigger = trigger  # type: ignore[assignment]
    for _ in range(3):
        assert [memo.next_us(asked, k) for k in range(40)] == [NIGHTLY.next_us(k) for k in range(40)]
    assert trigger.asked == 40
    for k in range(1_000):
        memo.next_us(asked, k)
        assert len(memo) <= 100
    assert trigger.asked == 1_000
    for k in (940, *range(960, 1_000)):  # What was asked last is still known, in the older half too.
        memo.next_us(asked, k)
    assert trigger.asked == 1_000


def test_a_memo_knows_triggers_by_their_text_and_remembers_that_there_is_none() -> None:
    memo = NextFireMemo()
    assert memo.next_us(cron("0 0 * * *"), NOON_US) == memo.next_us(cron("0 0 ? * *"), NOON_US)
    assert len(memo) == 1
    assert memo.next_us(once(NOON), NOON_US) is None
    assert memo.next_us(once(NOON), NOON_US) is None
    assert len(memo) == 2
