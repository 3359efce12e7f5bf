"""Reasons: a fire says why it is where it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.jitter import jitter_us
from luciole.model.trigger import Trigger, calendar_every, cron, every, once

SECOND_US = 1_000_000
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def reasons(trigger: Trigger, after: str, n: int = 2) -> list[tuple[str, ...]]:
    return [fire.reasons for fire in trigger.explain(datetime.fromisoformat(after).replace(tzinfo=UTC), n)]


def test_a_fire_says_why_it_is_where_it_is() -> None:
    york = "America/New_York"
    gap = "2026-03-07T12:00"
    assert reasons(cron("30 2 * * *", tz=york), gap) == [("gap: 02:30 does not exist, moved to 03:00",), ()]
    assert reasons(cron("30 2 * * *", tz=york, gap="shift"), gap) == [
        ("gap: 02:30 does not exist, moved to 03:30",),
        (),
    ]
    assert reasons(cron("30 2 * * *", tz=york, gap="skip"), gap) == [
        ("gap: 02:30 on 2026-03-08 does not exist, skipped",),
        (),
    ]
    assert reasons(cron("0 2,3 * * *", tz=york), gap, 1) == [
        ("gap: 02:00 does not exist, moved to 03:00, together with the regular one",)
    ]
    assert reasons(cron("*/10 2 * * *", tz=york), gap, 1) == [
        ("gap: 02:00, 02:10, 02:20 and 3 more do not exist, moved to 03:00",)
    ]
    assert reasons(cron("0,30 2 * * *", tz=york), gap, 1) == [("gap: 02:00 and 02:30 do not exist, moved to 03:00",)]
    assert reasons(cron("15 2 * * *", tz="Australia/Lord_Howe"), "2026-10-03T12:00", 1) == [
        ("gap: 02:15 does not exist, moved to 02:30",)
    ]
    fold = "2026-10-31T12:00"
    assert reasons(cron("30 1 * * *", tz=york, fold="both"), fold) == [
        ("fold: first of two 01:30",),
        ("fold: second of two 01:30",),
    ]
    assert reasons(cron("30 1 * * *", tz=york, fold="second"), fold) == [("fold: second of two 01:30",), ()]
    assert reasons(cron("0 12 * * *", tz=york), fold, 1) == [()]
    assert reasons(every("1h"), fold, 1) == [()]
    assert reasons(once(NOON), fold) == [()]


def test_a_fire_shows_the_clock_of_its_zone() -> None:
    def local(tz: str, after: datetime) -> str:
        return cron("30 12 * * *", tz=tz).explain(after, 1)[0].local

    assert local("Asia/Kathmandu", NOON) == "2026-12-02 12:30:00+05:45"
    assert local("America/St_Johns", NOON) == "2026-12-01 12:30:00-03:30"
    # Before 1937 the clocks of Amsterdam stood 19 minutes and 32 seconds ahead.
    assert local("Europe/Amsterdam", datetime(1930, 1, 1, tzinfo=UTC))[:16] == "1930-01-01 12:30"
    assert local("Africa/Monrovia", datetime(1930, 1, 1, tzinfo=UTC)) == "1930-01-01 12:30:00-00:44:30"
    (fire,) = every("1500ms").explain(NOON, 1)
    assert fire.local == "2026-12-01 12:00:01.500000+00:00"
    assert fire.fire == NOON + timedelta(seconds=1.5)


def test_jitter_is_explained_as_a_bound_or_for_one_schedule() -> None:
    trigger = every("1m", jitter="10s")
    (fire,) = trigger.explain(NOON, 1)
    assert fire.reasons == ("jitter: due less than 10 s later",)
    assert fire.due_us == fire.fire_us
    (fire,) = trigger.explain(NOON, 1, schedule_id=7)
    offset_us = jitter_us(10 * SECOND_US, 7, fire.fire_us)
    assert fire.due_us == fire.fire_us + offset_us
    assert fire.reasons == (f"jitter: due {offset_us / SECOND_US:g} s later",) or len(fire.reasons) == 1


@pytest.mark.parametrize("n", [-1, 1_001, True, 1.5, None, "5"])
def test_a_number_of_fires_is_bounded(n: object) -> None:
    with pytest.raises(InvalidValue, match="n: write a whole number of fires from 0 to 1000"):
        every("1m").explain(NOON, n)  # type: ignore[arg-type]
    assert len(every("1m").explain(NOON, limits.EXPLAINED_MAX)) == 1_000
    assert once(NOON).explain(NOON, 5) == []


def test_a_trigger_reads_as_a_line() -> None:
    lines = [
        (cron("30 2 ? * mon", tz="Europe/Berlin"), "30 2 * * MON Europe/Berlin"),
        (every("1500ms"), "every 1.5 s"),
        (once(NOON), "once at 2026-12-01 12:00:00+00:00"),
        (calendar_every(months=1, at="09:00"), "every month at 09:00:00 from 2024-01-01 UTC"),
        (calendar_every(weeks=2, tz="Asia/Tokyo"), "every 14 days at 00:00:00 from 2024-01-01 Asia/Tokyo"),
    ]
    assert [str(trigger) for trigger, _ in lines] == [line for _, line in lines]
