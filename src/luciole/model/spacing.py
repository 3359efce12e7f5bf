"""Spacing: the shortest time between two fires, changes of offset included."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from luciole import limits
from luciole.model.civil import DAY_S, day_number
from luciole.model.timeline import REACH_S, Timeline, Walls

# A trigger plans what comes, so an odd change in a zone's past must not narrow what is allowed today; 28 years
# on, every kind of year has met the yearly rule.
_SINCE_S = day_number(2020, 1, 1) * DAY_S
_RULE_YEARS_S = 29 * 366 * DAY_S


class SpacedWalls(Walls, Protocol):
    """Wall times that know their own spacing."""

    def least_spacing_s(self) -> int:
        """Give the shortest time between two neighbours, as clocks without daylight saving count it."""
        ...


@lru_cache(maxsize=limits.TRIGGERS_KEPT)
def least_spacing_s(line: Timeline, walls: SpacedWalls) -> int:
    """Give the shortest time between two neighbouring fires from 2020 on, in seconds.

    Within a span of one offset fires are as far apart as their wall times, so only pairs across the border of
    two spans, and spans with wall times under two offsets, can be closer.
    """
    least = walls.least_spacing_s()
    until_s = max((_SINCE_S, *line.rules.changes_s[-1:])) + _RULE_YEARS_S
    for change in line.rules.segments(_SINCE_S, until_s)[1:]:
        at_s = change.start_s - REACH_S
        while at_s < change.start_s + REACH_S and least > 1:
            span = line.span_at(at_s)
            last_s, next_s = line.previous(walls, span.end_s - 1), line.next(walls, span.end_s)
            least = min(least, next_s - last_s)
            if span.special and len(span.special.offsets_s) > 1:
                least = min(least, _closest(span.fire_bits(walls, span.start_s, span.end_s), least))
            at_s = span.end_s
    return least


def _closest(fires: int, limit: int) -> int:
    """Give the shortest distance between two members of a bit set, if it is under the limit."""
    low = (fires & -fires).bit_length()
    return next((gap for gap in range(1, min(limit, fires.bit_length() - low + 1)) if fires & (fires >> gap)), limit)
