"""Where a cursor belongs when the rules of its zone have changed; the rules here are real, the cursors misplaced."""

import pytest

from luciole.limits import DAY_US, HOUR_US, MINUTE_US
from luciole.model.instant import to_datetime
from luciole.model.realigning import is_newer, realigned
from luciole.model.schedule import Cursor
from luciole.model.trigger import Trigger, cron, every

#: 02:30 in Berlin on a day in winter, as a cursor that is right.
DAILY = cron("30 2 * * *", tz="Europe/Berlin")
RIGHT_US = DAILY.next_us(1_900_000_000_000_000) or 0


def cursor(fire_us: int) -> Cursor:
    return Cursor(
        shard=1, schedule_id=7, revision=3, fire_us=fire_us, due_us=fire_us, trigger_id=1, job_id=1, policy_id=0
    )


@pytest.mark.parametrize("shift_us", [-3 * HOUR_US, -HOUR_US, HOUR_US, 11 * HOUR_US])
def test_a_fire_time_that_rules_shifted_is_the_nearest_of_the_new_ones(shift_us: int) -> None:
    """It is neither fired twice, an hour apart, nor left out for a day, whether it has passed meanwhile or not."""
    found = realigned(cursor(RIGHT_US + shift_us), DAILY)
    assert found is not None
    assert (found.fire_us, found.due_us) == (RIGHT_US, RIGHT_US)
    assert found.cursor.revision == 3


@pytest.mark.parametrize("trigger", [DAILY, cron("*/30 * * * *", tz="Asia/Kolkata"), every("90s")])
def test_a_fire_time_that_is_right_stays(trigger: Trigger) -> None:
    fire_us = trigger.next_us(RIGHT_US)
    assert fire_us is not None
    assert realigned(cursor(fire_us), trigger) is None


def test_what_knows_no_zone_is_not_touched() -> None:
    """A run that was moved to an instant by hand lies on no grid."""
    assert realigned(cursor(RIGHT_US + 1), every("90s")) is None


def test_jitter_belongs_to_the_new_fire_time() -> None:
    found = realigned(cursor(RIGHT_US + HOUR_US), cron("30 2 * * *", tz="Europe/Berlin", jitter="10m"))
    assert found is not None
    assert found.fire_us == RIGHT_US
    assert 0 <= found.due_us - found.fire_us < 10 * MINUTE_US


def test_a_last_fire_time_is_not_lost_when_it_was_shifted_back() -> None:
    last = cron("30 2 * * *", tz="Europe/Berlin", end=to_datetime(RIGHT_US))
    assert last.next_us(RIGHT_US) is None
    found = realigned(cursor(RIGHT_US + HOUR_US), last)
    assert found is not None
    assert found.fire_us == RIGHT_US
    assert RIGHT_US - HOUR_US < found.fire_us < RIGHT_US + DAY_US


def test_versions_are_compared_by_their_numbers() -> None:
    assert is_newer("2026.10", "2026.2")
    assert is_newer("2026.1", "2025.3")
    assert not is_newer("2026.1", "2026.1")
    assert not is_newer("2025.3", "2026.1")
