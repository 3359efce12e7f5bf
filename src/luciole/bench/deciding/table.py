"""A comparison for people, as Markdown."""

from collections.abc import Iterator
from math import isfinite

from luciole.bench.deciding.comparing import Comparison, Row, signed
from luciole.bench.result import Result

_ARROWS = {"higher": "up", "lower": "down", "zero": "0", "none": "", "": ""}


def table(old: Result, new: Result, comparison: Comparison) -> str:
    """Return the page of a comparison: what was compared, its figures, what forbids or allowed it."""
    lines = [
        f"# {new.profile} on {new.backend.get('name')}: NEW against OLD",
        "",
        f"OLD {_origin(old)}; NEW {_origin(new)}.",
        "",
    ]
    lines += [f"- {text}" for text in comparison.differences]
    lines += [""] if comparison.differences else []
    lines += list(_rows(comparison))
    return "\n".join(lines).rstrip()


def _rows(comparison: Comparison) -> Iterator[str]:
    if not comparison.rows:
        return
    yield "| figure | old | new | change | better | may be worse by | | |"
    yield "|---|--:|--:|--:|---|--:|---|---|"
    for row in comparison.rows:
        yield "| " + " | ".join(_cells(row)) + " |"


def _cells(row: Row) -> list[str]:
    found = f"**{row.found.value}**" if row.found.value.isupper() else row.found.value
    return [
        f"{row.name}{f' ({row.unit})' if row.unit else ''}",
        number(row.old),
        number(row.new),
        signed(row.change) if row.change is None or isfinite(row.change) else "from 0",
        _ARROWS[row.direction],
        "" if row.threshold is None else f"{row.threshold * 100:g} %",
        found,
        row.note,
    ]


def number(value: float | None) -> str:
    """Return a figure with about four digits."""
    if value is None:
        return "-"
    if abs(value) >= 1_000:  # noqa: PLR2004 - with so many digits before the point none is needed behind it
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _origin(result: Result) -> str:
    revision = str(result.product.get("revision"))[:12]
    dirty = ", changed" if result.product.get("dirty") else ""
    return f"is revision {revision}{dirty} of {result.started[:16]}Z with {len(result.repeats)} repeats"
