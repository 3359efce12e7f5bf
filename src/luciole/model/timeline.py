"""Timelines: how the wall times of a zone fall on instants, gaps and folds decided.

A timeline cuts UTC into spans in each of which one offset turns instants into wall times and back. Where a
zone's offset changes it holds short special spans that say what the gap or fold policy makes of the wall
times there. Spans are built once for each stretch of 34 years and kept.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple, Protocol

from luciole import limits
from luciole.model.civil import DAY_S, day_number
from luciole.model.zones import Segment, ZoneRules, zone_rules

Gap = Literal["after", "shift", "skip"]
Fold = Literal["first", "second", "both"]

#: Later than every instant, in seconds: "there is none".
NEVER_S: Final = 1 << 60

#: A fire is never further than this from its wall time read as UTC: the largest offset, and some.
REACH_S: Final = 2 * DAY_S

#: Instants outside are not computed: `datetime` ends there, and every search may look a few days beyond.
FIRST_S: Final = day_number(1, 1, 1) * DAY_S + 4 * REACH_S
LAST_S: Final = day_number(10_000, 1, 1) * DAY_S - 4 * REACH_S

_ERA_BITS: Final = 30  # An era is 2**30 s: about 34 years and 140 spans.


class Walls(Protocol):
    """A set of wall times, in seconds from 1970-01-01 00:00 local time."""

    def next(self, at_s: int) -> int:
        """Give the first wall time at or after `at_s`, or NEVER_S."""
        ...

    def previous(self, at_s: int) -> int:
        """Give the last wall time at or before `at_s`, or -NEVER_S."""
        ...

    def count(self, from_s: int, until_s: int) -> int:
        """Count the wall times in [from_s, until_s) without listing them."""
        ...

    def bits(self, from_s: int, until_s: int) -> int:
        """Give [from_s, until_s) as a bit set: bit k stands for `from_s + k`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Special:
    """What a span near a change of offset fires."""

    offsets_s: tuple[int, ...]  #: wall times under each of these; none: silent
    moved: tuple[tuple[int, int], ...] = ()  #: wall times in a gap that all fire at the span's start


class Span(NamedTuple):
    """A stretch [start_s, end_s) of UTC in which the same rule turns wall times into instants."""

    start_s: int
    end_s: int
    offset_s: int
    special: Special | None  #: None, nearly always: each wall time under `offset_s` fires, nothing else

    def first_fire(self, walls: Walls, at_s: int) -> int:
        """Give the first fire at or after `at_s` (in the span), or some later time when there is none."""
        if self.special is None:
            return walls.next(at_s + self.offset_s) - self.offset_s
        if at_s == self.start_s and any(walls.next(low) < high for low, high in self.special.moved):
            return at_s
        return min((walls.next(at_s + o) - o for o in self.special.offsets_s), default=NEVER_S)

    def last_fire(self, walls: Walls, at_s: int) -> int:
        """Give the last fire at or before `at_s` (in the span), or some earlier time when there is none."""
        if self.special is None:
            return walls.previous(at_s + self.offset_s) - self.offset_s
        found = max((walls.previous(at_s + o) - o for o in self.special.offsets_s), default=-NEVER_S)
        if found < self.start_s and any(walls.next(low) < high for low, high in self.special.moved):
            return self.start_s
        return found

    def fire_count(self, walls: Walls, from_s: int, until_s: int) -> int:
        """Count the fires in [from_s, until_s), which lies in the span."""
        if self.special is None:
            return walls.count(from_s + self.offset_s, until_s + self.offset_s)
        if self.special.moved:  # Such a span is one second long.
            return int(self.first_fire(walls, from_s) < until_s)
        return self.fire_bits(walls, from_s, until_s).bit_count()

    def fire_bits(self, walls: Walls, from_s: int, until_s: int) -> int:
        """Give the fires under every offset of a special span in [from_s, until_s), bit k for `from_s + k`."""
        found = 0
        for offset_s in self.special.offsets_s if self.special else (self.offset_s,):
            found |= walls.bits(from_s + offset_s, until_s + offset_s)
        return found


