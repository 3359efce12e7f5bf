"""Instants: whole microseconds since 1970-01-01T00:00:00Z, as plain integers."""

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from luciole import limits
from luciole.errors import InvalidValue

#: Microseconds since the Unix epoch, UTC.
Instant: TypeAlias = int

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def from_datetime(moment: datetime, *, field: str = "datetime") -> Instant:
    """Return the instant of an aware datetime, in microseconds.

    Args:
        moment: an aware datetime of any zone.
        field: the name that an error gives to the value.

    Raises:
        InvalidValue: the datetime is naive, or outside the years 1900 to 2200.
    """
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidValue(f"{field}: {moment.isoformat()} has no time zone; pass an aware datetime")
    instant = (moment - _EPOCH) // _MICROSECOND
    if not limits.INSTANT_MIN_US <= instant <= limits.INSTANT_MAX_US:
        raise InvalidValue(f"{field}: {moment.isoformat()} is outside the years 1900 to 2200")
    return instant


def to_datetime(instant: Instant) -> datetime:
    """Return the aware UTC datetime of an instant in microseconds."""
    return _EPOCH + timedelta(microseconds=instant)


def iso(instant: Instant) -> str:
    """Return an instant as RFC 3339 text in UTC, with the fraction only where there is one."""
    return to_datetime(instant).isoformat().replace("+00:00", "Z")
