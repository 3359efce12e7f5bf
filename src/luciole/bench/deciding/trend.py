"""Results over time, as Markdown: a table for each subject, a line for each run, oldest first. Pure."""

from collections.abc import Iterator, Sequence

from luciole.bench.deciding.comparing import share_of_change, signed
from luciole.bench.deciding.likeness import Likeness, differences_of
from luciole.bench.deciding.table import number
from luciole.bench.result import Metric, Result
from luciole.bench.verdict import Verdict


def trend(results: Sequence[Result], *, metrics: Sequence[str] = ()) -> str:
    """Return the page; results of different machines or parameters stand in tables of their own.

    Args:
        results: in any order; those without sound figures are left out.
        metrics: which figures; empty: all that say which way is better.
    """
    lines = ["# Trend", ""]
    for series in _series(results):
        lines += [f"## {_title(series[-1])}", "", *_table(series, metrics), ""]
    return "\n".join(lines).rstrip()


def _series(results: Sequence[Result]) -> list[list[Result]]:
    found: list[list[Result]] = []
    sound = [one for one in results if one.verdict.code in {Verdict.OK, Verdict.OBJECTIVE_MISSED}]
    for result in sorted(sound, key=lambda one: one.started):
        like = next((series for series in found if _alike(series[-1], result)), None)
        if like is None:
            found.append([result])
        else:
            like.append(result)
    return found


def _alike(one: Result, other: Result) -> bool:
    return all(likeness is Likeness.METRICS for likeness, _ in differences_of(one, other))


def _title(result: Result) -> str:
    return (
        f"{result.profile} on {result.backend.get('name')} {result.backend.get('version', '')}".rstrip()
        + f", machine {result.environment.get('fingerprint', 'unknown')}"
    )


def _table(series: Sequence[Result], metrics: Sequence[str]) -> Iterator[str]:
    names = list(dict.fromkeys(one.name for result in series for one in result.metrics if _wanted(one, metrics)))
    if not names:
        yield "None of the figures asked for."
        return
    yield f"| started | revision | {' | '.join(names)} |"
    yield f"|---|---|{'--:|' * len(names)}"
    before: dict[str, float] = {}
    for result in series:
        values = {one.name: one.median for one in result.metrics}
        cells = [_cell(values.get(name), before.get(name)) for name in names]
        yield f"| {result.started[:16]}Z | {str(result.product.get('revision'))[:12]} | {' | '.join(cells)} |"
        before |= values


def _wanted(metric: Metric, metrics: Sequence[str]) -> bool:
    return metric.name in metrics if metrics else metric.direction != "none"


def _cell(value: float | None, before: float | None) -> str:
    if value is None:
        return "-"
    change = "" if before is None or not before else f" ({signed(share_of_change(before, value))})"
    return f"{number(value)}{change}"
