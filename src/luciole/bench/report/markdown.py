"""A result for people, as Markdown."""

import shlex
from collections.abc import Sequence

from luciole.bench.environment import UNAVAILABLE
from luciole.bench.profiles import find_profile
from luciole.bench.result import Metric, Percentiles, Result
from luciole.bench.shares import shares_of
from luciole.bench.verdict import Verdict

#: What of the machine stands in a page.
_MACHINE = ("cpu", "cores", "hypervisor", "memory_mib", "kernel", "filesystem", "python", "fingerprint")


def summary(result: Result) -> str:
    """Return the page of one result: verdict, figures, distributions, checks, machine, how to repeat it."""
    void = result.verdict.code == Verdict.INCORRECT
    lines = [
        f"# {result.profile} on {result.backend.get('name')} {result.backend.get('version', '')}".rstrip(),
        "",
        f"**{result.verdict.word.upper()}**: {result.verdict.reason}",
        "",
        result.question,
        result.border,
        "",
    ]
    if void:
        lines += ["**The figures are void**: what was measured did not do what it must.", ""]
    lines += _figures(result, void=void)
    lines += _ceiling(result)
    lines += _shares(result)
    lines += _distributions(result.metrics)
    lines += _stages(result)
    lines += _checks(result)
    lines += _environment(result)
    return "\n".join(lines).rstrip()


