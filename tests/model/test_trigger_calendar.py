"""Calendar intervals: one wall time every so many months or days, whatever the clocks do."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luciole.errors import InvalidTrigger
from luciole.model.trigger import calendar_every, trigger_from_spec
from luciole.model.wall_trigger import WallTrigger
from tests.model.work import lines_run

DAY_US = 86_400_000_000


def local(trigger: WallTrigger, after: str, count: int) -> list[str]:
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    return [fire.local for fire in trigger.explain(moment, count)]


def test_a_month_without_the_day_fires_on_its_last_and_nothing_drifts() -> None:
    trigger = calendar_every(months=1, at="09:00", anchor="2026-01-31")
    days = [text[5:10] for text in local(trigger, "2025-12-31", 14)]
    assert days == (
        "12-31 01-31 02-28 03-31 04-30 05-31 06-30 07-31 08-31 09-30 10-31 11-30 12-31 01-31".split()  # noqa: SIM905 - a year at a glance
    )


def test_a_leap_day_comes_back() -> None:
    trigger = calendar_every(years=1, anchor=date(2024, 2, 29))
    assert [text[:10] for text in local(trigger, "2026-01-01", 4)] == [
        "2026-02-28", "2027-02-28", "2028-02-29", "2029-02-28",
    ]  # fmt: skip


def test_a_wall_time_stays_through_changes_of_offset() -> None:
    trigger = calendar_every(days=1, at="02:30", tz="Europe/Berlin")
    assert local(trigger, "2026-03-28", 3) == [
        "2026-03-28 02:30:00+01:00",
        "2026-03-29 03:00:00+02:00",
        "2026-03-30 02:30:00+02:00",
    ]
    assert local(trigger, "2026-10-24T12:00", 2) == ["2026-10-25 02:30:00+02:00", "2026-10-26 02:30:00+01:00"]


def test_gap_and_fold_are_policies_here_too() -> None:
    skipping = calendar_every(days=1, at="02:30", tz="Europe/Berlin", gap="skip", fold="both")
    assert local(skipping, "2026-03-28T12:00", 1) == ["2026-03-30 02:30:00+02:00"]
    assert local(skipping, "2026-10-24T12:00", 2) == ["2026-10-25 02:30:00+02:00", "2026-10-25 02:30:00+01:00"]
    shifting = calendar_every(days=1, at="02:30:15", tz="Europe/Berlin", gap="shift")
    assert local(shifting, "2026-03-28T12:00", 1) == ["2026-03-29 03:30:15+02:00"]


def test_a_day_that_its_zone_never_had_is_not_fired_twice() -> None:
    """Samoa went from 29 to 31 December 2011: both days' midnights are one instant, and one fire."""
    trigger = calendar_every(days=1, tz="Pacific/Apia")
    assert local(trigger, "2011-12-28T12:00", 3) == [
        "2011-12-29 00:00:00-10:00",
        "2011-12-31 00:00:00+14:00",
        "2012-01-01 00:00:00+14:00",
    ]


def test_steps_count_from_the_anchor_in_both_directions() -> None:
    trigger = calendar_every(weeks=2, anchor="2026-12-07")
    assert [text[:10] for text in local(trigger, "2026-11-01", 3)] == ["2026-11-09", "2026-11-23", "2026-12-07"]
    assert [text[:10] for text in local(calendar_every(weeks=1), "2026-12-01", 2)] == ["2026-12-07", "2026-12-14"]
    assert [text[:10] for text in local(calendar_every(months=3), "2026-12-01", 2)] == ["2027-01-01", "2027-04-01"]


