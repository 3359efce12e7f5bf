"""Parts of the page that explain windows: lines over time, stages, ceilings, waits, ways of jobs, flame graphs."""

from collections.abc import Mapping, Sequence

from luciole.bench.attribution.document import Attribution, Resource, Series, Stage
from luciole.bench.report import svg
from luciole.bench.report import ways as drawing
from luciole.bench.report.markup import NOTHING, Markup, join, table, tag
from luciole.bench.report.names import Named
from luciole.bench.result import Repeat, Result
from luciole.bench.shares import shares_of
from luciole.limits import SECOND_US

#: How much before and after the windows is shown, as a share of their length.
_AROUND = 0.06

#: Stages under this share of a window stand in the table only.
_SHARE_MIN = 0.001


def last_explained(result: Result) -> Repeat | None:
    """Return the last repeat that says where its time went."""
    return next((repeat for repeat in reversed(result.repeats) if repeat.attribution), None)


def over_time(result: Result) -> Markup | None:
    """Return lines over the time of the last repeat, one drawing for each unit, windows shaded."""
    repeat = next((one for one in reversed(result.repeats) if one.series), None)
    if repeat is None:
        return None
    spans = [svg.Span(one.window, one.begun_s, one.begun_s + one.wall_us / SECOND_US) for one in repeat.attribution]
    begin = min((span.begin for span in spans), default=0.0)
    end = max((span.end for span in spans), default=max(at for one in repeat.series for at in (*one.at_s, 0.0)))
    around = (end - begin) * _AROUND
    units: dict[str, list[Series]] = {}
    for series in repeat.series:
        units.setdefault(series.unit, []).append(series)
    figures = []
    for unit, group in units.items():
        lines = [
            svg.Line(
                one.name,
                [(at - begin, value) for at, value in zip(one.at_s, one.values, strict=True)],
                steps=unit == "jobs",
            )
            for one in group
        ]
        names = ", ".join(one.name for one in group)
        figures.append(
            tag(
                "figure",
                tag("figcaption", tag("strong", names[:1].upper() + names[1:]), f", in {unit}"),
                svg.legend([line.name for line in lines]) if len(lines) > 1 else None,
                svg.lines(
                    f"{unit} over time",
                    lines,
                    unit=unit,
                    x_unit="seconds since the begin of the first window",
                    spans=[svg.Span(span.name, span.begin - begin, span.end - begin) for span in spans],
                    x_range=(-around, end - begin + around),
                ),
            )
        )
    return join(*figures, tag("p", f"Of repeat {repeat.index + 1}.", class_="quiet small"))


def capacity(result: Result) -> Markup | None:
    """Return what each step of a search found: lateness and backlog over the rate."""
    steps = [step for repeat in result.repeats for step in repeat.actual.get("steps", ()) if isinstance(step, Mapping)]
    steps = sorted((step for step in steps if "start_lag_p99_us" in step), key=lambda step: step["rate"])
    if not steps:
        return None
    drawn = (
        ("p99 of start lag", "ms", [(step["rate"], step["start_lag_p99_us"] / 1_000) for step in steps]),
        ("open at once, the most", "executions", [(s["rate"], s["open_max"]) for s in steps if "open_max" in s]),
    )
    rows: list[list[str]] = [
        [
            f"{step['schedules']:,}",
            f"{step['rate']:,.0f}",
            f"{step['start_lag_p99_us'] / 1_000:,.1f}",
            f"{step['open_max']:,.0f}" if "open_max" in step else NOTHING,
            step["why"],
            tag("span", "met", class_="good") if step["met"] else tag("span", "; ".join(step["clauses"]), class_="bad"),
        ]
        for step in steps
    ]
    return join(
        *(
            tag(
                "figure",
                tag("figcaption", tag("strong", f"{name[:1].upper()}{name[1:]}"), f", in {unit}, over the rate"),
                svg.lines(f"rate to {name}", [svg.Line(name, points)], unit=unit, x_unit="starts a second"),
            )
            for name, unit, points in drawn
            if points
        ),
        table(["schedules", "starts/s", "p99 (ms)", "open at most", "step", "objective"], rows, numbers=3),
    )


