"""Bounds: the start, end and jitter that every repeating trigger has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from luciole.errors import InvalidTrigger, InvalidValue
from luciole.model.duration import duration_us
from luciole.model.fires import seconds_text
from luciole.model.instant import Instant, from_datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What limits a trigger's fires; both ends are included."""

    start_us: Instant | None = None
    end_us: Instant | None = None
    jitter_us: int = 0

    def __post_init__(self) -> None:
        if self.start_us is not None and self.end_us is not None and self.start_us > self.end_us:
            raise InvalidTrigger("end: it lies before start, so nothing would ever fire; write a later end")

    def to_spec(self) -> dict[str, int]:
        """Give what is set, for the trigger's text."""
        given = {"start_us": self.start_us, "end_us": self.end_us, "jitter_us": self.jitter_us or None}
        return {name: value for name, value in given.items() if value is not None}

    def check_jitter(self, least_spacing_us: int) -> None:
        """Refuse a jitter that could change the order of fires.

        Raises:
            InvalidTrigger: the jitter is not smaller than the trigger's least spacing.
        """
        if self.jitter_us >= least_spacing_us:
            raise InvalidTrigger(
                f"jitter: {seconds_text(self.jitter_us)} is not smaller than the least time between two fires, "
                f"{seconds_text(least_spacing_us)}; write a smaller one",
            )


#: No start, no end, no jitter.
UNBOUNDED: Final = Bounds()


def make_bounds(*, start: object, end: object, jitter: object) -> Bounds:
    """Read the bounds as the constructors take them.

    Raises:
        InvalidTrigger: a naive datetime, a jitter that is no duration, or an end before the start.
    """
    return Bounds(
        start_us=None if start is None else read_instant(start, "start"),
        end_us=None if end is None else read_instant(end, "end"),
        jitter_us=0 if jitter is None else read_duration(jitter, "jitter"),
    )


def read_instant(moment: object, field: str) -> Instant:
    """Read an aware datetime of a definition.

    Raises:
        InvalidTrigger: not a datetime, naive, or outside the years 1900 to 2200.
    """
    if not isinstance(moment, datetime):
        raise InvalidTrigger(f"{field}: a {type(moment).__name__} is no datetime; pass an aware datetime")
    try:
        return from_datetime(moment, field=field)
    except InvalidValue as error:
        raise InvalidTrigger(str(error)) from None


def read_duration(value: object, field: str) -> int:
    """Read a duration of a definition, in microseconds.

    Raises:
        InvalidTrigger: not a duration, negative, or longer than a hundred years.
    """
    try:
        return duration_us(value, field=field)
    except InvalidValue as error:
        raise InvalidTrigger(str(error)) from None
