"""Triggers: the public constructors, and the way back from stored text."""

from __future__ import annotations

from datetime import date, datetime
from functools import lru_cache
from typing import Literal, cast, get_args

from luciole import limits
from luciole.errors import InvalidTrigger
from luciole.model.bounds import make_bounds, read_duration, read_instant
from luciole.model.calendar_walls import CalendarWalls, calendar_walls
from luciole.model.cron import CronWalls, cron_walls
from luciole.model.cron_parse import Seconds, shown
from luciole.model.duration import Duration
from luciole.model.elapsed_trigger import IntervalTrigger, OnceTrigger
from luciole.model.fires import Fire, Trigger
from luciole.model.jitter import jitter_us
from luciole.model.timeline import Fold, Gap
from luciole.model.trigger_spec import SpecFields
from luciole.model.wall_trigger import WallTrigger

__all__ = ["Fire", "Trigger", "calendar_every", "cron", "every", "jitter_us", "once", "trigger_from_spec"]

GapPolicy = Literal["auto", Gap]
FoldPolicy = Literal["auto", Fold]


def cron(
    expression: str,
    *,
    tz: str = "UTC",
    gap: GapPolicy = "auto",
    fold: FoldPolicy = "auto",
    seconds: Seconds | None = None,
    jitter: Duration | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> WallTrigger:
    """Fire at the wall times that a cron expression names.

    Args:
        expression: minute, hour, day of month, month, day of week; or an alias such as "@daily".
        tz: the IANA zone whose clocks are meant.
        gap: what becomes of a wall time that does not exist: "after" (the first instant after the gap), "shift" (as
            late as the gap is long) or "skip". "auto" is "skip" when the hour field starts with `*` or names all 24
            hours, else "after".
        fold: which of two equal wall times fires: "first", "second" or "both". "auto" is "both" when the hour
            field starts with `*` or names all 24 hours, else "first".
        seconds: where a sixth field holds the seconds: "first" or "last"; None for five fields.
        jitter: the bound of the offset between fire time and due time; smaller than the least spacing.
        start: no fire before; an aware datetime.
        end: no fire after; an aware datetime.

    Raises:
        InvalidTrigger: the expression is not understood, ambiguous, or never fires; or another field is wrong.
    """
    walls = cron_walls(expression, seconds)
    return WallTrigger(
        walls=walls,
        tz=tz,
        gap=_gap(gap, hour_open=walls.fields.hour_open),
        fold=_fold(fold, hour_open=walls.fields.hour_open),
        bounds=make_bounds(start=start, end=end, jitter=jitter),
    )


def every(
    interval: Duration,
    *,
    anchor: datetime | None = None,
    jitter: Duration | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> IntervalTrigger:
    """Fire on a fixed grid of elapsed time, whatever the clocks of a zone do.

    Args:
        interval: from 1 ms to 100 years: "30s", "1h30m", a number of seconds, a timedelta.
        anchor: an aware datetime on the grid, which reaches to both sides of it; default 1970-01-01 00:00 UTC.
        jitter: the bound of the offset between fire time and due time; smaller than the interval.
        start: no fire before; an aware datetime.
        end: no fire after; an aware datetime.

    Raises:
        InvalidTrigger: a field is wrong; the message names it.
    """
    return IntervalTrigger(
        interval_us=read_duration(interval, "interval"),
        anchor_us=0 if anchor is None else read_instant(anchor, "anchor"),
        bounds=make_bounds(start=start, end=end, jitter=jitter),
    )


def calendar_every(  # noqa: PLR0913 - each is a word of the language in which people say when
    *,
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    at: str = "00:00",
    tz: str = "UTC",
    gap: GapPolicy = "auto",
    fold: FoldPolicy = "auto",
    anchor: date | str | None = None,
    jitter: Duration | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> WallTrigger:
    """Fire at one wall time every so many years and months, or every so many weeks and days.

    Steps count from the anchor, so nothing drifts. A month that lacks the anchor's day fires on its last day: from
    31 January by a month, 28 February, then 31 March.

    Args:
        years: added to `months` as twelve each.
        months: the step; not together with weeks or days.
        weeks: added to `days` as seven each.
        days: the step; not together with years or months.
        at: the wall time, "HH:MM" or "HH:MM:SS".
        tz: the IANA zone whose clocks are meant.
        gap: as for `cron`; "auto" is "after".
        fold: as for `cron`; "auto" is "first".
        anchor: a day that fires, which the steps count from in both directions; default Monday 2024-01-01.
        jitter: the bound of the offset between fire time and due time; smaller than the least spacing.
        start: no fire before; an aware datetime.
        end: no fire after; an aware datetime.

    Raises:
        InvalidTrigger: a field is wrong; the message names it.
    """
    walls = calendar_walls(
        months=_steps(years, "years") * 12 + _steps(months, "months"),
        days=_steps(weeks, "weeks") * 7 + _steps(days, "days"),
        at=at,
        anchor=anchor,
    )
    return WallTrigger(
        walls=walls,
        tz=tz,
        gap=_gap(gap, hour_open=False),
        fold=_fold(fold, hour_open=False),
        bounds=make_bounds(start=start, end=end, jitter=jitter),
    )


def once(at: datetime) -> OnceTrigger:
    """Fire at one instant, given as an aware datetime.

    Raises:
        InvalidTrigger: the datetime is naive, or outside the years 1900 to 2200.
    """
    return OnceTrigger(at_us=read_instant(at, "at"))


def trigger_from_spec(text: str) -> Trigger:
    """Give the trigger that `to_spec` wrote down, the same object for the same text while it is kept.

    Raises:
        InvalidTrigger: the text is none of ours, or means a trigger that can't be.
    """
    if type(text) is not str:
        SpecFields(text)  # Refuses what is no text before a cache has to hash it.
    return _read_spec(text)


@lru_cache(maxsize=limits.TRIGGERS_KEPT)
def _read_spec(text: str) -> Trigger:
    fields = SpecFields(text)
    kind = fields.text("kind")
    trigger: Trigger
    if kind == "once":
        trigger = OnceTrigger(at_us=fields.instant("at_us"))
    elif kind == "every":
        trigger = IntervalTrigger(
            interval_us=fields.whole("interval_us", 0, limits.DURATION_MAX_US),
            anchor_us=fields.instant("anchor_us"),
            bounds=fields.bounds(),
        )
    elif kind == "cron":
        trigger = _wall_trigger(fields, cron_walls(fields.text("expression"), fields.optional_text("seconds")))
    elif kind == "calendar":
        walls = calendar_walls(
            months=fields.whole("months", 0, limits.CALENDAR_MONTHS_MAX),
            days=fields.whole("days", 0, limits.CALENDAR_DAYS_MAX),
            at=fields.text("at"),
            anchor=fields.text("anchor"),
        )
        trigger = _wall_trigger(fields, walls)
    else:
        raise InvalidTrigger(f"kind: {kind[:40]!a} is no kind of trigger; write once, every, cron or calendar")
    fields.finish()
    return trigger


def _wall_trigger(fields: SpecFields, walls: CronWalls | CalendarWalls) -> WallTrigger:
    return WallTrigger(
        walls=walls,
        tz=fields.text("tz"),
        gap=_gap(fields.text("gap"), hour_open=False),
        fold=_fold(fields.text("fold"), hour_open=False),
        bounds=fields.bounds(),
    )


def _gap(policy: str, *, hour_open: bool) -> Gap:
    if policy == "auto":
        return "skip" if hour_open else "after"
    return cast("Gap", _policy("gap", policy, get_args(Gap)))


def _fold(policy: str, *, hour_open: bool) -> Fold:
    if policy == "auto":
        return "both" if hour_open else "first"
    return cast("Fold", _policy("fold", policy, get_args(Fold)))


def _policy(name: str, policy: object, known: tuple[str, ...]) -> str:
    for word in known:
        if policy == word:
            return word
    raise InvalidTrigger(f"{name}: {shown(policy)} is no policy; write one of auto, {', '.join(known)}")


def _steps(value: object, name: str) -> int:
    if type(value) is not int or not 0 <= value <= limits.CALENDAR_DAYS_MAX:
        raise InvalidTrigger(f"{name}: write a whole number from 0 to {limits.CALENDAR_DAYS_MAX}, not {shown(value)}")
    return value
