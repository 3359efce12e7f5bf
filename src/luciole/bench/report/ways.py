"""Waterfalls of single jobs and flame graphs of processes, as SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from luciole.bench.attribution.document import Flame, Trace
from luciole.bench.report.markup import Markup, tag
from luciole.bench.report.scales import Linear, short, ticks
from luciole.bench.report.svg import WIDTH, chart, colour

#: Frames under this share of all samples are too thin to be seen.
_FRAME_MIN = 0.002

#: Shades by a part of a frame's file: drivers, loops, the network, Python itself; all else is the product.
_SHADES: Mapping[str, int] = {
    "asyncpg": 1,
    "sqlite3": 1,
    "uvloop": 2,
    "asyncio": 2,
    "grpc": 3,
    "protobuf": 3,
    "<frozen": 4,
    "threading": 4,
    "concurrent": 4,
    "msgspec": 4,
}

_ROW = 17
_LETTER = 6.2


def stage_names(traces: Sequence[Trace]) -> list[str]:
    """Return the stages of traces, in their order."""
    return list(dict.fromkeys(name for trace in traces for name, _, _ in trace.stages))


def waterfall(name: str, traces: Sequence[Trace], *, row: float) -> Markup:
    """Return one row for each job: when each of its stages began and ended, since it was due.

    Args:
        name: of the chart.
        traces: the jobs, the first on top.
        row: height of a row.
    """
    names = stage_names(traces)
    end_us = max((stage[2] for trace in traces for stage in trace.stages), default=1)
    across = Linear(0, end_us, 4, WIDTH - 14)
    drawn = []
    for number, trace in enumerate(traces):
        parts = [
            tag(
                "rect",
                tag("title", f"{trace.name}: {stage} {begun_us / 1_000:,.1f} to {ended_us / 1_000:,.1f} ms"),
                x=across(max(0, begun_us)),
                y=number * row,
                width=max(across(ended_us) - across(max(0, begun_us)), 0.3),
                height=max(row - 0.6, 0.6),
                class_=f"way {colour(names.index(stage))}",
            )
            for stage, begun_us, ended_us in trace.stages
        ]
        drawn.append(tag("g", *parts))
    height = len(traces) * row + 22
    axis = [
        tag("text", f"{short(value / 1_000)} ms", x=across(value), y=height - 5, class_="tick", text_anchor="middle")
        for value in ticks(0, end_us, 7)[1:-1]
    ]
    return chart(name, f"{len(traces)} jobs, each a row from its due time on", height, *drawn, *axis)


@dataclass(slots=True)
class _Frame:
    samples: int = 0
    inner: "dict[str, _Frame]" = field(default_factory=dict)


def flame_graph(name: str, flame: Flame) -> Markup:
    """Return a profile as an icicle: callers above what they call, as wide as the samples that hold them."""
    root = _Frame()
    for stack, samples in flame.stacks.items():
        frame = root
        frame.samples += samples
        for word in stack.split(";"):
            frame = frame.inner.setdefault(word, _Frame())
            frame.samples += samples
    drawn: list[Markup] = []
    deepest = _draw(drawn, root, root.samples or 1, x=0.0, depth=0)
    return chart(name, f"{flame.samples} samples, callers above callees", (deepest + 1) * _ROW + 6, *drawn)


def _draw(drawn: list[Markup], frame: _Frame, whole: int, *, x: float, depth: int) -> int:
    """Draw what a frame calls below it; return the deepest row."""
    deepest = depth
    for word, inner in sorted(frame.inner.items()):
        share = inner.samples / whole
        width = share * WIDTH
        if share >= _FRAME_MIN:
            letters = int((width - 6) / _LETTER)
            label = word if len(word) <= letters else f"{word[: letters - 1]}…" if letters > 3 else None  # noqa: PLR2004 - less says nothing
            drawn.append(
                tag(
                    "g",
                    tag("title", f"{word}: {inner.samples} samples, {share:.1%}"),
                    tag("rect", x=x, y=depth * _ROW, width=width, height=_ROW - 1, class_=f"frame f{_shade(word)}"),
                    tag("text", label, x=x + 3, y=depth * _ROW + 12, class_="frame-name") if label else None,
                )
            )
            deepest = max(deepest, _draw(drawn, inner, whole, x=x, depth=depth + 1))
        x += width
    return deepest


def _shade(word: str) -> int:
    """Return a shade by the module that a frame is in, so that neighbours of one module look alike."""
    return next((shade for kind, shade in _SHADES.items() if kind in word), 0)
