"""The shared daylight-saving cases, and cases of our own for the default policies."""

import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from luciole.model.trigger import cron

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent.parent / "cases" / "cron.json").read_text("utf-8"))


def case_id(case: dict[str, Any]) -> str:
    return f"{case['cron']} {case['tz']} {case['why']}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_a_case_fires_at_its_instants(case: dict[str, Any]) -> None:
    trigger = cron(case["cron"], tz=case["tz"], gap=case["gap"], fold=case["fold"])
    wanted = [datetime.fromisoformat(text) for text in case["fires"]]
    found: list[datetime | None] = [trigger.next(datetime.fromisoformat(case["after"]))]
    while len(found) < len(wanted) and found[-1] is not None:
        found.append(trigger.next(found[-1]))
    assert found == wanted


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_a_case_is_walked_back_and_counted(case: dict[str, Any]) -> None:
    trigger = cron(case["cron"], tz=case["tz"], gap=case["gap"], fold=case["fold"])
    wanted = [datetime.fromisoformat(text) for text in case["fires"]]
    for earlier, later in pairwise(wanted):
        assert trigger.previous(later) == earlier
    first_us, *_, last_us = (round(moment.timestamp() * 1_000_000) for moment in wanted)
    assert trigger.count(first_us - 1, last_us) == len(wanted)


@pytest.mark.parametrize(
    ("expression", "tz", "after", "fires"),
    [
        # All 24 hours by name are as open as `*`: silent for no real hour.
        ("30 0-23 * * *", "America/New_York", "2026-11-01T04:45", ["11-01T05:30", "11-01T06:30", "11-01T07:30"]),
        ("30 0-23 * * *", "America/New_York", "2026-03-08T06:00", ["03-08T06:30", "03-08T07:30", "03-08T08:30"]),
        ("0 0-11,12-23 * * *", "Europe/Berlin", "2026-10-25T00:30", ["10-25T01:00", "10-25T02:00", "10-25T03:00"]),
        # One hour less is a fixed set of hours: the gap moves, the fold fires once.
        ("30 1-23 * * *", "America/New_York", "2026-11-01T04:45", ["11-01T05:30", "11-01T07:30", "11-01T08:30"]),
        ("30 0-22 * * *", "America/New_York", "2026-03-08T06:00", ["03-08T06:30", "03-08T07:00", "03-08T07:30"]),
        # A stepped star is open too.
        ("30 */2 * * *", "America/New_York", "2026-03-08T05:00", ["03-08T05:30", "03-08T08:30", "03-08T10:30"]),
        ("30 1-23/2 * * *", "America/New_York", "2026-11-01T04:00", ["11-01T05:30", "11-01T08:30", "11-01T10:30"]),
        # A day field that starts with a star does not restrict, so both must match ...
        ("0 0 */2 * *", "UTC", "2026-01-29T12:00", ["01-31T00:00", "02-01T00:00", "02-03T00:00"]),
        ("0 0 */2 * mon", "UTC", "2026-06-01T00:00", ["06-15T00:00", "06-29T00:00", "07-13T00:00"]),
        ("0 0 13 * */5", "UTC", "2026-01-01T00:00", ["02-13T00:00", "03-13T00:00", "09-13T00:00"]),
        # ... while a range with a step does.
        ("0 0 1-31/2 * mon", "UTC", "2026-06-01T00:00", ["06-03T00:00", "06-05T00:00", "06-07T00:00"]),
    ],
)
def test_default_policies_and_day_fields(expression: str, tz: str, after: str, fires: list[str]) -> None:
    trigger = cron(expression, tz=tz)
    moment: datetime | None = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = []
    for _ in fires:
        assert moment is not None
        moment = trigger.next(moment)
        found.append(f"{moment:%m-%dT%H:%M}")
    assert found == fires


@pytest.mark.parametrize(
    ("field", "month", "day"),
    [
        ("15W", "2026-08", 14),  # a Saturday: the Friday before
        ("15W", "2026-11", 16),  # a Sunday: the Monday after
        ("15W", "2026-10", 15),
        ("1W", "2026-08", 3),  # Saturday the 1st: not into July
        ("1W", "2026-02", 2),
        ("31W", "2026-05", 29),  # Sunday the 31st: not into June
        ("31W", "2026-10", 30),
        ("LW", "2026-02", 27),
        ("LW", "2026-05", 29),
        ("LW", "2026-06", 30),
        ("L", "2028-02", 29),
        ("L-3", "2026-02", 25),
    ],
)
def test_a_weekday_near_a_day_stays_in_its_month(field: str, month: str, day: int) -> None:
    start = datetime.fromisoformat(f"{month}-01T00:00:00+00:00")
    fire = cron(f"0 12 {field} * *").next(start)
    assert fire is not None
    assert f"{fire:%Y-%m-%d}" == f"{month}-{day:02}"
