"""Two public libraries agree with us where their rules are ours: in UTC, away from every change of offset."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from croniter import croniter
from cronsim import CronSim, CronSimError
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from luciole.errors import InvalidTrigger
from luciole.model.trigger import cron
from tests.model.trigger_oracle import MONTHS, numbers

MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis wants them naive


def text(field: st.SearchStrategy[tuple[str, frozenset[int]]]) -> st.SearchStrategy[str]:
    # Both know no ranges that wrap, and one of them reads 0-0 as the whole week.
    return field.filter(rises).map(lambda found: found[0])


def rises(field: tuple[str, frozenset[int]]) -> bool:
    spans = [item.partition("/")[0].split("-") for item in field[0].split(",")]
    return all(len(span) == 1 or order(span[0]) < order(span[1]) for span in spans)


ORDER = "SUN MON TUE WED THU FRI SAT JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()  # noqa: SIM905 - as a line


def order(value: str) -> int:
    return int(value) if value.isdigit() else ORDER.index(value) % 7 if value in ORDER[:7] else ORDER.index(value) - 6


# Of two day fields that are both given, one is left a star, or both are restricted: croniter reads `*/2` as restricted.
MONTH_DAYS = text(numbers(1, 31)).filter(lambda field: not field.startswith("*/"))
WEEK_DAYS = text(numbers(0, 6, "SUN MON TUE WED THU FRI SAT")).filter(lambda field: not field.startswith("*/"))
EXPRESSIONS = st.tuples(text(numbers(0, 59)), text(numbers(0, 23)), MONTH_DAYS, text(MONTHS), WEEK_DAYS).map(" ".join)

SPECIAL_DAYS = st.one_of(
    st.tuples(st.sampled_from(["L", "LW"]), st.just("*")),
    st.tuples(st.just("*"), st.builds("{}#{}".format, st.integers(0, 6), st.integers(1, 5))),
    st.tuples(st.just("*"), st.builds("{}L".format, st.integers(0, 6))),
)


def ours(expression: str, after: datetime, count: int) -> list[datetime]:
    found: list[datetime] = []
    trigger = cron(expression)
    while len(found) < count:
        following = trigger.next(found[-1] if found else after)
        assert following is not None
        found.append(following)
    return found


def ours_back(expression: str, before: datetime, count: int) -> list[datetime]:
    found: list[datetime] = []
    trigger = cron(expression)
    while len(found) < count:
        earlier = trigger.previous(found[-1] if found else before)
        assert earlier is not None
        found.append(earlier)
    return found


def never_fires(expression: str) -> bool:
    try:
        cron(expression)
    except InvalidTrigger as error:
        return "never" in str(error)
    return False


@given(EXPRESSIONS.filter(lambda expression: not never_fires(expression)), MOMENTS)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_cronsim_and_croniter_agree(expression: str, after: datetime) -> None:
    try:
        simulated = list(islice(CronSim(expression, after), 4))
    except CronSimError:
        reject()  # It refuses 30 February even where the other day field still fires.
    found = ours(expression, after, 4)
    assert simulated == found
    others = croniter(expression, after)
    assert [others.get_next(datetime) for _ in found] == found
    others = croniter(expression, after)
    back = ours_back(expression, after, 3)
    assert [others.get_prev(datetime) for _ in back] == back


@given(SPECIAL_DAYS, st.sampled_from(["*", "2", "4,6", "1-3"]), MOMENTS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_cronsim_agrees_on_last_and_nth_days(days: tuple[str, str], month: str, after: datetime) -> None:
    expression = f"30 6 {days[0]} {month} {days[1]}"
    assert list(islice(CronSim(expression, after), 4)) == ours(expression, after, 4)


@pytest.mark.parametrize("expression", ["30 2 * * *", "0 0 29 2 *", "0 12 1-7 * 1", "*/7 5-9/2 * 1,6 *"])
def test_both_agree_over_a_year(expression: str) -> None:
    after = datetime(2027, 6, 1, tzinfo=UTC)
    until = after + timedelta(days=366)
    found = [fire for fire in ours(expression, after, 400) if fire < until]
    assert list(islice(CronSim(expression, after), len(found))) == found