def stages(named: Sequence[Named]) -> Markup | None:
    """Return a bar of exclusive stages for each window, with those of all results below each other."""
    told = last_explained(named[-1].result)
    if told is None:
        return None
    found = []
    for window in (one for one in told.attribution if one.stages):
        rows = []
        names: list[str] = []
        compared = [(one.name, other) for one in named if (other := _window(one.result, window.window))]
        for name, other in compared:
            names += [stage.name for stage in _seen(other) if stage.name not in names]
            rows.append((name, other))
        drawn = [
            (
                f"{name}: {other.wall_us / 1_000:,.0f} ms for {other.jobs:,} jobs"
                if len(compared) > 1
                else f"{other.wall_us / 1_000:,.0f} ms for {other.jobs:,} jobs",
                [
                    svg.Part(
                        stage.name.replace("_", " "),
                        stage.exclusive_us / other.jobs,
                        f"{stage.exclusive_us / other.wall_us:.1%}",
                        names.index(stage.name),
                    )
                    for stage in _seen(other)
                ],
            )
            for name, other in rows
        ]
        whole = max(other.wall_us / other.jobs for _, other in rows)
        found.append(
            tag(
                "figure",
                tag(
                    "figcaption",
                    tag("strong", f"{window.window[:1].upper()}{window.window[1:]}"),
                    f", wall time a job by the stage that alone had it; {window.explained:.1%} explained",
                ),
                svg.legend([name.replace("_", " ") for name in names]),
                svg.bars(f"stages of {window.window}", drawn, whole=whole, unit="us a job"),
                _stage_table(window),
            )
        )
    return join(*found, _processes(told.attribution))


def _seen(window: Attribution) -> list[Stage]:
    return [stage for stage in window.stages if stage.exclusive_us >= _SHARE_MIN * window.wall_us]


def _window(result: Result, name: str) -> Attribution | None:
    repeat = last_explained(result)
    return next((one for one in repeat.attribution if one.window == name), None) if repeat else None


def _stage_table(window: Attribution) -> Markup:
    rows = [
        [
            stage.name,
            f"{stage.exclusive_us / 1_000:,.2f}",
            f"{stage.exclusive_us / window.wall_us:.1%}",
            f"{stage.in_flight:.2f}",
        ]
        for stage in window.stages
    ]
    return tag(
        "details", tag("summary", "As a table"), table(["stage", "alone (ms)", "share", "under way on average"], rows)
    )


def _processes(windows: Sequence[Attribution]) -> Markup | None:
    rows = [
        [
            f"{process.name}, {window.window}",
            f"{process.cpu_us / max(1, window.wall_us):.2f}",
            NOTHING if process.run_delay_us is None else f"{process.run_delay_us / max(1, window.wall_us):.2f}",
            NOTHING if process.main_thread_us is None else f"{process.main_thread_us / max(1, window.wall_us):.0%}",
            f"{process.rss_peak_bytes / 1_048_576:,.0f}",
            f"{process.gc_pauses} / {process.gc_pauses_us / 1_000:.1f}",
            f"{process.stall_max_us / 1_000:.0f} / {process.stalls_us / 1_000:.0f}",
        ]
        for window in windows
        for process in window.processes
    ]
    if not rows:
        return None
    head = [
        "part",
        "cores",
        "waits for a core",
        "loop's thread",
        "memory (MiB)",
        "collections / ms",
        "stall max / sum (ms)",
    ]
    return join(tag("h3", "Parts"), table(head, rows))


def ceilings(result: Result) -> Markup | None:
    """Return the ceilings of each window and the sentence about them."""
    repeat = last_explained(result)
    if repeat is None:
        return join(_server_ceiling(result), _shares(result)) or None
    found = []
    for window in repeat.attribution:
        rows = [
            (
                resource.name,
                resource.ceiling_rate,
                f"{resource.used:.0%} in use, {resource.demand_us:,.1f} us a job",
                resource.name == window.now,
            )
            for resource in window.resources
        ]
        signs = [
            [resource.name, f"{resource.ceiling_rate:,.0f}", f"{resource.used:.0%}", _signs(resource)]
            for resource in window.resources
        ]
        found.append(
            tag(
                "figure",
                tag("figcaption", tag("strong", f"{window.window[:1].upper()}{window.window[1:]}")),
                tag("p", window.sentence, class_="sentence"),
                svg.limits(f"ceilings of {window.window}", rows, reached=window.rate, unit="jobs/s") if rows else None,
                tag(
                    "details",
                    tag("summary", "Signs"),
                    table(["resource", "ceiling (jobs/s)", "in use", "signs"], signs, numbers=2),
                ),
                *(tag("p", f"Not observed: {missing}.", class_="quiet small") for missing in window.missing),
            )
        )
    return join(_server_ceiling(result), _shares(result), *found)