@given(
    st.one_of(
        st.tuples(st.integers(1, 30), st.just(0)),
        st.tuples(st.just(0), st.integers(1, 400)),
    ),
    st.dates(date(1950, 1, 1), date(2100, 12, 31)),
    st.integers(0, 86_399),
    st.integers(-(10**15), 4 * 10**15),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_step_equals_plain_counting(steps: tuple[int, int], anchor: date, at_s: int, after_us: int) -> None:
    months, days = steps
    at = f"{at_s // 3_600:02}:{at_s // 60 % 60:02}:{at_s % 60:02}"
    trigger = calendar_every(months=months, days=days, at=at, anchor=anchor)
    found, moment = [], datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=after_us)
    for _ in range(5):
        following = trigger.next(moment)
        assert following is not None
        assert trigger.previous(following + timedelta(microseconds=1)) == following
        found.append(following)
        moment = following
    for fire in found:
        assert f"{fire:%H:%M:%S}" == at
        if days:
            assert (fire.date() - anchor).days % days == 0
        else:
            apart = (fire.year - anchor.year) * 12 + fire.month - anchor.month
            month_end = (fire.date().replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
            assert apart % months == 0
            assert fire.day == min(anchor.day, month_end.day)
    apart = (found[-1].year - found[0].year) * 12 + found[-1].month - found[0].month
    assert (found[-1] - found[0]).days == 4 * days or apart == 4 * months
    last_us = (found[-1] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert trigger.count(after_us, last_us) == 5


def test_a_century_is_counted_without_being_listed() -> None:
    trigger = calendar_every(days=1, at="12:00")
    assert trigger.count(0, 36_525 * DAY_US) == 36_525
    assert lines_run(lambda: trigger.count(0, 36_525 * DAY_US)) < 200


def test_the_least_spacing_knows_short_months_and_short_days() -> None:
    assert calendar_every(months=1).least_spacing_us == 28 * DAY_US
    assert calendar_every(years=1).least_spacing_us == 365 * DAY_US
    assert calendar_every(days=2).least_spacing_us == 2 * DAY_US
    assert calendar_every(days=1, tz="Europe/Berlin").least_spacing_us == 23 * DAY_US // 24


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "days: the step is empty"),
        ({"months": 1, "days": 1}, "days: a step is counted in months or in days"),
        ({"months": -1}, "months: write a whole number"),
        ({"days": True}, "days: write a whole number .* not a bool"),
        ({"days": 1.5}, "days: write a whole number .* not a float"),
        ({"weeks": "2"}, "weeks: write a whole number .* not '2'"),
        ({"years": 101}, "days: a step is at most 100 years"),
        ({"days": 10**100}, "days: write a whole number"),
        ({"days": 1, "at": "24:00"}, "at: '24:00' is no time of day"),
        ({"days": 1, "at": "9"}, "at: '9' is no time of day"),
        ({"days": 1, "at": "09:00:60"}, "at: '09:00:60' is no time of day"),
        ({"days": 1, "at": None}, "at: a NoneType is no time of day"),
        ({"days": 1, "anchor": "2026-02-30"}, "anchor: '2026-02-30' is no date"),
        ({"days": 1, "anchor": datetime(2026, 1, 1, tzinfo=UTC)}, "anchor: a datetime is no date"),
        ({"days": 1, "anchor": date(1, 1, 1)}, "anchor: 0001-01-01 is outside"),
        ({"days": 1, "anchor": 5}, "anchor: a int is no date"),
        ({"days": 1, "tz": "Mars/Olympus"}, "tz: 'Mars/Olympus' is no IANA zone"),
        ({"days": 1, "tz": 1}, "tz: a zone is named by text .* not by a int"),
        ({"days": 1, "gap": "before"}, "gap: 'before' is no policy"),
        ({"days": 1, "fold": []}, "fold: a list is no policy"),
        ({"days": 1, "jitter": "1d"}, "jitter: 86400 s is not smaller than the least time"),
    ],
)
def test_a_wrong_part_is_refused_by_field(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidTrigger, match=rf"\A{message}"):
        calendar_every(**options)  # type: ignore[arg-type]


def test_a_spec_holds_the_whole_rule() -> None:
    trigger = calendar_every(
        years=1, months=6, at="08:15", tz="Asia/Kathmandu", anchor="2025-05-31", jitter="3h",
        start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2030, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    assert trigger.to_spec() == (
        '{"anchor":"2025-05-31","at":"08:15:00","days":0,"end_us":1893456000000000,"fold":"first","gap":"after",'
        '"jitter_us":10800000000,"kind":"calendar","months":18,"start_us":1767225600000000,"tz":"Asia/Kathmandu"}'
    )
    assert trigger_from_spec(trigger.to_spec()) == trigger
