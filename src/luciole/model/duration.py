"""Durations: whole microseconds, written by people as "90s", "1h30m", a number of seconds or a timedelta."""

import re
from datetime import timedelta
from typing import Final, TypeAlias

from luciole import limits
from luciole.errors import InvalidValue

#: What the public API takes for a span of time; a plain number counts seconds.
Duration: TypeAlias = str | int | float | timedelta

_UNITS_US: Final = {
    "us": 1,
    "ms": limits.MS_US,
    "s": limits.SECOND_US,
    "m": limits.MINUTE_US,
    "h": limits.HOUR_US,
    "d": limits.DAY_US,
    "w": 7 * limits.DAY_US,
}
_USAGE: Final = "write text such as '30s' or '1h30m', a number of seconds, or a timedelta"
_PART: Final = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?(us|ms|s|m|h|d|w)", re.ASCII)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECONDS_MAX: Final = limits.DURATION_MAX_US // limits.SECOND_US


def duration_us(value: object, *, field: str = "duration") -> int:
    """Return a duration in whole microseconds, zero or more; what is finer is rounded.

    Args:
        value: a `Duration`: text such as "30s", "1h30m", "1.5h" or "500ms", a number of seconds, or a timedelta.
        field: the name that an error gives to the value.

    Raises:
        InvalidValue: not a duration, negative, or longer than a hundred years.
    """
    if isinstance(value, timedelta):
        found = value // _MICROSECOND
    elif isinstance(value, str):
        found = _parse(value, field)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        # Compared before it is multiplied: neither 10**400 nor 1e308 nor NaN may get any further.
        found = round(value * limits.SECOND_US) if 0 <= value <= _SECONDS_MAX else -1
    else:
        raise InvalidValue(f"{field}: a {type(value).__name__} is no duration; {_USAGE}")
    if not 0 <= found <= limits.DURATION_MAX_US:
        raise InvalidValue(f"{field}: a duration lies between 0 and 100 years; {_USAGE}")
    return found


def _parse(text: str, field: str) -> int:
    found = 0
    rest = text.strip(" ")
    if not rest or len(text) > limits.DURATION_LENGTH_MAX:
        raise InvalidValue(f"{field}: text of {len(text)} characters is no duration; {_USAGE}")
    while rest:
        part = _PART.match(rest)
        if part is None:
            raise InvalidValue(f"{field}: {text!a} is no duration; {_USAGE}")
        whole, fraction, unit = part.groups()
        found += int(whole) * _UNITS_US[unit] + int((fraction or "0").ljust(6, "0")) * _UNITS_US[unit] // 1_000_000
        rest = rest[part.end() :].lstrip(" ")
    return found
