"""Fires: what a trigger answers, and the edge where instants become datetimes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.instant import Instant, to_datetime
from luciole.model.jitter import jitter_us

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    """One fire time and why it is where it is."""

    fire_us: Instant
    due_us: Instant  #: the fire time + the jitter of the schedule, when one was named
    local: str  #: the wall time and its offset, such as "2026-03-29 03:00:00+02:00"
    reasons: tuple[str, ...]  #: what moved, doubled or dropped wall times here; empty for an ordinary fire

    @property
    def fire(self) -> datetime:
        """The fire time as a datetime in UTC."""
        return to_datetime(self.fire_us)


class Trigger(Protocol):
    """A pure rule for fire times: immutable, hashable, equal to every trigger of the same text."""

    @property
    def jitter_us(self) -> int:
        """The exclusive bound of the offset between fire time and due time; 0 for none."""
        ...

    @property
    def least_spacing_us(self) -> int:
        """The shortest time between two fires from 2020 on."""
        ...

    def next_us(self, after_us: Instant) -> Instant | None:
        """Give the first fire time strictly after an instant, or None when there is none."""
        ...

    def previous_us(self, before_us: Instant) -> Instant | None:
        """Give the last fire time strictly before an instant, or None when there is none."""
        ...

    def count(self, after_us: Instant, until_us: Instant) -> int:
        """Count the fires in (after, until]; the cost does not grow with their number."""
        ...

    def next(self, after: datetime) -> datetime | None:
        """Give the first fire time strictly after an aware datetime, in UTC, or None when there is none.

        Raises:
            InvalidValue: the datetime is naive.
        """
        ...

    def previous(self, before: datetime) -> datetime | None:
        """Give the last fire time strictly before an aware datetime, in UTC, or None when there is none.

        Raises:
            InvalidValue: the datetime is naive.
        """
        ...

    def explain(self, after: datetime, n: int = 5, *, schedule_id: int | None = None) -> list[Fire]:
        """Give the next fires with the reasons for each.

        Args:
            after: an aware datetime.
            n: how many fires at most.
            schedule_id: whose jitter to apply; without it the bound alone is named.

        Raises:
            InvalidValue: the datetime is naive, or n is not between 0 and 1000.
        """
        ...

    def to_spec(self) -> str:
        """Give the trigger as canonical text, which `trigger_from_spec` reads back."""
        ...


class Rule(Protocol):
    """What the datetime edge needs of a trigger."""

    @property
    def jitter_us(self) -> int:
        """The exclusive bound of the offset between fire time and due time."""
        ...

    def next_us(self, after_us: Instant) -> Instant | None:
        """Give the first fire time strictly after an instant."""
        ...

    def previous_us(self, before_us: Instant) -> Instant | None:
        """Give the last fire time strictly before an instant."""
        ...

    def to_spec(self) -> str:
        """Give the trigger as canonical text."""
        ...

    def local_text(self, fire_us: Instant) -> str:
        """Give a fire as the clocks of the trigger's zone show it."""
        ...

    def reasons(self, after_us: Instant, fire_us: Instant) -> list[str]:
        """Tell what the zone did to the wall times between the fire before and this one."""
        ...


class DatetimeEdge:
    """The part of every trigger that speaks datetimes; what compares triggers is their text.

    Datetimes are answered in UTC: in another zone, one that falls into a fold equals no time in any other zone,
    not even its own instant.
    """

    __slots__ = ()

    def next(self: Rule, after: datetime) -> datetime | None:
        """Give the first fire time strictly after an aware datetime, in UTC, or None when there is none.

        Raises:
            InvalidValue: the datetime is naive.
        """
        return _datetime(self.next_us(instant_of(after, "after")))

    def previous(self: Rule, before: datetime) -> datetime | None:
        """Give the last fire time strictly before an aware datetime, in UTC, or None when there is none.

        Raises:
            InvalidValue: the datetime is naive.
        """
        return _datetime(self.previous_us(instant_of(before, "before")))

    def explain(self: Rule, after: datetime, n: int = 5, *, schedule_id: int | None = None) -> list[Fire]:
        """Give the next fires with the reasons for each.

        Args:
            after: an aware datetime.
            n: how many fires at most.
            schedule_id: whose jitter to apply; without it the bound alone is named.

        Raises:
            InvalidValue: the datetime is naive, or n is not between 0 and 1000.
        """
        if type(n) is not int or not 0 <= n <= limits.EXPLAINED_MAX:
            raise InvalidValue(f"n: write a whole number of fires from 0 to {limits.EXPLAINED_MAX}")
        fires: list[Fire] = []
        after_us = instant_of(after, "after")
        while len(fires) < n and (fire_us := self.next_us(after_us)) is not None:
            reasons = self.reasons(after_us, fire_us)
            due_us = fire_us
            if self.jitter_us and schedule_id is None:
                reasons.append(f"jitter: due less than {seconds_text(self.jitter_us)} later")
            elif self.jitter_us and schedule_id is not None:
                due_us += jitter_us(self.jitter_us, schedule_id, fire_us)
                reasons.append(f"jitter: due {seconds_text(due_us - fire_us)} later")
            local = self.local_text(fire_us)
            fires.append(Fire(fire_us=fire_us, due_us=due_us, local=local, reasons=tuple(reasons)))
            after_us = fire_us
        return fires

    def __eq__(self: Rule, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_spec() == other.to_spec()

    def __hash__(self: Rule) -> int:
        return hash(self.to_spec())

    def __repr__(self: Rule) -> str:
        return f"trigger_from_spec({self.to_spec()!r})"


def clock_text(fire_us: Instant, offset_s: int) -> str:
    """Give an instant as a clock with this offset shows it, with the offset."""
    shown = to_datetime(fire_us + offset_s * limits.SECOND_US).replace(tzinfo=None)
    sign, size_s = "-" if offset_s < 0 else "+", abs(offset_s)
    seconds = f":{size_s % 60:02}" if size_s % 60 else ""
    return f"{shown.isoformat(sep=' ')}{sign}{size_s // 3_600:02}:{size_s // 60 % 60:02}{seconds}"


def instant_of(moment: datetime, field: str) -> Instant:
    """Return the instant of an aware datetime of any year.

    Raises:
        InvalidValue: not a datetime, or a naive one.
    """
    if not isinstance(moment, datetime):
        raise InvalidValue(f"{field}: a {type(moment).__name__} is no datetime; pass an aware datetime")
    if moment.utcoffset() is None:
        raise InvalidValue(f"{field}: {moment.isoformat()} has no time zone; pass an aware datetime")
    return (moment - _EPOCH) // _MICROSECOND


def seconds_text(span_us: int) -> str:
    """Give a span of time in seconds, without needless zeros."""
    whole, fraction = divmod(span_us, limits.SECOND_US)
    return f"{whole}.{fraction:06}".rstrip("0").rstrip(".") + " s"


def _datetime(instant_us: Instant | None) -> datetime | None:
    return None if instant_us is None else to_datetime(instant_us)
