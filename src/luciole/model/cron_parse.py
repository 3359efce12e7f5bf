"""Cron text: from an expression to bit sets, or to a refusal that names the field and what to write.

Work and memory are bounded for any input: the text is capped before it is looked at, every number has at
most two digits, and a field is a set of at most 60 bits however it is written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, NoReturn

from luciole import limits
from luciole.errors import InvalidTrigger

Seconds = Literal["first", "last"]

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
        start=1,
    )
}
_DAYS: Final = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))}

_ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_VALUE = r"[0-9]{1,2}|[A-Z]{3}"
_ITEM: Final = re.compile(rf"(?:(\*)|({_VALUE})(?:-({_VALUE}))?)(?:/([0-9]{{1,2}}))?")
_LAST_DAY: Final = re.compile(r"L(?:-([0-9]{1,2}))?")
_NEAREST: Final = re.compile(r"([0-9]{1,2})W")
_LAST_OF: Final = re.compile(rf"({_VALUE})L")
_NTH: Final = re.compile(rf"({_VALUE})#([0-9])")
_SHOWN_MAX: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # There are six, told apart by identity.
class _Field:
    name: str
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.high - self.low + 1


_SECOND: Final = _Field(name="second", low=0, high=59)
_MINUTE: Final = _Field(name="minute", low=0, high=59)
_HOUR: Final = _Field(name="hour", low=0, high=23)
_DAY_OF_MONTH: Final = _Field(name="day of month", low=1, high=31)
_MONTH: Final = _Field(name="month", low=1, high=12, names=_MONTHS)
_DAY_OF_WEEK: Final = _Field(name="day of week", low=0, high=6, names=_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthDays:
    """The day-of-month field."""

    days: int = 0  #: bit d: the d-th
    before_last: int = 0  #: bit k: k days before the last
    nearest: int = 0  #: bit d: the weekday (Monday to Friday) nearest to the d-th, within the month
    last_weekday: bool = False  #: the last weekday of the month


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekDays:
    """The day-of-week field; 0 is Sunday."""

    days: int = 0  #: bit d: every d-day
    last: int = 0  #: bit d: the last d-day of the month
    nth: int = 0  #: bit 8 * (n - 1) + d: the n-th d-day of the month


@dataclass(frozen=True, slots=True, kw_only=True)
class CronFields:
    """A parsed expression."""

    seconds_at: Seconds | None  #: where the text has the seconds; None: five fields
    text: str  #: one spelling for each expression: single blanks, capitals, aliases and `?` replaced
    seconds: int  #: bit k: second k
    minutes: int
    hours: int
    months: int  #: bit m: month m, 1-12
    month_days: MonthDays
    week_days: WeekDays
    either_day: bool  #: both day fields are restricted: a day matches when either does, else when both do
    hour_open: bool  #: the hour field starts with `*` or names all 24 hours

    @property
    def every_day_of_month(self) -> bool:
        """Whether the day fields leave no day out."""
        by_month = self.month_days.days.bit_count() == _DAY_OF_MONTH.size
        by_week = self.week_days.days.bit_count() == _DAY_OF_WEEK.size
        return by_month or by_week if self.either_day else by_month and by_week


def parse_cron(expression: object, seconds: object = None) -> CronFields:
    """Parse an expression of five fields, or of six when `seconds` says which of them is the seconds.

    Args:
        expression: minute, hour, day of month, month, day of week; or an alias such as `@daily`.
        seconds: None for five fields; "first" or "last" when a sixth field gives the seconds.

    Raises:
        InvalidTrigger: the text means nothing, could mean two things, or can never fire.
    """
    words = _words(expression)
    if seconds is None:
        _check_count(words)
        return _assemble("0", words, None)
    if seconds not in ("first", "last"):
        raise InvalidTrigger(f"seconds: write None, 'first' or 'last', not {shown(seconds)}")
    if len(words) != 6:
        raise InvalidTrigger(
            f"seconds: seconds='{seconds}' announces six fields, but the expression has {len(words)}; "
            "add a seconds field or leave seconds= out"
        )
    return _assemble(words[0], words[1:], "first") if seconds == "first" else _assemble(words[5], words[:5], "last")


def _words(expression: object) -> list[str]:
    """Split the text into its fields, in capitals."""
    if not isinstance(expression, str):
        raise InvalidTrigger(f"expression: cron takes text such as '30 2 * * *', not a {type(expression).__name__}")
    if len(expression) > limits.CRON_LENGTH_MAX:
        raise InvalidTrigger(
            f"expression: {len(expression)} characters are too many for cron text; "
            f"write at most {limits.CRON_LENGTH_MAX}"
        )
    text = expression.replace("\t", " ").strip(" ")
    if not (text.isascii() and text.isprintable()):
        raise InvalidTrigger(f"expression: {shown(expression)} holds a character that cron does not know")
    if text.startswith("@"):
        if text.lower() not in _ALIASES:
            known = ", ".join(_ALIASES)
            raise InvalidTrigger(f"expression: {shown(text)} is no alias; write five fields or one of {known}")
        text = _ALIASES[text.lower()]
    return text.upper().split()


def _check_count(words: list[str]) -> None:
    if len(words) == 5:
        return
    if len(words) == 6:
        raise InvalidTrigger(
            "seconds: six fields could mean two things; say which one holds the seconds "
            "with seconds='first' or seconds='last'"
        )
    hint = "; there is no year field, write start= and end= instead" if len(words) == 7 else ""
    raise InvalidTrigger(
        f"expression: cron needs 5 fields (minute, hour, day of month, month, day of week), "
        f"this one has {len(words)}{hint}"
    )


def _assemble(second_word: str, words: list[str], seconds: Seconds | None) -> CronFields:
    minute, hour, month_day, month, week_day = words
    if month_day == week_day == "?":
        raise InvalidTrigger("day of month: `?` in both day fields names no day; write `*` in both for every day")
    month_day = "*" if month_day == "?" else month_day
    week_day = "*" if week_day == "?" else week_day
    words = [minute, hour, month_day, month, week_day]
    if seconds is not None:
        words.insert(0 if seconds == "first" else 5, second_word)
    minutes, hours = _parse_set(_MINUTE, minute), _parse_set(_HOUR, hour)
    return CronFields(
        text=" ".join(words),
        seconds_at=seconds,
        seconds=_parse_set(_SECOND, second_word),
        minutes=minutes,
        hours=hours,
        months=_parse_set(_MONTH, month),
        month_days=_parse_month_days(month_day),
        week_days=_parse_week_days(week_day),
        either_day=not (month_day.startswith("*") or week_day.startswith("*")),
        hour_open=hour.startswith("*") or hours.bit_count() == _HOUR.size,
    )


@lru_cache(maxsize=limits.CRON_FIELDS_KEPT)
def _parse_set(field: _Field, word: str) -> int:
    values = 0
    for item in _items(field, word):
        values |= _parse_item(field, item)
    return values


@lru_cache(maxsize=limits.CRON_FIELDS_KEPT)
def _parse_month_days(word: str) -> MonthDays:
    days = before_last = nearest = 0
    last_weekday = False
    for item in _items(_DAY_OF_MONTH, word):
        if found := _LAST_DAY.fullmatch(item):
            before = int(found[1] or 0)
            if before >= _DAY_OF_MONTH.size:
                _refuse(_DAY_OF_MONTH, item, "no month is that long; write L-1 to L-30")
            before_last |= 1 << before
        elif item == "LW":
            last_weekday = True
        elif found := _NEAREST.fullmatch(item):
            nearest |= 1 << _value(_DAY_OF_MONTH, item, found[1])
        else:
            days |= _parse_item(_DAY_OF_MONTH, item)
    return MonthDays(days=days, before_last=before_last, nearest=nearest, last_weekday=last_weekday)


@lru_cache(maxsize=limits.CRON_FIELDS_KEPT)
def _parse_week_days(word: str) -> WeekDays:
    days = last = nth = 0
    for item in _items(_DAY_OF_WEEK, word):
        if item == "L":
            _refuse(
                _DAY_OF_WEEK, item, "it could mean Saturday or the month's end; write SAT, or 5L for the last Friday"
            )
        if found := _LAST_OF.fullmatch(item):
            last |= 1 << _value(_DAY_OF_WEEK, item, found[1])
        elif found := _NTH.fullmatch(item):
            which = int(found[2])
            if not 1 <= which <= 5:
                _refuse(_DAY_OF_WEEK, item, "a month has a first to a fifth; write #1 to #5")
            nth |= 1 << (8 * (which - 1) + _value(_DAY_OF_WEEK, item, found[1]))
        else:
            days |= _parse_item(_DAY_OF_WEEK, item)
    return WeekDays(days=days, last=last, nth=nth)


def _items(field: _Field, word: str) -> list[str]:
    items = word.split(",")
    if "" in items:
        _refuse(field, word, "an item is empty; take out the extra comma")
    return items


def _parse_item(field: _Field, item: str) -> int:
    """Parse `*`, a value, a range (it may wrap) or a step over one of them, to a bit set."""
    found = _ITEM.fullmatch(item)
    if found is None:
        _refuse(field, item, _usage(field))
    star, first, last, every = found.groups()
    step = int(every) if every else 1
    if not 1 <= step <= field.size:
        _refuse(field, item, f"a step must be from 1 to {field.size}, the number of values of the field")
    if star:
        low, high = field.low, field.high
    else:
        low = high = _value(field, item, first)
        if last:
            # 1-7 reads Monday to Sunday: here, and only here, 7 lies after 6.
            high = 7 if field is _DAY_OF_WEEK and last == "7" else _value(field, item, last)
        elif every:
            _refuse(field, item, f"say where the steps end; write {low}-{field.high}/{step}")
    if low > high:
        high += field.size
    # The members as bits from the field's lowest value on; what lies beyond its highest wraps.
    steps = (2 << (high - low)) - 1 if step == 1 else sum(1 << k for k in range(0, high - low + 1, step))
    values = steps << (low - field.low)
    return ((values | values >> field.size) & ((1 << field.size) - 1)) << field.low


def _value(field: _Field, item: str, text: str) -> int:
    value = int(text) if text.isdigit() else field.names.get(text, -1)
    if field is _DAY_OF_WEEK and value == 7:
        return 0
    if not field.low <= value <= field.high:
        _refuse(field, item, _usage(field))
    return value


def _usage(field: _Field) -> str:
    names = list(field.names)
    named = f" or {names[0]} to {names[-1]}" if names else ""
    return f"write values from {field.low} to {field.high}{named}, `*`, ranges, steps or lists of them"


def _refuse(field: _Field, item: str, why: str) -> NoReturn:
    raise InvalidTrigger(f"{field.name}: {shown(item)} is not understood: {why}")


def shown(value: object) -> str:
    """Show a value from outside: text in ASCII and cut short, anything else by its kind."""
    if not isinstance(value, str):
        return f"a {type(value).__name__}"
    return ascii(value) if len(value) <= _SHOWN_MAX else f"{value[:_SHOWN_MAX]!a}..."
