"""Parts of the page about what the figures depend on: machine, product, parameters, and how to repeat it."""

import shlex
from collections.abc import Mapping, Sequence

from luciole.bench.report.markup import NOTHING, Markup, join, table, tag
from luciole.bench.report.names import Named
from luciole.bench.result import Result


def environment(result: Result) -> Markup | None:
    """Return machine, server and product."""
    if not result.environment:
        return None
    machine = {key: value for key, value in result.environment.items() if not isinstance(value, Mapping)}
    inner = {
        f"{key}: {name}": text
        for key, value in result.environment.items()
        if isinstance(value, Mapping)
        for name, text in value.items()
    }
    server = {key: value for key, value in result.backend.items() if not isinstance(value, Mapping)}
    settings = result.backend.get("settings") or {}
    return join(
        _pairs({**machine, **inner}, "machine"),
        tag("h3", "Server"),
        _pairs({**server, **settings}, "server"),
        tag("h3", "Product"),
        _pairs(result.product, "product"),
    )


def parameters(result: Result) -> Markup | None:
    """Return each parameter as requested, and what running parts answered when they were asked."""
    if not result.requested:
        return None
    rows = [[key, _shown(value), _read_back(result, key)] for key, value in sorted(result.requested.items())]
    rest = {key: value for key, value in result.actual.items() if key not in result.requested and key != "statements"}
    return join(
        table(["parameter", "requested", "read back"], rows, numbers=0),
        tag("details", tag("summary", "All that was read back"), _pairs(rest, "part")) if rest else None,
    )


def command(named: Sequence[Named]) -> Markup:
    """Return the commands that repeat the results."""
    return join(
        *(
            join(
                tag("p", one.name, class_="quiet small") if len(named) > 1 else None,
                tag("pre", shlex.join(one.result.command)),
            )
            for one in named
        )
    )


def _read_back(result: Result, key: str) -> str:
    """Return what running parts say of a parameter: at the top, or the same of each scheduler."""
    if key in result.actual:
        return _shown(result.actual[key])
    told = [
        part[key]
        for parts in result.actual.values()
        if isinstance(parts, list)
        for part in parts
        if isinstance(part, Mapping) and key in part
    ]
    return ", ".join(dict.fromkeys(_shown(value) for value in told)) or NOTHING


def _pairs(values: Mapping[str, object], head: str) -> Markup:
    return table([head, ""], [[key.replace("_", " "), _shown(value)] for key, value in values.items()], numbers=0)


def _shown(value: object) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(_shown(inner) for inner in value)
    return str(value)