def _shares(result: Result) -> Markup | None:
    """Return the throughputs as shares of what the server alone does with the same rows."""
    shares = shares_of(result)
    if not shares:
        return None
    rows = [
        [one.name, f"{one.rate:,.0f}", f"{one.ceiling_rate:,.0f}", f"{one.share:.0%}", one.unit, one.ceiling]
        for one in shares
    ]
    return tag(
        "figure",
        tag("figcaption", tag("strong", "Shares of ceilings"), ", of what the server alone does with the same rows"),
        svg.sized(
            "shares of ceilings",
            [(one.name.replace("_", " "), one.share, f"{one.share:.0%}") for one in shares],
            unit="of the ceiling",
            whole=1.0,
        ),
        tag(
            "details",
            tag("summary", "As a table"),
            table(["throughput", "reached", "ceiling", "share", "unit", "is the figure"], rows, numbers=3),
        ),
    )


def _signs(resource: Resource) -> str:
    signs = "; ".join(f"{sign.kind}: {sign.text}" for sign in resource.signs) or "none"
    return f"{signs} (held, so that only a queue makes it a limit)" if resource.passive else signs


def _server_ceiling(result: Result) -> Markup | None:
    if result.ceiling is None:
        return None
    share = f" This run reached {result.ceiling_share:.0%} of it." if result.ceiling_share else ""
    return tag(
        "p",
        f"The server alone writes {result.ceiling.rate:,.0f} jobs/s: the best of {len(result.ceiling.tried)} tries, "
        f"batch {result.ceiling.batch}, {result.ceiling.connections} connections.{share}",
    )


def waits(result: Result) -> Markup | None:
    """Return what sessions of the server waited for, and by how much its counters grew."""
    repeat = last_explained(result)
    if repeat is None:
        return None
    found = []
    for window in repeat.attribution:
        if window.waits and window.waits.sessions:
            rows = [(name, count, f"{count:.2f}") for name, count in window.waits.sessions.items()]
            found.append(
                tag(
                    "figure",
                    tag(
                        "figcaption",
                        tag("strong", f"{window.window[:1].upper()}{window.window[1:]}"),
                        f", average active sessions by what they waited for ({window.waits.samples} samples, one each "
                        f"{window.waits.every_ms} ms)",
                    ),
                    svg.sized(f"waits of {window.window}", rows, unit="sessions"),
                )
            )
    counters = [
        [f"{view}.{name}", f"{value:,.0f}", f"{value / repeat.attribution[0].jobs:,.4g}"]
        for view, values in repeat.database.items()
        for name, value in values.items()
    ]
    if counters:
        found.append(
            tag("details", tag("summary", "Counters"), table(["counter", "grew by", "a job"], counters, numbers=2))
        )
    return join(*found) if found else None


def ways(result: Result) -> Markup | None:
    """Return waterfalls of the slowest jobs and of random ones."""
    repeat = next((one for one in reversed(result.repeats) if one.traces), None)
    if repeat is None:
        return None
    found = [svg.legend(drawing.stage_names(repeat.traces))]
    for chosen, row in (("slowest", 6.0), ("random", 2.2)):
        traces = sorted(
            (trace for trace in repeat.traces if trace.chosen == chosen), key=lambda trace: -trace.stages[-1][2]
        )
        if traces:
            found.append(
                tag(
                    "figure",
                    tag(
                        "figcaption",
                        tag("strong", f"The {len(traces)} {chosen}"),
                        ", from the due time on; a row a job",
                    ),
                    drawing.waterfall(f"ways of the {chosen} jobs", traces, row=row),
                )
            )
    note = "trace.json beside the result holds them for chrome://tracing and Perfetto."
    return join(*found, tag("p", note, class_="quiet small"))


def flames(result: Result) -> Markup | None:
    """Return the flame graphs of profiled repeats."""
    if not result.flames:
        return None
    return join(
        *(
            tag(
                "figure",
                tag(
                    "figcaption",
                    tag("strong", flame.name),
                    f", {flame.kind}: {flame.samples:,} samples; callers above what they call, wider is more time",
                ),
                drawing.flame_graph(f"{flame.kind} profile of {flame.name}", flame),
            )
            for flame in result.flames
        ),
        tag("p", "Of repeats of their own, which count for no figure.", class_="quiet small"),
    )
