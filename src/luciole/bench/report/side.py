"""Several results side by side: how much was won, and why."""

from collections.abc import Sequence

from luciole.bench.attribution.document import Attribution
from luciole.bench.report.markup import NOTHING, Markup, join, table, tag
from luciole.bench.report.names import Named, differing
from luciole.bench.report.parts import number, readable
from luciole.bench.result import Metric, Result

#: What explains a difference of rates: work a job, not time.
_WORK = ("commits_per_job", "statements_per_job", "verbs_per_job", "client_cpu_us_per_job", "server_cpu_us_per_job")

#: A ratio so near to 1 is none.
_SAME = 0.005


def comparison(named: Sequence[Named]) -> Markup | None:
    """Return metrics of all results beside each other, with the ratio of the last to the first, and the reasons."""
    if len(named) == 1:
        return None
    first, last = named[0], named[-1]
    machines = {one.result.environment.get("fingerprint") for one in named}
    profiles = {one.result.profile for one in named}
    values = differing([one.result for one in named])
    return join(
        tag("p", _gain(first, last), class_="sentence"),
        tag("p", "Measured on different machines: ratios mean little.", class_="bad") if len(machines) > 1 else None,
        tag("p", "Different profiles: figures of one name may differ.", class_="bad") if len(profiles) > 1 else None,
        _reasons(named),
        table(["", *(one.name for one in named), f"{last.name} by {first.name}"], _rows(named)),
        tag("h3", "What was asked for differently") if values else None,
        table(["parameter", *(one.name for one in named)], [[key, *map(_shown, each)] for key, each in values.items()])
        if values
        else None,
    )


def _gain(first: Named, last: Named) -> str:
    for metric in last.result.metrics:
        before = _metric(first.result, metric.name)
        if before and before.median and metric.direction == "higher":
            ratio = metric.median / before.median
            return (
                f"{metric.name.replace('_', ' ').capitalize()}: {number(metric.median)} {metric.unit} with "
                f"{last.name}, {number(before.median)} with {first.name}: {_times(ratio)}."
            )
    return "They share no figure of which more is better."


def _reasons(named: Sequence[Named]) -> Markup:
    items = []
    for one in named:
        attribution = _first(one.result)
        if attribution:
            items.append(tag("li", tag("strong", f"{one.name}: "), attribution.sentence))
    first, last = named[0].result, named[-1].result
    for name in _WORK:
        before, after = _metric(first, name), _metric(last, name)
        if before and after and before.median and after.median and abs(after.median / before.median - 1) > _SAME:
            text = f"{number(before.median)} became {number(after.median)} {after.unit}"
            items.append(tag("li", tag("strong", f"{name.replace('_', ' ')}: "), f"{text}."))
    return tag("ul", *items)


def _rows(named: Sequence[Named]) -> list[list[str]]:
    names = list(dict.fromkeys(metric.name for one in named for metric in one.result.metrics))
    rows: list[list[str]] = []
    for name in names:
        metrics = [_metric(one.result, name) for one in named]
        divisor, unit = readable(max((metric for metric in metrics if metric), key=lambda metric: metric.high))
        cells = [number(metric.median / divisor) if metric else NOTHING for metric in metrics]
        rows.append([f"{name} ({unit})", *cells, _ratio(metrics[0], metrics[-1])])
    return rows


def _ratio(before: Metric | None, after: Metric | None) -> Markup | str:
    if before is None or after is None or not before.median:
        return NOTHING
    ratio = after.median / before.median
    better = {"higher": ratio > 1 + _SAME, "lower": ratio < 1 - _SAME}.get(after.direction)
    worse = {"higher": ratio < 1 - _SAME, "lower": ratio > 1 + _SAME}.get(after.direction)
    word, kind = ("better", "good") if better else ("worse", "bad") if worse else ("", "quiet")
    return tag("span", f"{ratio:.3g} x {word}".rstrip(), class_=kind)


def _times(ratio: float) -> str:
    if abs(ratio - 1) <= _SAME:
        return "no difference"
    return f"{ratio:.2g} times as much" if ratio >= 1.1 or ratio < 1 else f"{ratio - 1:.1%} more"  # noqa: PLR2004 - for words


def _shown(value: object) -> str:
    return NOTHING if value is None else str(value)


def _metric(result: Result, name: str) -> Metric | None:
    return next((metric for metric in result.metrics if metric.name == name), None)


def _first(result: Result) -> Attribution | None:
    return next((one for repeat in result.repeats[-1:] for one in repeat.attribution), None)