class _Era(NamedTuple):
    starts_s: list[int]
    spans: list[Span]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """One zone with one gap and one fold policy; turns wall times into fires."""

    rules: ZoneRules
    gap: Gap
    fold: Fold
    _eras: dict[int, _Era] = field(default_factory=dict, init=False, repr=False)

    def next(self, walls: Walls, at_s: int, until_s: int = LAST_S) -> int:
        """Give the first fire in `at_s` to `until_s`, or some later time when there is none.

        Both lie between FIRST_S and LAST_S. The search goes no further than the end.
        """
        starts_s, spans = self._eras.get(at_s >> _ERA_BITS) or self._build(at_s >> _ERA_BITS)
        _, end_s, offset_s, special = spans[bisect_right(starts_s, at_s) - 1]
        if special is None:
            fire_s = walls.next(at_s + offset_s) - offset_s
            if fire_s < end_s:
                return fire_s
        return self._search_forward(walls, at_s, until_s)

    def previous(self, walls: Walls, at_s: int, from_s: int = FIRST_S) -> int:
        """Give the last fire in `from_s` to `at_s`, or some earlier time when there is none."""
        starts_s, spans = self._eras.get(at_s >> _ERA_BITS) or self._build(at_s >> _ERA_BITS)
        start_s, _, offset_s, special = spans[bisect_right(starts_s, at_s) - 1]
        if special is None:
            fire_s = walls.previous(at_s + offset_s) - offset_s
            if fire_s >= start_s:
                return fire_s
        return self._search_backward(walls, at_s, from_s)

    def count(self, walls: Walls, from_s: int, until_s: int) -> int:
        """Count the fires in [from_s, until_s); the cost grows with the years, not with the fires."""
        total = 0
        while from_s < until_s:
            span = self.span_at(from_s)
            end_s = min(span.end_s, until_s)
            total += span.fire_count(walls, from_s, end_s)
            from_s = end_s
        return total

    def span_at(self, at_s: int) -> Span:
        """Give the span that holds an instant."""
        starts_s, spans = self._eras.get(at_s >> _ERA_BITS) or self._build(at_s >> _ERA_BITS)
        return spans[bisect_right(starts_s, at_s) - 1]

    def _search_forward(self, walls: Walls, at_s: int, until_s: int) -> int:
        while at_s <= until_s:
            # No wall time lies in between, so no fire does: step over the years, not through their spans.
            at_s = max(at_s, walls.next(at_s - REACH_S) - REACH_S)
            if at_s > until_s:
                break
            span = self.span_at(at_s)
            fire_s = span.first_fire(walls, at_s)
            if fire_s < span.end_s:
                return fire_s
            at_s = span.end_s
        return NEVER_S

    def _search_backward(self, walls: Walls, at_s: int, from_s: int) -> int:
        while at_s >= from_s:
            at_s = min(at_s, walls.previous(at_s + REACH_S) + REACH_S)
            if at_s < from_s:
                break
            span = self.span_at(at_s)
            fire_s = span.last_fire(walls, at_s)
            if fire_s >= span.start_s:
                return fire_s
            at_s = span.start_s - 1
        return -NEVER_S

    def _build(self, number: int) -> _Era:
        spans = _era_spans(self, number << _ERA_BITS, (number + 1) << _ERA_BITS)
        era = _Era(starts_s=[span.start_s for span in spans], spans=spans)
        self._eras[number] = era  # Two threads may both build it: they store equal values.
        return era


@lru_cache(maxsize=limits.TIMELINES_KEPT)
def timeline(tz: str, gap: Gap, fold: Fold) -> Timeline:
    """Give the one shared timeline of a zone and its policies.

    Raises:
        InvalidTrigger: no such zone.
    """
    return Timeline(rules=zone_rules(tz), gap=gap, fold=fold)


def _era_spans(line: Timeline, from_s: int, until_s: int) -> list[Span]:
    """Cut [from_s, until_s) into spans, neighbours of one kind joined."""
    segments = line.rules.segments(from_s - 2 * REACH_S, until_s + 2 * REACH_S)
    cuts = {from_s, until_s}
    for k in range(1, len(segments)):
        # What a fold or gap does begins and ends where a wall time of one offset meets the change under another.
        at_s = segments[k].start_s
        near = {s.offset_s for s in _near(segments, at_s)}
        cuts.update(at_s + a - b for a in near for b in near)
        cuts.add(at_s + 1)
    spans: list[Span] = []
    for start_s, end_s in pairwise(sorted(cut for cut in cuts if from_s <= cut <= until_s)):
        span = _span(line, segments, start_s, end_s)
        if spans and spans[-1].special is None is span.special and spans[-1].offset_s == span.offset_s:
            span = spans.pop()._replace(end_s=end_s)
        spans.append(span)
    return spans


def _span(line: Timeline, segments: list[Segment], start_s: int, end_s: int) -> Span:
    """Decide what one stretch fires, by looking at its first instant: nothing changes within it."""
    near = _near(segments, start_s)
    offset_s = max((s for s in near if s.start_s <= start_s), key=lambda s: s.start_s).offset_s
    offsets: list[int] = []
    moved: list[tuple[int, int]] = []
    times = _instants(near, start_s + offset_s)
    if line.fold == "both" or start_s == (times[0] if line.fold == "first" else times[-1]):
        offsets.append(offset_s)
    for before, after in pairwise(near):
        size_s = after.offset_s - before.offset_s
        if line.gap == "shift" and after.start_s <= start_s < after.start_s + size_s:
            if not _instants(near, start_s + before.offset_s):
                offsets.append(before.offset_s)
        elif line.gap == "after" and start_s == after.start_s and size_s > 0:
            moved += _holes(near, start_s + before.offset_s, start_s + after.offset_s)
    if len(offsets) == 1 and not moved:
        return Span(start_s, end_s, offsets[0], None)
    return Span(start_s, end_s, offset_s, Special(offsets_s=tuple(offsets), moved=tuple(moved)))


def _near(segments: list[Segment], at_s: int) -> list[Segment]:
    """Give the segments that meet the days around an instant."""
    first = bisect_right(segments, at_s - REACH_S, key=lambda s: s.start_s) - 1
    last = bisect_right(segments, at_s + REACH_S, key=lambda s: s.start_s)
    return segments[max(first, 0) : last]


def _instants(near: list[Segment], wall_s: int) -> list[int]:
    """Give every instant at which the clocks of the zone show a wall time, in order."""
    ends = [*(s.start_s for s in near[1:]), NEVER_S]
    times = [wall_s - s.offset_s for s in near]
    return [t for t, s, end_s in zip(times, near, ends, strict=True) if s.start_s <= t < end_s]


def _holes(near: list[Segment], low: int, high: int) -> list[tuple[int, int]]:
    """Give the parts of [low, high) that no clock of the zone ever shows: all of it, unless changes crowd."""
    edges = {low, high}
    for before, after in pairwise(near):
        edges.update((after.start_s + before.offset_s, after.start_s + after.offset_s))
    inside = sorted(edge for edge in edges if low <= edge <= high)
    return [(a, b) for a, b in pairwise(inside) if not _instants(near, a)]
