"""Which days of a month an expression names: a pure function of the month's length and first weekday."""

from __future__ import annotations

from luciole.model.cron_parse import CronFields, MonthDays, WeekDays

_SUNDAY, _SATURDAY = 0, 6


def members(values: int) -> list[int]:
    """List the members of a bit set, ascending."""
    return [k for k in range(values.bit_length()) if values >> k & 1]


def day_set(fields: CronFields, length: int, first: int) -> int:
    """Give the days that match in a month of `length` days whose first is weekday `first`: bit d for the d-th."""
    by_month = month_day_set(fields.month_days, length, first)
    by_week = week_day_set(fields.week_days, length, first)
    return by_month | by_week if fields.either_day else by_month & by_week


def month_day_set(named: MonthDays, length: int, first: int) -> int:
    """Give the days that the day-of-month field names; a day past the month's end is none."""
    days = named.days
    for before in members(named.before_last):
        if before < length:
            days |= 1 << (length - before)
    for day in members(named.nearest):
        if day <= length:
            days |= 1 << _nearest_weekday(day, length, first)
    if named.last_weekday:
        days |= 1 << _nearest_weekday(length, length, first)
    return days & ((2 << length) - 2)


def week_day_set(named: WeekDays, length: int, first: int) -> int:
    """Give the days that the day-of-week field names."""
    days = 0
    for weekday in range(7):
        earliest = 1 + (weekday - first) % 7
        latest = earliest + (length - earliest) // 7 * 7
        if named.days >> weekday & 1:
            days |= sum(1 << day for day in range(earliest, length + 1, 7))
        if named.last >> weekday & 1:
            days |= 1 << latest
        for week in range(5):
            if named.nth >> (8 * week + weekday) & 1 and earliest + 7 * week <= length:
                days |= 1 << (earliest + 7 * week)
    return days


def _nearest_weekday(day: int, length: int, first: int) -> int:
    """Give the Monday to Friday nearest to a day without leaving the month."""
    weekday = (first + day - 1) % 7
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day
