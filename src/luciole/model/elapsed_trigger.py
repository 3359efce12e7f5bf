"""Triggers that know no wall time: a grid of elapsed time, and one instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from luciole import limits
from luciole.errors import InvalidTrigger
from luciole.model.bounds import UNBOUNDED, Bounds
from luciole.model.fires import DatetimeEdge, clock_text, seconds_text
from luciole.model.instant import Instant
from luciole.model.timeline import FIRST_S, LAST_S
from luciole.model.trigger_spec import spec_text

_FIRST_US: Final = FIRST_S * limits.SECOND_US
_LAST_US: Final = LAST_S * limits.SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class IntervalTrigger(DatetimeEdge):
    """Fires on a fixed grid of elapsed time: the anchor, and every whole number of intervals before and after."""

    interval_us: int
    anchor_us: Instant = 0
    bounds: Bounds = UNBOUNDED

    def __post_init__(self) -> None:
        if not limits.INTERVAL_MIN_US <= self.interval_us <= limits.DURATION_MAX_US:
            raise InvalidTrigger("interval: it lies between 1 ms and 100 years; write a duration such as '30s'")
        self.bounds.check_jitter(self.interval_us)
        if self.bounds.end_us is not None and self.bounds.start_us is not None:
            first_us = self.next_us(self.bounds.start_us - 1)
            if first_us is None:
                raise InvalidTrigger("end: no fire time lies between start and end; write a later end")

    @property
    def jitter_us(self) -> int:
        """The exclusive bound of the offset between fire time and due time; 0 for none."""
        return self.bounds.jitter_us

    @property
    def least_spacing_us(self) -> int:
        """The time between two fires."""
        return self.interval_us

    def next_us(self, after_us: Instant) -> Instant | None:
        """Give the first fire time strictly after an instant, or None when there is none."""
        start_us, end_us = self._range()
        after_us = max(after_us, start_us - 1)
        fire_us = after_us + self.interval_us - (after_us - self.anchor_us) % self.interval_us
        return fire_us if fire_us <= end_us else None

    def previous_us(self, before_us: Instant) -> Instant | None:
        """Give the last fire time strictly before an instant, or None when there is none."""
        start_us, end_us = self._range()
        last_us = min(before_us - 1, end_us)
        fire_us = last_us - (last_us - self.anchor_us) % self.interval_us
        return fire_us if fire_us >= start_us else None

    def count(self, after_us: Instant, until_us: Instant) -> int:
        """Count the fires in (after, until] without listing them."""
        start_us, end_us = self._range()
        after_us, until_us = max(after_us, start_us - 1), min(until_us, end_us)
        until_step = (until_us - self.anchor_us) // self.interval_us
        return max(0, until_step - (after_us - self.anchor_us) // self.interval_us)

    def to_spec(self) -> str:
        """Give the trigger as canonical text, which `trigger_from_spec` reads back."""
        rule = {"kind": "every", "interval_us": self.interval_us, "anchor_us": self.anchor_us}
        return spec_text(rule | self.bounds.to_spec())

    def local_text(self, fire_us: Instant) -> str:
        """Give a fire in UTC."""
        return clock_text(fire_us, 0)

    def reasons(self, after_us: Instant, fire_us: Instant) -> list[str]:
        """Give no reason: elapsed time knows no gap and no fold."""
        del after_us, fire_us
        return []

    def __str__(self) -> str:
        return f"every {seconds_text(self.interval_us)}"

    def _range(self) -> tuple[int, int]:
        start_us, end_us = self.bounds.start_us, self.bounds.end_us
        return _FIRST_US if start_us is None else start_us, _LAST_US if end_us is None else end_us


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OnceTrigger(DatetimeEdge):
    """Fires at one instant."""

    at_us: Instant

    @property
    def jitter_us(self) -> int:
        """No offset: a single instant was asked for."""
        return 0

    @property
    def least_spacing_us(self) -> int:
        """The whole of time: there is no second fire."""
        return _LAST_US - _FIRST_US

    def next_us(self, after_us: Instant) -> Instant | None:
        """Give the instant when it lies strictly after another, else None."""
        return self.at_us if self.at_us > after_us else None

    def previous_us(self, before_us: Instant) -> Instant | None:
        """Give the instant when it lies strictly before another, else None."""
        return self.at_us if self.at_us < before_us else None

    def count(self, after_us: Instant, until_us: Instant) -> int:
        """Tell whether the instant lies in (after, until], as 0 or 1."""
        return int(after_us < self.at_us <= until_us)

    def to_spec(self) -> str:
        """Give the trigger as canonical text, which `trigger_from_spec` reads back."""
        return spec_text({"kind": "once", "at_us": self.at_us})

    def local_text(self, fire_us: Instant) -> str:
        """Give a fire in UTC."""
        return clock_text(fire_us, 0)

    def reasons(self, after_us: Instant, fire_us: Instant) -> list[str]:
        """Give no reason: an instant is what it is."""
        del after_us, fire_us
        return []

    def __str__(self) -> str:
        return f"once at {clock_text(self.at_us, 0)}"
