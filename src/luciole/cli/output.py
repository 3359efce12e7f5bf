"""What people and programs read: aligned tables, lines of facts, JSON, times in words."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from luciole import limits
from luciole.model.execution import ExecutionState
from luciole.model.instant import Instant, to_datetime

_WIDTH_MIN = 60
#: What a column keeps of its text when the terminal is narrow.
_COLUMN_MIN = 8
_UNITS = (("d", limits.DAY_US), ("h", limits.HOUR_US), ("min", limits.MINUTE_US), ("s", limits.SECOND_US))

_COLORS = {
    "ok": "green",
    "active": "green",
    "succeeded": "green",
    "running": "cyan",
    "warn": "yellow",
    "paused": "yellow",
    "parked": "yellow",
    "retry_wait": "yellow",
    "bad": "red",
    "failed": "red",
    "timed_out": "red",
    "lost": "red",
    "quarantined": "red",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    title: str
    right: bool = False  #: numbers stand at the right
    shrinks: bool = False  #: gives way when the terminal is narrow


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Print rows under their titles, as wide as the terminal; without rows, say so.

    Args:
        columns: the columns.
        rows: one text for each column.
        empty: what to say when there are none.
    """
    if not rows:
        click.echo(empty)
        return
    cells = [[printable(text) for text in row] for row in rows]
    widths = [max(len(column.title), *(len(row[place]) for row in cells)) for place, column in enumerate(columns)]
    _shrink(columns, widths)
    click.secho("  ".join(_fit(c.title.upper(), w, c) for c, w in zip(columns, widths, strict=True)).rstrip(), dim=True)
    for row in cells:
        parts = zip(columns, widths, row, strict=True)
        click.echo("  ".join(color_word(_fit(text, width, column)) for column, width, text in parts).rstrip())


def print_facts(facts: Mapping[str, str | None]) -> None:
    """Print one named fact a line; those that are None are left out."""
    shown = {name: text for name, text in facts.items() if text is not None}
    width = max(map(len, shown), default=0)
    for name, text in shown.items():
        click.echo(click.style(f"{name:<{width}}", dim=True) + f"  {color_word(printable(text))}")


def print_json(document: Any) -> None:  # noqa: ANN401 - any JSON value
    """Print a JSON document for programs."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def print_rows(
    rows: Iterable[Any],
    document: Callable[[Any], dict[str, Any]],
    columns: Sequence[Column],
    cells: Callable[[Any], Sequence[str]],
    *,
    as_json: bool,
    empty: str,
) -> None:
    """Print rows as JSON or as a table."""
    found = list(rows)
    if as_json:
        print_json([document(row) for row in found])
    else:
        print_table(columns, [cells(row) for row in found], empty=empty)


def state_word(state: ExecutionState) -> str:
    """Return the word for an execution's state."""
    return state.name.lower()


def color_word(text: str) -> str:
    """Return a text in the colour of the state that it names."""
    color = _COLORS.get(text.strip())
    return click.style(text, fg=color) if color else text


def moment(instant: Instant | None) -> str:
    """Return an instant as a person reads it: UTC, to the second."""
    return "-" if instant is None else f"{to_datetime(instant):%Y-%m-%d %H:%M:%S}Z"


def span(duration_us: int) -> str:
    """Return a duration in the two largest units that it has, such as "2 h 5 min" or "340 ms"."""
    rest = abs(duration_us)
    if rest < limits.SECOND_US:
        return f"{rest // limits.MS_US} ms"
    parts: list[str] = []
    for unit, size_us in _UNITS:
        count, rest = divmod(rest, size_us)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts[:2])


def distance(instant: Instant | None, now_us: Instant) -> str:
    """Return how far an instant is away: "in 5 min", "3 s ago"."""
    if instant is None:
        return "-"
    return f"in {span(instant - now_us)}" if instant > now_us else f"{span(now_us - instant)} ago"


def first_line(text: str | None) -> str:
    """Return what an error says before its traceback; nothing of none."""
    return (text or "").strip().partition("\n")[0]


def printable(text: str) -> str:
    """Return a text without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def _shrink(columns: Sequence[Column], widths: list[int]) -> None:
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return  # A program or a file reads along: nothing is cut.
    room = max(_WIDTH_MIN, shutil.get_terminal_size((100, 24)).columns)
    while (over := sum(widths) + 2 * (len(widths) - 1) - room) > 0:
        places = [n for n, column in enumerate(columns) if column.shrinks and widths[n] > _COLUMN_MIN]
        if not places:
            return
        widest = max(places, key=lambda n: widths[n])
        widths[widest] = max(_COLUMN_MIN, widths[widest] - over)


def _fit(text: str, width: int, column: Column) -> str:
    if len(text) > width:
        text = text[: width - 1] + "…"
    return text.rjust(width) if column.right else text.ljust(width)
