"""Zones: the exact offset changes of an IANA zone as integers, from the `tzdata` wheel.

The process's own zone and the host's zone files are never consulted: two nodes with the same wheel agree on
every instant. The wheel's files are read as package data, once per zone, and never change while we run.
"""

from __future__ import annotations

import difflib
import re
import struct
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources

from luciole import limits
from luciole.errors import InvalidTrigger
from luciole.model.civil import DAY_S, day_number, month_length, weekday

_WHEEL = "tzdata"

#: No offset is further from UTC than this; what bounds every search around a change of offset.
OFFSET_MAX_S = 26 * 3_600

_BEGINNING_S = -(1 << 60)  #: where the first segment of a zone starts

_CLOCK = r"[+-]?\d{1,3}(?::\d{2}){0,2}"
_NAME = r"(?:<[A-Za-z0-9+-]+>|[A-Za-z]{3,})"
_DATE = rf"(?:M\d{{1,2}}\.\d\.\d|J?\d{{1,3}})(?:/{_CLOCK})?"
_TAIL = re.compile(rf"{_NAME}({_CLOCK})(?:{_NAME}({_CLOCK})?,({_DATE}),({_DATE}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of time with one offset; it ends where the next segment starts."""

    start_s: int
    offset_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class YearlyDate:
    """One date of a yearly rule: the `week`-th `day` of a month, or a day of the year."""

    kind: str  #: "M" month, week, weekday; "J" day 1-365, 29 February never counted; "" day 0-365
    month: int = 1
    week: int = 1  #: 5 means the last
    day: int = 0
    clock_s: int  #: local time of the change, in seconds from midnight; may be negative or over a day

    def wall_s(self, year: int) -> int:
        """Give the local time of the change in one year, in seconds from 1970-01-01 00:00 local."""
        if self.kind == "M":
            first = day_number(year, self.month, 1)
            day = first + (self.day - weekday(first)) % 7 + 7 * (self.week - 1)
            if day >= first + month_length(year, self.month):
                day -= 7
        elif self.kind == "J":
            # Day 60 is 1 March in every year.
            start = day_number(year, 1, 1) if self.day < 60 else day_number(year, 3, 1) - 59
            day = start + self.day - 1
        else:
            day = day_number(year, 1, 1) + self.day
        return day * DAY_S + self.clock_s


@dataclass(frozen=True, slots=True, kw_only=True)
class YearlyRule:
    """The rule in force after the last listed change; in some zones "summer" is behind the standard time."""

    standard_s: int
    summer_s: int
    begins: YearlyDate
    ends: YearlyDate

    def changes(self, year: int) -> list[tuple[int, int]]:
        """Give the year's changes in order, each as (instant, offset from then on), in seconds."""
        return sorted(
            (
                (self.begins.wall_s(year) - self.standard_s, self.summer_s),
                (self.ends.wall_s(year) - self.summer_s, self.standard_s),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRules:
    """Every change of offset that a zone has had and, as far as is known, will have."""

    name: str
    changes_s: tuple[int, ...]  #: the listed changes, UTC seconds, ascending
    offsets_s: tuple[int, ...]  #: `offsets_s[i]` holds until `changes_s[i]`; one more than changes
    rule: YearlyRule | None  #: what holds after the last listed change; None: its offset stays

    def segments(self, from_s: int, until_s: int) -> list[Segment]:
        """Give the segments that meet [from_s, until_s), in order, neighbours with different offsets."""
        k = bisect_right(self.changes_s, from_s)
        start_s = self.changes_s[k - 1] if k else _BEGINNING_S
        found = [Segment(start_s=start_s, offset_s=self.offsets_s[k])]
        listed = zip(self.changes_s[k:], self.offsets_s[k + 1 :], strict=True)
        for change_s, offset_s in (*listed, *self._ruled(from_s, until_s)):
            if change_s >= until_s:
                break
            if change_s <= from_s or change_s == found[-1].start_s:
                found.pop()
            if not found or found[-1].offset_s != offset_s:
                found.append(Segment(start_s=change_s, offset_s=offset_s))
        return found

    def offset_at(self, instant_s: int) -> int:
        """Give the offset from UTC at an instant, in seconds east."""
        return self.segments(instant_s, instant_s + 1)[0].offset_s

    def _ruled(self, from_s: int, until_s: int) -> list[tuple[int, int]]:
        last_s = self.changes_s[-1] if self.changes_s else _BEGINNING_S
        if self.rule is None or until_s <= last_s:
            return []
        # One year more on either side: the change before `from_s` gives the offset to begin with.
        years = range(_about_year(max(from_s, last_s)) - 2, _about_year(until_s) + 2)
        return [change for year in years for change in self.rule.changes(year) if change[0] > last_s]


def _about_year(instant_s: int) -> int:
    """Give the instant's year, wrong by one at most: near enough to start a search."""
    return 1970 + instant_s // DAY_S * 400 // 146_097


@cache
def zones_version() -> str:
    """Give the version of the zone rules, such as "2026f"; nodes that differ may disagree about the future."""
    return str(import_module(_WHEEL).IANA_VERSION)


@cache
def zone_names() -> frozenset[str]:
    """Give every zone name the wheel knows."""
    return frozenset(resources.files(_WHEEL).joinpath("zones").read_text("ascii").split())


@cache
def zone_rules(name: str) -> ZoneRules:
    """Load a zone by its IANA name.

    Raises:
        InvalidTrigger: the wheel knows no such zone; the message offers the closest names.
    """
    check_zone(name)
    data = resources.files(_WHEEL).joinpath("zoneinfo", *name.split("/")).read_bytes()
    return parse_zone(name, data)


def check_zone(name: object) -> str:
    """Return the name when it is a zone of the wheel, else refuse it with the closest names."""
    if not isinstance(name, str):
        raise InvalidTrigger(f"tz: a zone is named by text such as 'Europe/Berlin', not by a {type(name).__name__}")
    if name in zone_names():
        return name
    close = _close_names(name) if len(name) <= limits.ZONE_LENGTH_MAX else []
    hint = f"did you mean {' or '.join(close)}?" if close else "write a name such as 'Europe/Berlin' or 'UTC'"
    raise InvalidTrigger(f"tz: {name[: limits.ZONE_LENGTH_MAX]!a} is no IANA zone; {hint}")


def _close_names(name: str) -> list[str]:
    by_folded: dict[str, str] = {}
    for known in sorted(zone_names()):
        by_folded.setdefault(known.casefold(), known)
        by_folded.setdefault(known.rpartition("/")[2].casefold(), known)
    folded = name.strip().replace(" ", "_").casefold()
    found = difflib.get_close_matches(folded, by_folded, n=5, cutoff=0.75)
    return list(dict.fromkeys(by_folded[key] for key in found))[:3]


def parse_zone(name: str, data: bytes) -> ZoneRules:
    """Read the zone file format of RFC 9636 (versions 2 to 4: the block of 64-bit times and the footer)."""
    _, at = _block(data, 0, time_size=4)
    (times, kinds, types), at = _block(data, at, time_size=8)
    footer = data[at:].strip(b"\n").decode("ascii")
    offsets = [types[0], *(types[kind] for kind in kinds)]
    standard_s, rule = _parse_tail(footer)
    if not times:
        offsets = [standard_s]
    return ZoneRules(name=name, changes_s=tuple(times), offsets_s=tuple(offsets), rule=rule)


def _block(data: bytes, at: int, *, time_size: int) -> tuple[tuple[list[int], bytes, list[int]], int]:
    """Read one header and its data: (change times, their type numbers, offsets of the types), and the end."""
    isut, isstd, leaps, times, types, chars = struct.unpack_from(">6l", data, at + 20)
    at += 44
    changes = list(struct.unpack_from(f">{times}{'l' if time_size == 4 else 'q'}", data, at))
    at += times * time_size
    kinds = data[at : at + times]
    at += times
    offsets = [struct.unpack_from(">l", data, at + 6 * k)[0] for k in range(types)]
    at += 6 * types + chars + leaps * (time_size + 4) + isstd + isut
    return (changes, kinds, offsets), at


def _parse_tail(text: str) -> tuple[int, YearlyRule | None]:
    """Read the footer: the POSIX text for what holds after the last listed change."""
    found = _TAIL.fullmatch(text)
    assert found, text  # The wheel is a dependency, not input.
    standard, summer, begins, ends = found.groups()
    standard_s = -_clock_s(standard)  # POSIX counts west of Greenwich as positive.
    if begins is None:
        return standard_s, None
    summer_s = -_clock_s(summer) if summer else standard_s + 3_600
    rule = YearlyRule(standard_s=standard_s, summer_s=summer_s, begins=_parse_date(begins), ends=_parse_date(ends))
    return standard_s, rule


def _parse_date(text: str) -> YearlyDate:
    date, _, clock = text.partition("/")
    clock_s = _clock_s(clock or "2")
    if date.startswith("M"):
        month, week, day = (int(part) for part in date[1:].split("."))
        return YearlyDate(kind="M", month=month, week=week, day=day, clock_s=clock_s)
    kind = "J" if date.startswith("J") else ""
    return YearlyDate(kind=kind, day=int(date.removeprefix("J")), clock_s=clock_s)


def _clock_s(text: str) -> int:
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    size_s = sum(part * unit for part, unit in zip(parts, (3_600, 60, 1), strict=False))
    return -size_s if text.startswith("-") else size_s
