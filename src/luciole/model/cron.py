"""Cron walls: the wall times of a parsed expression, found by look-up in small tables.

A field is a bit set; the next and the previous member of every value stand in a table. The days of a month
depend on its length and first weekday only, so 28 bit sets, made when first needed, serve all months.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Final

from luciole import limits
from luciole.errors import InvalidTrigger
from luciole.model.civil import DAY_S, EPOCH_ORDINAL, day_number, is_leap, month_length, weekday
from luciole.model.cron_days import day_set, members, month_day_set
from luciole.model.cron_parse import CronFields, parse_cron
from luciole.model.timeline import NEVER_S

_NONE: Final = 255  # In a table: there is no such member.
_FIRST_DAY: Final = day_number(1, 1, 1)
_LAST_DAY: Final = day_number(9_999, 12, 31)
_SPACING_DAYS: Final = 29 * 366  # Every kind of year, with each kind of neighbour, comes within 28 years.


class CronWalls:
    """The wall times of one expression: a day matches by month and day fields, a time of day by the others."""

    __slots__ = (
        "_day_sets",
        "_every_day",
        "_first_time_s",
        "_hours_back",
        "_hours_on",
        "_last_time_s",
        "_minutes_back",
        "_minutes_on",
        "_months_back",
        "_months_on",
        "_seconds_back",
        "_seconds_on",
        "_times_a_day",
        "_year_counts",
        "fields",
    )

    def __init__(self, fields: CronFields) -> None:
        self.fields = fields
        self._months_on, self._months_back = _tables(fields.months, 12)
        self._hours_on, self._hours_back = _tables(fields.hours, 23)
        self._minutes_on, self._minutes_back = _tables(fields.minutes, 59)
        self._seconds_on, self._seconds_back = _tables(fields.seconds, 59)
        self._first_time_s = self._hours_on[0] * 3_600 + self._minutes_on[0] * 60 + self._seconds_on[0]
        self._last_time_s = self._hours_back[23] * 3_600 + self._minutes_back[59] * 60 + self._seconds_back[59]
        self._times_a_day = fields.hours.bit_count() * fields.minutes.bit_count() * fields.seconds.bit_count()
        self._every_day = fields.months.bit_count() == 12 and fields.every_day_of_month
        self._day_sets: dict[int, int] = {}
        self._year_counts: dict[tuple[bool, int], int] = {}

    def next(self, at_s: int) -> int:
        """Give the first wall time at or after `at_s`, or NEVER_S."""
        day, time_s = divmod(at_s, DAY_S)
        if time_s <= self._last_time_s:
            found = day if self._every_day else self._day_on(day)
            if found == day:
                return at_s - time_s + self._time_on(time_s)
        else:
            found = day + 1 if self._every_day else self._day_on(day + 1)
        return found * DAY_S + self._first_time_s if found is not None else NEVER_S

    def previous(self, at_s: int) -> int:
        """Give the last wall time at or before `at_s`, or -NEVER_S."""
        day, time_s = divmod(at_s, DAY_S)
        if time_s >= self._first_time_s:
            found = day if self._every_day else self._day_back(day)
            if found == day:
                return at_s - time_s + self._time_back(time_s)
        else:
            found = day - 1 if self._every_day else self._day_back(day - 1)
        return found * DAY_S + self._last_time_s if found is not None else -NEVER_S

    def count(self, from_s: int, until_s: int) -> int:
        """Count the wall times in [from_s, until_s) without listing them."""
        if from_s >= until_s:
            return 0
        first_day, first_s = divmod(from_s, DAY_S)
        last_day, last_s = divmod(until_s, DAY_S)
        total = self._count_days(first_day, last_day) * self._times_a_day
        if self._count_days(first_day, first_day + 1):
            total -= self._count_times(first_s)
        if self._count_days(last_day, last_day + 1):
            total += self._count_times(last_s)
        return total

    def bits(self, from_s: int, until_s: int) -> int:
        """Give [from_s, until_s) as a bit set: bit k stands for `from_s + k`."""
        fields = self.fields
        minute = fields.seconds
        hour = sum(minute << (60 * k) for k in members(fields.minutes))
        times = sum(hour << (3_600 * k) for k in members(fields.hours))
        found = 0
        for day in range(from_s // DAY_S, until_s // DAY_S + 1):
            if self._count_days(day, day + 1):
                ahead_s = day * DAY_S - from_s
                found |= times << ahead_s if ahead_s >= 0 else times >> -ahead_s
        return found & ((1 << (until_s - from_s)) - 1)

    def least_spacing_s(self) -> int:
        """Give the shortest time between two neighbours, as clocks without daylight saving count it."""
        fields = self.fields
        second, seconds = _spread(fields.seconds)
        minute, minutes = _spread(fields.minutes)
        hour, hours = _spread(fields.hours)
        in_hour_s = minutes * 60 + seconds
        in_day_s = hours * 3_600 + in_hour_s
        steps = [
            second,
            minute and minute * 60 - seconds,
            hour and hour * 3_600 - in_hour_s,
            self._least_days() * DAY_S - in_day_s,
        ]
        return min(step for step in steps if step)

    def to_spec(self) -> dict[str, str]:
        """Give the rule for a trigger's text."""
        rule = {"kind": "cron", "expression": self.fields.text}
        return rule | ({"seconds": self.fields.seconds_at} if self.fields.seconds_at else {})

    def __str__(self) -> str:
        return self.fields.text

    def _time_on(self, time_s: int) -> int:
        """Give the first time of day at or after one that is not later than the last."""
        minute_of_day, second = divmod(time_s, 60)
        hour, minute = divmod(minute_of_day, 60)
        hour_on = self._hours_on[hour]
        if hour_on == hour:
            minute_on = self._minutes_on[minute]
            if minute_on == minute:
                second_on = self._seconds_on[second]
                if second_on != _NONE:
                    return minute_of_day * 60 + second_on
                minute_on = self._minutes_on[minute + 1]
            if minute_on != _NONE:
                return hour * 3_600 + minute_on * 60 + self._seconds_on[0]
            hour_on = self._hours_on[hour + 1]
        return hour_on * 3_600 + self._minutes_on[0] * 60 + self._seconds_on[0]

    def _time_back(self, time_s: int) -> int:
        """Give the last time of day at or before one that is not earlier than the first."""
        minute_of_day, second = divmod(time_s, 60)
        hour, minute = divmod(minute_of_day, 60)
        hour_back = self._hours_back[hour]
        if hour_back == hour:
            minute_back = self._minutes_back[minute]
            if minute_back == minute:
                second_back = self._seconds_back[second]
                if second_back != _NONE:
                    return minute_of_day * 60 + second_back
                minute_back = self._minutes_back[minute - 1]
            if minute_back != _NONE:
                return hour * 3_600 + minute_back * 60 + self._seconds_back[59]
            hour_back = self._hours_back[hour - 1]
        return hour_back * 3_600 + self._minutes_back[59] * 60 + self._seconds_back[59]

    def _count_times(self, time_s: int) -> int:
        """Count the times of day before one."""
        fields = self.fields
        minute_of_day, second = divmod(time_s, 60)
        hour, minute = divmod(minute_of_day, 60)
        count = _below(fields.hours, hour) * fields.minutes.bit_count()
        if fields.hours >> hour & 1:
            count += _below(fields.minutes, minute)
        count *= fields.seconds.bit_count()
        if fields.hours >> hour & 1 and fields.minutes >> minute & 1:
            count += _below(fields.seconds, second)
        return count

    def _day_on(self, day: int) -> int | None:
        """Give the first matching day at or after one."""
        if not _FIRST_DAY <= day <= _LAST_DAY:
            return None
        found = date.fromordinal(day + EPOCH_ORDINAL)
        year, month = found.year, found.month
        if self._months_on[month] == month:
            days = self._days(year, month, day - found.day + 1) >> found.day
            if days:
                return day + (days & -days).bit_length() - 1
        while True:
            month = self._months_on[month + 1]
            if month == _NONE:
                year += 1
                month = self._months_on[1]
            if year > 9_999:
                return None
            first = date(year, month, 1).toordinal() - EPOCH_ORDINAL
            days = self._days(year, month, first)
            if days:
                return first + (days & -days).bit_length() - 2

    def _day_back(self, day: int) -> int | None:
        """Give the last matching day at or before one."""
        if not _FIRST_DAY <= day <= _LAST_DAY:
            return None
        found = date.fromordinal(day + EPOCH_ORDINAL)
        year, month = found.year, found.month
        first = day - found.day + 1
        if self._months_on[month] == month:
            days = self._days(year, month, first) & ((2 << found.day) - 1)
            if days:
                return first + days.bit_length() - 2
        while True:
            month = self._months_back[month - 1]
            if month == _NONE:
                year -= 1
                month = self._months_back[12]
            if year < 1:
                return None
            first = date(year, month, 1).toordinal() - EPOCH_ORDINAL
            days = self._days(year, month, first)
            if days:
                return first + days.bit_length() - 2

    def _days(self, year: int, month: int, first: int) -> int:
        """Give the matching days of a month that begins on day `first`: bit d for the d-th."""
        length = month_length(year, month)
        key = length * 8 + weekday(first)
        days = self._day_sets.get(key)
        if days is None:
            days = self._day_sets[key] = day_set(self.fields, length, weekday(first))
        return days

    def _count_days(self, from_day: int, until_day: int) -> int:
        """Count the matching days in [from_day, until_day); both within a month of years 1 to 9999."""
        if self._every_day:
            return until_day - from_day
        begin = date.fromordinal(from_day + EPOCH_ORDINAL)
        end = date.fromordinal(until_day + EPOCH_ORDINAL)
        total = _below(self._month(end.year, end.month), end.day) - _below(
            self._month(begin.year, begin.month), begin.day
        )
        year, month = begin.year, begin.month
        while (year, month) != (end.year, end.month):
            if month == 1 and year < end.year:
                total += self._year_count(year)
                year += 1
                continue
            total += self._month(year, month).bit_count()
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        return total

    def _year_count(self, year: int) -> int:
        first = weekday(day_number(year, 1, 1))
        key = is_leap(year), first
        if key not in self._year_counts:
            self._year_counts[key] = sum(self._month(year, month).bit_count() for month in range(1, 13))
        return self._year_counts[key]

    def _month(self, year: int, month: int) -> int:
        if self._months_on[month] != month:
            return 0
        return self._days(year, month, day_number(year, month, 1))

    def _least_days(self) -> int:
        """Give the shortest distance between two matching days."""
        if self._every_day:
            return 1
        least = _SPACING_DAYS
        day = self._day_on(day_number(2000, 1, 1))
        until = day_number(2000, 1, 1) + _SPACING_DAYS
        while day is not None and day < until and least > 1:
            following = self._day_on(day + 1)
            if following is not None:
                least = min(least, following - day)
            day = following
        return least


