"""One page for one result or for several side by side: a single file that needs no network and no JavaScript."""

from collections.abc import Sequence
from importlib.resources import files

from luciole.bench.report import machine, parts, side, windows
from luciole.bench.report.markup import Markup, join, tag
from luciole.bench.report.names import Named, name_all, store_of
from luciole.bench.result import Result
from luciole.bench.verdict import Verdict
from luciole.limits import SECOND_US

_KINDS = {Verdict.OK: "good", Verdict.INCONCLUSIVE: "warn", Verdict.OBJECTIVE_MISSED: "warn"}

#: Metrics that stand large at the head of a page.
_CARDS = 4


def page(results: Sequence[Result]) -> str:
    """Return the page.

    Args:
        results: at least one; with several, the first is what the others are held against, and it is the last of
            them whose windows are explained in full.
    """
    named = name_all(results)
    told = named[-1]
    title = f"{told.result.profile} on {store_of(told.result)}"
    if len(named) > 1:
        title = f"{told.result.profile}: {' against '.join(one.name for one in reversed(named))}"
    sections = [section for section in _sections(named) if section is not None]
    document = tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="generator", content=f"luciole {told.result.product.get('version')}"),
            tag("title", title),
            tag("style", Markup(files("luciole.bench.report").joinpath("style.css").read_text(encoding="utf-8"))),
        ),
        tag(
            "body",
            _header(told.result, title, sections),
            tag("main", *(body for _, _, body in sections)),
            _footer(told),
        ),
        lang="en",
    )
    return f"<!doctype html>\n{document}\n"


def _sections(named: Sequence[Named]) -> list[tuple[str, str, Markup] | None]:
    """Return the parts of the page in order, each with its anchor and its title; None where a result has nothing."""
    told = named[-1]
    result = told.result
    return [
        _section("side", "Side by side", side.comparison(named)),
        _section("figures", "Figures", parts.figures(result)),
        _section("percentiles", "Percentiles", parts.percentiles(named)),
        _section("capacity", "Capacity", windows.capacity(result)),
        _section("time", "Over time", windows.over_time(result)),
        _section("stages", "Where the time went", windows.stages(named)),
        _section("ceilings", "Ceilings", windows.ceilings(result)),
        _section("waits", "Waits and counters of the database", windows.waits(result)),
        _section("ways", "Single jobs", windows.ways(result)),
        _section("flames", "Flame graphs", windows.flames(result)),
        _section("checks", "Correctness", parts.checks(result)),
        _section("machine", "Machine and product", machine.environment(result)),
        _section("parameters", "Parameters", machine.parameters(result)),
        _section("repeat", "Repeat it", machine.command(named)),
    ]


def _section(anchor: str, title: str, body: Markup | None) -> tuple[str, str, Markup] | None:
    if not body:
        return None
    return anchor, title, tag("section", tag("h2", title), body, id=anchor)


def _header(result: Result, title: str, sections: Sequence[tuple[str, str, Markup]]) -> Markup:
    verdict = Verdict(result.verdict.code)
    sentences = [one.sentence for repeat in result.repeats[-1:] for one in repeat.attribution[:1]]
    author = f" by {result.author}" if result.author else ""
    product = result.product
    return tag(
        "header",
        tag("h1", title),
        tag(
            "p",
            f"Measured {result.started[:16].replace('T', ' ')} UTC{author} · Luciole {product.get('version')}, "
            f"revision {str(product.get('revision'))[:12]}{' with local changes' if product.get('dirty') else ''} · "
            f"repeats: {len(result.repeats)} · took {result.duration_s:,.0f} s",
            class_="quiet small",
        ),
        tag(
            "p",
            tag("span", result.verdict.word.upper(), class_=f"verdict {_KINDS.get(verdict, 'bad')}"),
            result.verdict.reason,
        ),
        tag("p", tag("strong", result.question), " ", tag("span", result.border, class_="quiet")),
        _cards(result, void=verdict == Verdict.INCORRECT),
        *(tag("p", sentence, class_="sentence") for sentence in sentences),
        _limits(result),
        tag("nav", tag("ul", *(tag("li", tag("a", name, href=f"#{anchor}")) for anchor, name, _ in sections))),
    )


def _limits(result: Result) -> Markup | None:
    if not result.limits_of_inference:
        return None
    return tag(
        "details",
        tag("summary", "What may not be inferred from it"),
        tag("ul", *(tag("li", limit) for limit in result.limits_of_inference)),
        open="open",
    )


def _cards(result: Result, *, void: bool) -> Markup | None:
    if void:
        return tag("p", "The figures are void: what was measured did not do what it must.", class_="sentence void")
    shown = [metric for metric in result.metrics if metric.direction in {"higher", "lower"}][:_CARDS]
    if not shown:
        return None
    return tag(
        "ul",
        *(
            tag(
                "li",
                tag("span", metric.name.replace("_", " "), class_="quiet small"),
                tag("strong", *_large(metric.median, metric.unit)),
                tag("span", parts.spread_text(metric), class_="quiet small"),
            )
            for metric in shown
        ),
        class_="cards",
    )


def _large(value: float, unit: str) -> tuple[str, str]:
    if unit == "us":
        return (f"{value / SECOND_US:,.3g} s", "") if value >= SECOND_US else (f"{value / 1_000:,.3g} ms", "")
    return parts.number(value), f" {unit}" if unit != "ratio" else ""


def _footer(told: Named) -> Markup:
    return tag(
        "footer",
        join(
            "Made by ",
            tag("code", "luciole bench report"),
            f" from result.json (schema {told.result.schema}); this file needs no network and no JavaScript.",
        ),
    )
