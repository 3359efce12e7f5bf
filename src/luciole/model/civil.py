"""Days and months as integers: day 0 is 1970-01-01 of the proleptic Gregorian calendar."""

from __future__ import annotations

DAY_S = 86_400
EPOCH_ORDINAL = 719_163  #: `date.toordinal()` of day 0

_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_leap(year: int) -> bool:
    """Tell whether the year has a 29 February."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year: int, month: int) -> int:
    """Give the number of days of a month (1-12)."""
    return 29 if month == 2 and is_leap(year) else _LENGTHS[month - 1]


def day_number(year: int, month: int, day: int) -> int:
    """Give the day number of a date, for any year (`datetime.date` ends at 9999).

    Years are counted from March, so that the leap day is a year's last and needs no case of its own.
    """
    if month <= 2:
        year -= 1
    days_before = (153 * ((month - 3) % 12) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + days_before - 719_468


def weekday(day: int) -> int:
    """Give the weekday of a day number, 0 for Sunday (day 0 was a Thursday)."""
    return (day + 4) % 7
