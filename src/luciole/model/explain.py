"""Reasons: what the changes of a zone's offset did to the wall times around one fire."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from luciole.model.civil import DAY_S
from luciole.model.instant import to_datetime
from luciole.model.timeline import NEVER_S, REACH_S, Timeline, Walls
from luciole.model.zones import Segment

_LISTED_MAX: Final = 3


def wall_reasons(line: Timeline, walls: Walls, after_s: int, fire_s: int) -> list[str]:
    """Tell why a fire is where it is, and which wall times since `after_s` came to nothing.

    Args:
        line: the zone with its policies.
        walls: the wall times of the trigger.
        after_s: the fire before, or where the look began.
        fire_s: the fire.
    """
    from_s = max(after_s - REACH_S, fire_s - 50 * 366 * DAY_S)
    segments = line.rules.segments(from_s, fire_s + REACH_S)
    found: list[str] = []
    for before, after in pairwise(segments):
        if after.offset_s > before.offset_s:
            found += _gap(line, walls, before, after, (after_s, fire_s))
        else:
            found += _fold(before, after, fire_s)
    return found


def _gap(line: Timeline, walls: Walls, before: Segment, after: Segment, span: tuple[int, int]) -> list[str]:
    after_s, fire_s = span
    at_s, low, high = after.start_s, after.start_s + before.offset_s, after.start_s + after.offset_s
    if walls.next(low) >= high:
        return []
    lost, verb = _listed(walls, low, high)
    if line.gap == "skip":
        if after_s < at_s <= fire_s:
            return [f"gap: {lost} on {_date(low)} {verb} not exist, skipped"]
    elif line.gap == "after":
        if fire_s == at_s:
            together = ", together with the regular one" if walls.next(high) == high else ""
            return [f"gap: {lost} {verb} not exist, moved to {_time(high)}{together}"]
    elif at_s <= fire_s < at_s + high - low and walls.next(fire_s + before.offset_s) == fire_s + before.offset_s:
        lost = _time(fire_s + before.offset_s)
        return [f"gap: {lost} does not exist, moved to {_time(fire_s + after.offset_s)}"]
    return []


def _fold(before: Segment, after: Segment, fire_s: int) -> list[str]:
    size_s = before.offset_s - after.offset_s
    if after.start_s - size_s <= fire_s < after.start_s:
        return [f"fold: first of two {_time(fire_s + before.offset_s)}"]
    if after.start_s <= fire_s < after.start_s + size_s:
        return [f"fold: second of two {_time(fire_s + after.offset_s)}"]
    return []


def _listed(walls: Walls, low: int, high: int) -> tuple[str, str]:
    """Name the wall times in [low, high), the first few in words, and the verb that agrees with them."""
    count = walls.count(low, high)
    shown: list[str] = []
    wall_s = walls.next(low)
    while wall_s < min(high, NEVER_S) and len(shown) < _LISTED_MAX:
        shown.append(_time(wall_s))
        wall_s = walls.next(wall_s + 1)
    if count > len(shown):
        shown.append(f"{count - len(shown)} more")
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))), "does" if count == 1 else "do"


def _time(wall_s: int) -> str:
    shown = to_datetime(wall_s * 1_000_000)
    return f"{shown:%H:%M:%S}" if shown.second else f"{shown:%H:%M}"


def _date(wall_s: int) -> str:
    return to_datetime(wall_s * 1_000_000).date().isoformat()
