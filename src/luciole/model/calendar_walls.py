"""Calendar walls: one wall time every so many months or days, counted from an anchor, so that nothing drifts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Final

from luciole import limits
from luciole.errors import InvalidTrigger
from luciole.model.civil import DAY_S, EPOCH_ORDINAL, day_number, month_length
from luciole.model.cron_parse import shown

_ANCHOR: Final = date(2024, 1, 1)  # A Monday, a first of a month and of a year.
_AT: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?", re.ASCII)
_CYCLE_MONTHS: Final = 400 * 12  # The calendar repeats after 400 years.


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarWalls:
    """The wall times `at_s` of the anchor's day and of every later and earlier one a whole number of steps away.

    In a month that has no such day the last day of the month stands for it: from 31 January by a month, 28
    February, then 31 March again.
    """

    anchor: date
    months: int  #: the step in months; 0 when it is in days
    days: int  #: the step in days; 0 when it is in months
    at_s: int  #: time of day

    def next(self, at_s: int) -> int:
        """Give the first wall time at or after `at_s`."""
        return self._wall_s(self._step_on(at_s))

    def previous(self, at_s: int) -> int:
        """Give the last wall time at or before `at_s`."""
        return self._wall_s(self._step_on(at_s + 1) - 1)

    def count(self, from_s: int, until_s: int) -> int:
        """Count the wall times in [from_s, until_s) without listing them."""
        return max(0, self._step_on(until_s) - self._step_on(from_s))

    def bits(self, from_s: int, until_s: int) -> int:
        """Give [from_s, until_s) as a bit set: bit k stands for `from_s + k`."""
        steps = range(self._step_on(from_s), self._step_on(until_s))
        return sum(1 << (self._wall_s(step) - from_s) for step in steps)

    def least_spacing_s(self) -> int:
        """Give the shortest time between two neighbours, as clocks without daylight saving count it."""
        if self.days:
            return self.days * DAY_S
        days = [self._day(step) for step in range(_CYCLE_MONTHS // self.months + 2)]
        return min(b - a for a, b in pairwise(days)) * DAY_S

    def to_spec(self) -> dict[str, str | int]:
        """Give the rule for a trigger's text."""
        return {
            "kind": "calendar",
            "months": self.months,
            "days": self.days,
            "at": self._at(),
            "anchor": self.anchor.isoformat(),
        }

    def __str__(self) -> str:
        count, unit = (self.days, "day") if self.days else (self.months, "month")
        step = unit if count == 1 else f"{count} {unit}s"
        return f"every {step} at {self._at()} from {self.anchor}"

    def _at(self) -> str:
        return f"{self.at_s // 3_600:02}:{self.at_s // 60 % 60:02}:{self.at_s % 60:02}"

    def _wall_s(self, step: int) -> int:
        return self._day(step) * DAY_S + self.at_s

    def _day(self, step: int) -> int:
        if self.days:
            return self.anchor.toordinal() - EPOCH_ORDINAL + step * self.days
        year, month = divmod(self.anchor.year * 12 + self.anchor.month - 1 + step * self.months, 12)
        return day_number(year, month + 1, min(self.anchor.day, month_length(year, month + 1)))

    def _step_on(self, at_s: int) -> int:
        """Give the number of the first step whose wall time is at or after `at_s`."""
        day = -((self.at_s - at_s) // DAY_S)  # The first day whose time of day is not before it.
        if self.days:
            return -((self.anchor.toordinal() - EPOCH_ORDINAL - day) // self.days)
        on = date.fromordinal(day + EPOCH_ORDINAL)
        ahead = (on.year - self.anchor.year) * 12 + on.month - self.anchor.month
        step = -(-ahead // self.months)
        return step if self._day(step) >= day else step + 1


def calendar_walls(*, months: int, days: int, at: object, anchor: object) -> CalendarWalls:
    """Check the parts of a calendar interval and put them together.

    Raises:
        InvalidTrigger: a part is wrong; the message names it.
    """
    if months and days:
        raise InvalidTrigger("days: a step is counted in months or in days, not in both; leave one of them out")
    if not months and not days:
        raise InvalidTrigger("days: the step is empty; write years=, months=, weeks= or days=")
    if months > limits.CALENDAR_MONTHS_MAX or days > limits.CALENDAR_DAYS_MAX:
        raise InvalidTrigger("days: a step is at most 100 years; write a smaller one")
    clock = _AT.fullmatch(at) if isinstance(at, str) else None
    if clock is None:
        raise InvalidTrigger(f"at: {shown(at)} is no time of day; write '09:30' or '09:30:15'")
    hour, minute, second = (int(part or 0) for part in clock.groups())
    at_s = hour * 3_600 + minute * 60 + second
    return CalendarWalls(anchor=_anchor(anchor), months=months, days=days, at_s=at_s)


def _anchor(value: object) -> date:
    if value is None:
        return _ANCHOR
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value)
        except ValueError:
            raise InvalidTrigger(f"anchor: {shown(value)} is no date; write '2024-01-31'") from None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise InvalidTrigger(f"anchor: a {type(value).__name__} is no date; the time of day is given by at=")
    if not 1900 <= value.year <= 2200:
        raise InvalidTrigger(f"anchor: {value} is outside the years 1900 to 2200; write a day between")
    return value
