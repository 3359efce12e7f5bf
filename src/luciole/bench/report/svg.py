"""Charts as SVG inside the page: colours come from its style sheet, so that dark mode and print reach them, too."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from luciole.bench.report.markup import Markup, join, tag
from luciole.bench.report.scales import Linear, above, short, ticks

#: Colours that the style sheet has; more lines use them again.
COLOURS = 8

WIDTH = 760
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 24, 30

#: Letters of axes and bars are this wide at most.
_LETTER = 6.6


class Line(NamedTuple):
    """One line of a chart."""

    name: str
    points: Sequence[tuple[float, float]]
    steps: bool = False  #: it stays until the next point, as a counter does


class Span(NamedTuple):
    """A shaded part of a time axis."""

    name: str
    begin: float
    end: float


class Part(NamedTuple):
    """A part of a stacked bar."""

    name: str
    size: float
    shown: str  #: what its title says besides the name
    colour: int


def chart(name: str, description: str, height: float, *children: str, width: float = WIDTH) -> Markup:
    """Return a drawing with a name and a description for who can't see it."""
    return tag(
        "svg",
        tag("title", name),
        tag("desc", description),
        *children,
        view_box=f"0 0 {width:g} {height:g}",
        role="img",
        class_="chart",
        data_chart=name,
    )


def colour(index: int) -> str:
    """Return the class of a colour."""
    return f"c{index % COLOURS}"


def legend(names: Sequence[str]) -> Markup:
    """Return the names of lines or parts beside their colours."""
    return tag(
        "ul",
        *(tag("li", tag("span", "", class_=f"key {colour(index)}"), name) for index, name in enumerate(names)),
        class_="legend",
    )


def lines(  # noqa: PLR0913 - each is one fact about the chart
    name: str,
    drawn: Sequence[Line],
    *,
    unit: str,
    x_unit: str = "s",
    spans: Sequence[Span] = (),
    x_range: tuple[float, float] | None = None,
    height: float = 190,
    x_tick: Callable[[float], str] = short,
    x_ticks: Sequence[float] | None = None,
) -> Markup:
    """Return lines over a common axis.

    Args:
        name: of the chart.
        drawn: the lines; those of less than one point are left out.
        unit: of the values.
        x_unit: of the axis below.
        spans: what is shaded behind them.
        x_range: what of the axis is shown; None: all that lines have.
        height: of the drawing.
        x_tick: writes a value of the axis below.
        x_ticks: the values that it writes; None: round ones.
    """
    everything = [point for line in drawn for point in line.points]
    low, high = x_range or (min((x for x, _ in everything), default=0), max((x for x, _ in everything), default=1))
    top = above(max((y for x, y in everything if low <= x <= high), default=1))
    across = Linear(low, high, _LEFT, WIDTH - _RIGHT)
    up = Linear(0, top, height - _BOTTOM, _TOP)
    marks = [value for value in (x_ticks if x_ticks is not None else ticks(low, high, 8)) if low <= value <= high]
    return chart(
        name,
        f"{', '.join(line.name for line in drawn)} in {unit}, over {x_unit}",
        height,
        *_shades(spans, across, height),
        *_rows(up, top, unit),
        *(
            tag("text", x_tick(value), x=across(value), y=height - _BOTTOM + 16, class_="tick", text_anchor="middle")
            for value in marks
        ),
        tag("text", x_unit, x=WIDTH - _RIGHT, y=height - 2, class_="tick", text_anchor="end"),
        *(
            tag(
                "path",
                tag("title", line.name),
                d=_path([(across(x), up(y)) for x, y in line.points if low <= x <= high], steps=line.steps),
                class_=f"line {colour(index)}",
            )
            for index, line in enumerate(drawn)
            if line.points
        ),
    )


def bars(name: str, rows: Sequence[tuple[str, Sequence[Part]]], *, whole: float, unit: str) -> Markup:
    """Return horizontal stacked bars, one a row, on a common scale.

    Args:
        name: of the chart.
        rows: each with its name and its parts.
        whole: the length of the axis.
        unit: of the sizes.
    """
    row_height, bar_height, left = 46, 22, 4
    across = Linear(0, whole or 1, left, WIDTH - _RIGHT)
    drawn: list[Markup] = []
    for number, (label, parts) in enumerate(rows):
        top = number * row_height
        drawn.append(tag("text", label, x=left, y=top + 13, class_="label"))
        at = 0.0
        for part in parts:
            width = across(part.size) - across(0)
            drawn.append(_part(part, across(at), top + 18, width, bar_height))
            at += part.size
    height = len(rows) * row_height + 22
    drawn += [
        tag("text", f"{short(value)} {unit}", x=across(value), y=height - 6, class_="tick", text_anchor="middle")
        for value in ticks(0, whole, 6)[1:-1]
    ]
    return chart(name, f"stacked bars in {unit}: {', '.join(label for label, _ in rows)}", height, *drawn)


