"""What triggers ought to answer, found the slow way: every wall time tried, every zone asked through `zoneinfo`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from luciole.model.timeline import Fold, Gap
from luciole.model.zones import zone_names

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)

ZONES = sorted(zone_names())


@cache
def zone_info(name: str) -> ZoneInfo:
    """The zone as the wheel has it, whatever the host's own files say."""
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def offset_s(zone: ZoneInfo, instant_s: int) -> int:
    offset = (EPOCH + instant_s * SECOND).astimezone(zone).utcoffset()
    assert offset is not None
    return offset // SECOND


@cache
def changes(name: str, first_year: int, last_year: int) -> list[int]:
    """The instants, in seconds, at which the offset changes; found by looking twice a day."""
    zone = zone_info(name)
    start_s = (datetime(first_year, 1, 1, tzinfo=UTC) - EPOCH) // SECOND
    end_s = (datetime(last_year + 1, 1, 1, tzinfo=UTC) - EPOCH) // SECOND
    return [
        change_between(zone, low_s, low_s + 43_200)
        for low_s in range(start_s, end_s, 43_200)
        if offset_s(zone, low_s) != offset_s(zone, low_s + 43_200)
    ]


def change_between(zone: ZoneInfo, low: int, high: int) -> int:
    """The first instant in (low, high] with the offset of `high`, when the offset changes once."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset_s(zone, middle) != offset_s(zone, high) else (low, middle)
    return high


def instants(zone: ZoneInfo, wall: datetime, gap: Gap, fold: Fold) -> list[int]:
    """The instants, in seconds, at which one wall time fires."""
    aware = [wall.replace(tzinfo=zone, fold=k) for k in (0, 1)]
    times = [(moment.astimezone(UTC) - EPOCH) // SECOND for moment in aware]
    exact = sorted({t for t in times if (EPOCH + t * SECOND).astimezone(zone).replace(tzinfo=None) == wall})
    if exact:
        return {"first": exact[:1], "second": exact[-1:], "both": exact}[fold]
    if gap == "skip":
        return []
    # In a gap, fold 0 reads the wall time by the offset before it, fold 1 by the offset after it.
    return [times[0]] if gap == "shift" else [change_between(zone, times[1], times[0])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A cron expression and, independently of its text, what it means."""

    text: str
    seconds: bool  #: six fields, seconds first
    times: tuple[time, ...]
    matches: Callable[[date], bool]
    hour_open: bool

    def walls(self, first: date, last: date) -> Iterator[datetime]:
        day = first
        while day <= last:
            if self.matches(day):
                yield from (datetime.combine(day, at) for at in self.times)
            day += DAY

    def fires(self, name: str, span: tuple[int, int], gap: Gap, fold: Fold) -> list[int]:
        """The fires in [span), in seconds."""
        low_s, high_s = span
        first, last = ((EPOCH + s * SECOND).date() for s in span)
        zone = zone_info(name)
        found = {
            instant
            for wall in self.walls(first - 2 * DAY, last + 2 * DAY)
            for instant in instants(zone, wall, gap, fold)
        }
        return sorted(instant for instant in found if low_s <= instant < high_s)


def numbers(low: int, high: int, names: str = "") -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    """A list of values, ranges that may wrap, and steps: its text and its members."""
    words = names.split()

    def spell(value: int) -> str:
        return words[value - low] if words and value % 2 else str(value)

    def members(first: int, last: int, step: int) -> frozenset[int]:
        size = high - low + 1
        length = (last - first) % size
        return frozenset(low + (first - low + k) % size for k in range(0, length + 1, step))

    value = st.integers(low, high)
    step = st.integers(1, high - low + 1)
    single = value.map(lambda v: (spell(v), frozenset((v,))))
    span = st.tuples(value, value).map(lambda r: (f"{spell(r[0])}-{spell(r[1])}", members(*r, 1)))
    stepped = st.tuples(value, value, step).map(lambda r: (f"{r[0]}-{r[1]}/{r[2]}", members(*r)))
    starred = step.map(lambda s: (f"*/{s}", members(low, high, s)))
    star = st.just(("*", frozenset(range(low, high + 1))))
    listed = st.lists(st.one_of(single, span, stepped), min_size=1, max_size=3).map(
        lambda items: (",".join(text for text, _ in items), frozenset().union(*(m for _, m in items)))
    )
    return st.one_of(star, single, listed, starred)