def page(results: Sequence[Result]) -> str:
    """Return one page of several results: the machine once, then each with its figures and how to repeat it."""
    lines = [
        "# Results",
        "",
        "Made by `luciole bench report` from the files in `results/`: change those, not this page. How they come",
        "about, and what they do not say, stands in [the method](method.md).",
        "",
    ]
    for fingerprint in dict.fromkeys(result.environment.get("fingerprint") for result in results):
        first = next(result for result in results if result.environment.get("fingerprint") == fingerprint)
        lines += [_machine(first), ""]
    for result in results:
        checks = [check for repeat in result.repeats for check in repeat.checks]
        passed = sum(check.passed for check in checks)
        lines += [
            f"## {_title(result)}",
            "",
            f"**{result.verdict.word.upper()}**, repeats: {len(result.repeats)}, checks: {passed} of {len(checks)}.",
            "",
            result.question,
            "",
            *_figures(result, void=result.verdict.code == Verdict.INCORRECT),
            *_ceiling(result),
            *_shares(result),
            *_distributions(result.metrics),
            *_stages(result),
            _provenance(result),
            f"Repeat it: `{shlex.join(result.command)}`",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def _provenance(result: Result) -> str:
    noise = result.environment.get("noise", {})
    priority = noise.get("priority", "ordinary")
    return (
        f"Measured {result.started[:16]}Z at revision {str(result.product['revision'])[:12]}, "
        f"load {noise.get('load_1min', '?')} before it, priority {priority}."
    )


def _title(result: Result) -> str:
    """Return a heading that tells results of one profile apart."""
    backend = result.backend.get("name")
    parts = (
        [result.profile] if backend == "none" else [f"{result.profile} on {backend} {result.backend.get('version')}"]
    )
    parts += [str(result.requested[name]) for name in ("topology", "phase") if name in result.requested]
    if result.requested.get("path") == "single":
        parts.append("one transaction a job")
    return ", ".join(parts)


def _ceiling(result: Result) -> list[str]:
    if not result.ceiling:
        return []
    return [
        (
            f"Ceiling: the server alone writes {result.ceiling.rate:,.0f} jobs/s (the best of "
            f"{len(result.ceiling.tried)} tries; batch {result.ceiling.batch}, "
            f"{result.ceiling.connections} connections)."
        ),
        "",
    ]


def _shares(result: Result) -> list[str]:
    shares = shares_of(result)
    if not shares:
        return []
    lines = ["| throughput | reached | ceiling | | share |", "|---|--:|--:|---|--:|"]
    lines += [
        f"| {one.name} | {one.rate:,.0f} {one.unit} | {one.ceiling_rate:,.0f} | {one.ceiling} | {one.share:.0%} |"
        for one in shares
    ]
    return [*lines, ""]


def _machine(result: Result) -> str:
    machine = result.environment
    if not machine:
        return "Machine: unknown."
    known = {name: machine.get(name, UNAVAILABLE) for name in _MACHINE}
    memory = known["memory_mib"]
    return (
        f"Machine: {known['cpu']}, {known['cores']} cores, hypervisor {known['hypervisor']}, "
        f"{memory if isinstance(memory, str) else f'{memory:,}'} MiB, {known['kernel']}, {known['filesystem']}, "
        f"{known['python']}, fingerprint {known['fingerprint']}."
    )


def _figures(result: Result, *, void: bool) -> list[str]:
    plain = [metric for metric in result.metrics if metric.distribution is None]
    if not plain:
        return []
    profile = find_profile(result.profile)
    lines = ["| figure | median | least | greatest | unit | better | |", "|---|--:|--:|--:|---|---|---|"]
    for metric in plain:
        shown = [_number(value) for value in (metric.median, metric.low, metric.high)]
        cells = " | ".join(f"~~{cell}~~" if void else cell for cell in shown)
        text = profile.metric(metric.name).text
        lines.append(f"| {metric.name} | {cells} | {metric.unit} | {metric.direction} | {text} |")
    return [*lines, ""]


def _distributions(metrics: Sequence[Metric]) -> list[str]:
    kept: list[tuple[str, Percentiles]] = [
        (metric.name, metric.distribution) for metric in metrics if metric.distribution is not None
    ]
    if not kept:
        return []
    lines = ["| distribution (ms) | p50 | p95 | p99 | max | count |", "|---|--:|--:|--:|--:|--:|"]
    lines += [
        f"| {name} | {_ms(part.p50)} | {_ms(part.p95)} | {_ms(part.p99)} | {_ms(part.max)} | {part.count:,} |"
        for name, part in kept
    ]
    return [*lines, ""]


def _stages(result: Result) -> list[str]:
    whole = [repeat for repeat in result.repeats if repeat.stages_us]
    if not whole:
        return []
    stages = whole[-1].stages_us
    total = sum(stages.values()) or 1
    shares = ", ".join(f"{name} {us / total:.0%}" for name, us in stages.items() if us)
    lines = [f"Where the last repeat's window went: {shares}.", ""]
    for window in whole[-1].attribution:
        lines += [f"{window.window.capitalize()}, {window.explained:.1%} explained: {window.sentence}", ""]
        for resource in window.resources:
            signs = "; ".join(sign.text for sign in resource.signs)
            ceiling = f"- {resource.name}: ceiling {resource.ceiling_rate:,.0f} jobs/s, {resource.used:.0%} in use"
            lines.append(f"{ceiling}{f' ({signs})' if signs else ''}")
        lines.append("")
    return lines


def _checks(result: Result) -> list[str]:
    names: dict[str, list[str]] = {}
    for repeat in result.repeats:
        for check in repeat.checks:
            names.setdefault(check.name, []).append("passed" if check.passed else f"FAILED ({check.found})")
    if not names:
        return []
    first = {check.name: check for repeat in result.repeats for check in repeat.checks}
    lines = ["| check | asked of | expected | found |", "|---|---|---|---|"]
    for name, found in names.items():
        failed = [one for one in found if one != "passed"]
        shown = ", ".join(failed) if failed else f"{first[name].found} in all {len(found)} repeats"
        if not failed and len({c.found for r in result.repeats for c in r.checks if c.name == name}) > 1:
            shown = f"passed in all {len(found)} repeats"
        lines.append(f"| {name} | {first[name].source} | {first[name].expected} | {shown} |")
    told = dict.fromkeys(note for repeat in result.repeats for note in repeat.notes)
    return [*lines, "", *(f"Note: {note}" for note in told), ""]


def _environment(result: Result) -> list[str]:
    if not result.environment:
        return []
    settings = ", ".join(f"{name}={value}" for name, value in (result.backend.get("settings") or {}).items())
    return [
        _machine(result),
        f"Server: {result.backend.get('version')}{f' with {settings}' if settings else ''}.",
        (
            f"Product: {result.product['version']}, revision {str(result.product['revision'])[:12]}"
            f"{' (dirty)' if result.product['dirty'] else ''}. Measured {result.started}"
            f"{f' by {result.author}' if result.author else ''}."
        ),
        *(f"Limit: {limit}" for limit in result.limits_of_inference),
        "",
        f"Repeat it: `{shlex.join(result.command)}`",
    ]


def _number(value: float) -> str:
    if value and abs(value) < 10:  # noqa: PLR2004 - three digits that mean something
        return f"{value:.3g}"
    return f"{value:,.0f}"


def _ms(us: float) -> str:
    return f"{us / 1_000:,.1f}"