def _part(part: Part, x: float, y: float, width: float, height: float) -> Markup:
    label = f"{part.name} {part.shown}"
    fits = next((words for words in (label, part.name) if width > len(words) * _LETTER + 8), None)
    return tag(
        "g",
        tag("title", label),
        tag("rect", x=x, y=y, width=max(width, 0.5), height=height, class_=f"area {colour(part.colour)}"),
        tag("text", fits, x=x + 5, y=y + height / 2 + 4, class_=f"inside on-{colour(part.colour)}") if fits else None,
    )


def limits(name: str, rows: Sequence[tuple[str, float, str, bool]], *, reached: float, unit: str) -> Markup:
    """Return a bar for each ceiling beside a line at what was reached.

    Args:
        name: of the chart.
        rows: each with its name, its ceiling, what is written beside it, and whether it limits.
        reached: the line.
        unit: of ceilings and line.
    """
    row_height, left = 34, 4
    # What is far away is cut off: near ceilings are what the chart is about.
    whole = reached * 4
    across = Linear(0, whole, left, WIDTH - _RIGHT)
    drawn: list[Markup] = []
    for number, (label, ceiling, shown, limits_now) in enumerate(rows):
        top = number * row_height + 20
        cut = " →" if ceiling > whole else ""
        drawn.append(
            tag(
                "rect",
                x=left,
                y=top + 14,
                width=across(min(ceiling, whole)) - left,
                height=10,
                rx=2,
                class_=f"ceiling{' now' if limits_now else ''}",
            )
        )
        drawn.append(tag("line", x1=across(reached), x2=across(reached), y1=top + 11, y2=top + 27, class_="reached"))
        drawn.append(tag("text", f"{label}: {short(ceiling)} {unit}{cut} · {shown}", x=left, y=top + 9, class_="label"))
    height = len(rows) * row_height + 30
    drawn.append(
        tag("text", f"reached: {short(reached)} {unit}", x=across(reached), y=11, class_="tick", text_anchor="middle")
    )
    return chart(name, f"ceilings in {unit}, reached {short(reached)}", height, *drawn)


def sized(name: str, rows: Sequence[tuple[str, float, str]], *, unit: str, whole: float = 0.0) -> Markup:
    """Return plain bars, each with what is written beside it; the width stands for `whole`, or for the longest."""
    row_height, left = 24, 230
    across = Linear(0, max((whole, *(size for _, size, _ in rows))) or 1, left, WIDTH - 70)
    drawn: list[Markup] = []
    for number, (label, size, shown) in enumerate(rows):
        y = number * row_height + 4
        drawn.append(tag("text", label, x=left - 8, y=y + 13, class_="label", text_anchor="end"))
        width = max(across(size) - left, 1)
        drawn.append(tag("rect", x=left, y=y + 2, width=width, height=14, rx=2, class_=f"area {colour(0)}"))
        drawn.append(tag("text", shown, x=left + width + 6, y=y + 13, class_="tick"))
    return chart(name, f"bars in {unit}", len(rows) * row_height + 8, *drawn)


def spread(values: Sequence[float], name: str) -> Markup:
    """Return the values of all repeats as dots on a line; the line spans 0.8 to 1.2 of their median, or all of them."""
    middle = sorted(values)[len(values) // 2]
    reach = max(0.2 * abs(middle), *(abs(value - middle) for value in values)) or 1
    across = Linear(middle - reach, middle + reach, 6, 94)
    return tag(
        "svg",
        tag("title", f"{name}: {', '.join(f'{value:,.6g}' for value in values)}"),
        tag("line", x1=4, x2=96, y1=8, y2=8, class_="axis"),
        *(tag("circle", cx=across(value), cy=8, r=3.2, class_=f"dot {colour(0)}") for value in values),
        view_box="0 0 100 16",
        role="img",
        class_="spread",
    )


def _shades(spans: Sequence[Span], across: Linear, height: float) -> list[Markup]:
    found = []
    for number, span in enumerate(spans):
        begin, end = (min(max(across(at), _LEFT), WIDTH - _RIGHT) for at in (span.begin, span.end))
        if end <= begin:
            continue
        found.append(
            tag(
                "g",
                tag(
                    "rect",
                    x=begin,
                    y=_TOP,
                    width=end - begin,
                    height=height - _BOTTOM - _TOP,
                    class_=f"shade s{number % 2}",
                ),
                tag("text", span.name, x=begin + 4, y=_TOP + 11, class_="phase") if end - begin > 40 else None,  # noqa: PLR2004 - room for a word
            )
        )
    return found


def _rows(up: Linear, top: float, unit: str) -> list[Markup]:
    found = []
    for value in ticks(0, top, 4):
        y = up(value)
        found.append(tag("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, class_="axis" if value == 0 else "grid"))
        found.append(tag("text", short(value), x=_LEFT - 6, y=y + 4, class_="tick", text_anchor="end"))
    return [join(*found), tag("text", unit, x=4, y=11, class_="tick")]


def _path(points: Sequence[tuple[float, float]], *, steps: bool) -> str:
    if not points:
        return ""
    words = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for x, y in points[1:]:
        words.append(f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}")
    if len(points) == 1:
        words.append("h3")  # One point alone would not be seen.
    return "".join(words)