DayMatch = Callable[[date], bool]
DayRule = tuple[str, DayMatch]


def month_end(day: date) -> int:
    return ((day.replace(day=28) + 4 * DAY).replace(day=1) - DAY).day


def weekday_near(day: date, wanted: int) -> bool:
    """Whether `day` is the Monday to Friday nearest to the wanted day of its month, within the month."""
    if wanted > month_end(day):
        return False
    working = [d for d in range(1, month_end(day) + 1) if day.replace(day=d).weekday() < 5]
    return day.day == min(working, key=lambda d: (abs(d - wanted), d))


def is_last(day: date) -> bool:
    return day.day + 7 > month_end(day)


MONTH_DAYS: st.SearchStrategy[DayRule] = st.one_of(
    numbers(1, 31).map(lambda n: (n[0], lambda day, days=n[1]: day.day in days)),
    st.just(("L", lambda day: day.day == month_end(day))),
    st.integers(1, 27).map(lambda k: (f"L-{k}", lambda day, k=k: day.day == month_end(day) - k)),
    st.integers(1, 31).map(lambda k: (f"{k}W", lambda day, k=k: weekday_near(day, k))),
    st.just(("LW", lambda day: weekday_near(day, month_end(day)))),
)
WEEK_DAYS: st.SearchStrategy[DayRule] = st.one_of(
    numbers(0, 6, "SUN MON TUE WED THU FRI SAT").map(
        lambda n: (n[0], lambda day, days=n[1]: day.isoweekday() % 7 in days)
    ),
    st.just(("7", lambda day: day.isoweekday() == 7)),
    st.integers(0, 6).map(lambda d: (f"{d}L", lambda day, d=d: day.isoweekday() % 7 == d and is_last(day))),
    st.tuples(st.integers(0, 6), st.integers(1, 5)).map(
        lambda r: (
            f"{r[0]}#{r[1]}",
            lambda day, r=r: day.isoweekday() % 7 == r[0] and (day.day + 6) // 7 == r[1],
        )
    ),
)
MONTHS = numbers(1, 12, "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")
ANY_MONTH = st.just(("*", frozenset(range(1, 13))))


def every_day(day: date) -> bool:
    return day.day > 0


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    """Any expression that fires at most some thousand times a day."""
    minute, minutes = draw(numbers(0, 59))
    hour, hours = draw(numbers(0, 23))
    month_day_matches: DayMatch = every_day
    week_day_matches: DayMatch = every_day
    if draw(st.integers(0, 2)):  # Else a window of a few days would rarely hold a fire.
        (month, months), month_day, week_day = draw(ANY_MONTH), "*", "*"
    else:
        month, months = draw(MONTHS)
        month_day, month_day_matches = draw(MONTH_DAYS)
        week_day, week_day_matches = draw(WEEK_DAYS)
    either = not (month_day.startswith("*") or week_day.startswith("*"))

    def matches(day: date) -> bool:
        both = month_day_matches(day), week_day_matches(day)
        return day.month in months and (any(both) if either else all(both))

    seconds = draw(st.booleans()) and len(minutes) * len(hours) < 100
    second, second_values = draw(st.sampled_from(SECONDS)) if seconds else ("", frozenset((0,)))
    return Expression(
        text=f"{second} {minute} {hour} {month_day} {month} {week_day}".strip(),
        seconds=seconds,
        times=tuple(time(h, m, s) for h in sorted(hours) for m in sorted(minutes) for s in sorted(second_values)),
        matches=matches,
        hour_open=hour.startswith("*") or len(hours) == 24,
    )


SECONDS = (
    ("0", frozenset((0,))),
    ("59", frozenset((59,))),
    ("0,30", frozenset((0, 30))),
    ("*/20", frozenset((0, 20, 40))),
    ("50-10/10", frozenset((50, 0, 10))),
)
