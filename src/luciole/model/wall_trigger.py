"""Triggers that follow the clocks of a zone: cron and calendar intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from luciole import limits
from luciole.errors import InvalidTrigger
from luciole.model.bounds import UNBOUNDED, Bounds
from luciole.model.calendar_walls import CalendarWalls
from luciole.model.civil import DAY_S, day_number
from luciole.model.cron import CronWalls
from luciole.model.explain import wall_reasons
from luciole.model.fires import DatetimeEdge, clock_text
from luciole.model.instant import Instant
from luciole.model.spacing import least_spacing_s
from luciole.model.timeline import FIRST_S, LAST_S, Fold, Gap, Timeline, timeline
from luciole.model.trigger_spec import spec_text

_SECOND_US: Final = limits.SECOND_US

# A rule whose every wall time falls into a gap that is skipped must show itself within one turn of the calendar.
_PROBE_FROM_S: Final = day_number(2020, 1, 1) * DAY_S
_PROBE_UNTIL_S: Final = day_number(2421, 1, 1) * DAY_S


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class WallTrigger(DatetimeEdge):
    """Fires at the wall times of a rule, as a zone's clocks show them."""

    walls: CronWalls | CalendarWalls
    tz: str  #: IANA name
    gap: Gap
    fold: Fold
    bounds: Bounds = UNBOUNDED
    _line: Timeline = field(init=False)
    _first_s: int = field(init=False)  #: no fire before, from `bounds` or from what can be computed
    _last_s: int = field(init=False)
    _spec: str = field(init=False)

    def __post_init__(self) -> None:
        start_us, end_us = self.bounds.start_us, self.bounds.end_us
        first_s = FIRST_S if start_us is None else max(FIRST_S, -(-start_us // _SECOND_US))
        last_s = LAST_S if end_us is None else min(LAST_S, end_us // _SECOND_US)
        for name, value in (
            ("_line", timeline(self.tz, self.gap, self.fold)),
            ("_first_s", first_s),
            ("_last_s", last_s),
            ("_spec", self._make_spec()),
        ):
            object.__setattr__(self, name, value)
        self._check()

    @property
    def jitter_us(self) -> int:
        """The exclusive bound of the offset between fire time and due time; 0 for none."""
        return self.bounds.jitter_us

    @property
    def least_spacing_us(self) -> int:
        """The shortest time between two fires from 2020 on."""
        return least_spacing_s(self._line, self.walls) * _SECOND_US

    def next_us(self, after_us: Instant) -> Instant | None:
        """Give the first fire time strictly after an instant, or None when there is none."""
        at_s = after_us // _SECOND_US + 1
        at_s = max(at_s, self._first_s)
        if at_s > self._last_s:
            return None
        fire_s = self._line.next(self.walls, at_s, self._last_s)
        return fire_s * _SECOND_US if fire_s <= self._last_s else None

    def previous_us(self, before_us: Instant) -> Instant | None:
        """Give the last fire time strictly before an instant, or None when there is none."""
        at_s = (before_us - 1) // _SECOND_US
        at_s = min(at_s, self._last_s)
        if at_s < self._first_s:
            return None
        fire_s = self._line.previous(self.walls, at_s, self._first_s)
        return fire_s * _SECOND_US if fire_s >= self._first_s else None

    def count(self, after_us: Instant, until_us: Instant) -> int:
        """Count the fires in (after, until]; the cost grows with the years, not with the fires."""
        from_s = max(after_us // _SECOND_US, self._first_s - 1) + 1
        until_s = min(until_us // _SECOND_US, self._last_s) + 1
        return self._line.count(self.walls, from_s, until_s)

    def to_spec(self) -> str:
        """Give the trigger as canonical text, which `trigger_from_spec` reads back."""
        return self._spec

    def local_text(self, fire_us: Instant) -> str:
        """Give a fire as the clocks of the zone show it."""
        return clock_text(fire_us, self._line.rules.offset_at(fire_us // _SECOND_US))

    def reasons(self, after_us: Instant, fire_us: Instant) -> list[str]:
        """Tell what the zone did to the wall times between the fire before and this one."""
        return wall_reasons(self._line, self.walls, after_us // _SECOND_US, fire_us // _SECOND_US)

    def __str__(self) -> str:
        return f"{self.walls} {self.tz}"

    def _make_spec(self) -> str:
        where = {"tz": self.tz, "gap": self.gap, "fold": self.fold}
        return spec_text({**self.walls.to_spec(), **where, **self.bounds.to_spec()})

    def _check(self) -> None:
        if self.bounds.start_us is not None and self.next_us(self.bounds.start_us - 1) is None:
            raise InvalidTrigger("end: no fire time lies between start and end; write a later end")
        if self.gap == "skip" and self._line.next(self.walls, _PROBE_FROM_S, _PROBE_UNTIL_S) > _PROBE_UNTIL_S:
            raise InvalidTrigger(
                f"gap: every wall time of this rule falls into a gap of {self.tz}, and gap='skip' drops it; "
                "write gap='after'",
            )
        if self.jitter_us:
            self.bounds.check_jitter(self.least_spacing_us)
