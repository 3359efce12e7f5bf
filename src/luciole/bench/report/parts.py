"""Parts of the page about figures: the table with its spread, percentiles, checks."""

from collections.abc import Sequence

from luciole.bench.percentiles import curve
from luciole.bench.profiles import find_profile
from luciole.bench.report import svg
from luciole.bench.report.markup import Markup, join, table, tag
from luciole.bench.report.names import Named
from luciole.bench.result import Metric, Percentiles, Result
from luciole.bench.verdict import BenchError, Verdict

_WAYS = {"higher": "more is better", "lower": "less is better", "zero": "must be zero", "none": "describes"}

#: Microseconds from which on milliseconds are read more easily.
_MS_FROM = 10_000


def figures(result: Result) -> Markup | None:
    """Return the table of all figures."""
    if not result.metrics:
        return None
    void = result.verdict.code == Verdict.INCORRECT
    rows: list[list[str]] = []
    for metric in result.metrics:
        divisor, unit = readable(metric)
        shown = [number(value / divisor) for value in points(metric)]
        cells: list[str] = [tag("del", cell) if void else cell for cell in shown]
        rows.append(
            [
                tag("span", metric.name, title=_text(result, metric.name)),
                *cells,
                unit,
                svg.spread(metric.values, metric.name),
                tag("span", _WAYS[metric.direction], class_="quiet"),
            ]
        )
    meanings = [[metric.name, _text(result, metric.name)] for metric in result.metrics]
    return join(
        table(["figure", "median", "least", "greatest", "unit", "repeats", ""], rows, numbers=3),
        tag(
            "p",
            "One dot a repeat; each line spans a fifth around the median, or more where repeats lie farther "
            "apart. Of a distribution, the table holds the p99 of each repeat.",
            class_="quiet small",
        ),
        tag("details", tag("summary", "What each figure means"), table(["figure", "meaning"], meanings, numbers=0)),
    )


def points(metric: Metric) -> tuple[float, float, float]:
    """Return what a table shows of a metric."""
    return metric.median, metric.low, metric.high


def readable(metric: Metric) -> tuple[float, str]:
    """Return what a metric's values are divided by to be read, and the unit that they then have."""
    return (1_000, "ms") if metric.unit == "us" and metric.high >= _MS_FROM else (1, metric.unit)


def spread_text(metric: Metric) -> str:
    """Return how far repeats lie apart."""
    if len(metric.values) == 1:
        return "one repeat: no spread"
    divisor, unit = readable(metric)
    shown = f" {unit}" if divisor > 1 else ""
    return f"{number(metric.low / divisor)} to {number(metric.high / divisor)}{shown} in {len(metric.values)} repeats"


def percentiles(named: Sequence[Named]) -> Markup | None:
    """Return the curve of each distribution, with those of all results in one drawing, and a table of its points."""
    result = named[-1].result
    found = []
    rows = []
    for metric in result.metrics:
        if metric.distribution is None or not metric.distribution.count:
            continue
        lines = []
        for one in named:
            part = _distribution(one.result, metric.name)
            if part:
                lines.append(svg.Line(one.name, [(nine, us / 1_000) for nine, us in curve(part)]))
                rows.append(_points_of(f"{metric.name}, {one.name}" if len(named) > 1 else metric.name, part))
        found.append(
            tag(
                "figure",
                tag("figcaption", tag("strong", metric.name), f" ({_text(result, metric.name)})"),
                svg.legend([line.name for line in lines]) if len(named) > 1 else None,
                svg.lines(
                    f"percentiles of {metric.name}",
                    lines,
                    unit="ms",
                    x_unit="percentile",
                    x_tick=lambda nines: f"{100 * (1 - 10**-nines):.5g}",
                    x_ticks=[0, 0.30103, 1, 2, 3, 4, 5],
                    height=170,
                ),
            )
        )
    if not found:
        return None
    return join(
        *found,
        table(["distribution (ms)", "p50", "p95", "p99", "max", "count"], rows),
        tag(
            "p",
            "Of all repeats merged from their whole histograms; percentiles are never averaged.",
            class_="quiet small",
        ),
    )


def _points_of(name: str, part: Percentiles) -> list[str]:
    return [name, *(f"{us / 1_000:,.2f}" for us in (part.p50, part.p95, part.p99, part.max)), f"{part.count:,}"]


def _distribution(result: Result, name: str) -> Percentiles | None:
    return next((metric.distribution for metric in result.metrics if metric.name == name), None)


def checks(result: Result) -> Markup | None:
    """Return every check with what was expected and what was found."""
    found: dict[str, list[bool]] = {}
    for repeat in result.repeats:
        for check in repeat.checks:
            found.setdefault(check.name, []).append(check.passed)
    if not found:
        return None
    last = {check.name: check for repeat in result.repeats for check in repeat.checks}
    failed = {
        name: next(c for repeat in result.repeats for c in repeat.checks if c.name == name and not c.passed)
        for name, passed in found.items()
        if not all(passed)
    }
    rows: list[list[str]] = [
        [
            name,
            last[name].expected,
            f"{failed.get(name, last[name]).found:,}",
            f"the {last[name].source}",
            tag("span", f"FAILED in {passed.count(False)}", class_="bad")
            if name in failed
            else tag("span", f"passed in {len(passed)}", class_="good"),
        ]
        for name, passed in sorted(found.items(), key=lambda pair: pair[0] not in failed)
    ]
    count = sum(len(passed) for passed in found.values())
    return join(
        tag(
            "p",
            f"{count - sum(passed.count(False) for passed in found.values())} of {count} checks passed. The store is "
            "asked in its own query language, after the window, by code that shares nothing with the product.",
        ),
        table(["check", "expected", "found", "asked of", "repeats"], rows, numbers=2),
        *(tag("p", f"Invalid: {reason}", class_="bad") for repeat in result.repeats for reason in repeat.invalid),
        *(tag("p", note, class_="quiet small") for repeat in result.repeats for note in repeat.notes),
    )


def number(value: float) -> str:
    """Return a number with the digits that mean something."""
    if value and abs(value) < 10:  # noqa: PLR2004 - three digits
        return f"{value:.3g}"
    return f"{value:,.0f}"


def _text(result: Result, name: str) -> str:
    try:
        return find_profile(result.profile).metric(name).text
    except BenchError:
        return ""  # A result of a profile that this version lacks is shown all the same.