def cron_walls(expression: object, seconds: object = None) -> CronWalls:
    """Parse an expression to its wall times, the same object for the same text while it is kept.

    Raises:
        InvalidTrigger: as `parse_cron`, and when no month ever has such a day.
    """
    if isinstance(expression, str) and isinstance(seconds, str | None):
        return _cron_walls(expression, seconds)
    return CronWalls(parse_cron(expression, seconds))  # Refused: neither is of the right type.


@lru_cache(maxsize=limits.CRON_WALLS_KEPT)
def _cron_walls(expression: str, seconds: str | None) -> CronWalls:
    fields = parse_cron(expression, seconds)
    _check_some_day(fields)
    return CronWalls(fields)


def _check_some_day(fields: CronFields) -> None:
    """Refuse days that no month has, such as 30 February."""
    months = members(fields.months)
    shapes = [
        (length, first)
        for length in {month_length(year, month) for month in months for year in (2000, 2001)}
        for first in range(7)
    ]
    if any(day_set(fields, *shape) for shape in shapes):
        return
    named = "any month" if len(months) == 12 else "month " + ", ".join(str(month) for month in months)
    words = fields.text.split()[fields.seconds_at == "first" :]
    if not any(month_day_set(fields.month_days, *shape) for shape in shapes):
        raise InvalidTrigger(
            f"day of month: {words[2]!r} never comes in {named}, so it would never fire; "
            "write a day that the month has, or L for its last"
        )
    raise InvalidTrigger(
        f"day of month: {words[2]!r} never falls on day of week {words[4]!r} in {named}, so it would never fire; "
        "a field that starts with `*` does not restrict, so both must match"
    )


@lru_cache(maxsize=limits.CRON_FIELDS_KEPT)
def _tables(values: int, high: int) -> tuple[bytes, bytes]:
    """Give two tables over 0 to high + 1: the member at or after each value, and the one at or before it."""
    on, back = bytearray(high + 2), bytearray(high + 2)
    member = _NONE
    for value in range(high + 1, -1, -1):
        member = value if values >> value & 1 else member
        on[value] = member
    member = _NONE
    for value in range(high + 1):
        member = value if values >> value & 1 else member
        back[value] = member
    # Entry high + 1 is also entry -1, which is asked for when 0 is no member: nothing comes before it.
    back[-1] = _NONE
    return bytes(on), bytes(back)


def _below(values: int, limit: int) -> int:
    """Count the members less than `limit`."""
    return (values & ((1 << limit) - 1)).bit_count()


def _spread(values: int) -> tuple[int, int]:
    """Give the shortest distance between two members (0: there is one) and that between the outermost."""
    known = members(values)
    return min((b - a for a, b in pairwise(known)), default=0), known[-1] - known[0]
