"""What tells results apart that stand on one page."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from luciole.bench.result import Result

#: Parameters that do not say what was done, but where, how often, or how widely the ceiling was searched.
_ASIDE = {"out", "folder", "repeats", "ceiling", "size", "backend", "warm_up_jobs"}


class Named(NamedTuple):
    """A result with a name among others."""

    name: str
    result: Result


def name_all(results: Sequence[Result]) -> list[Named]:
    """Name each result by its store and by what it was asked for differently than the others."""
    names = []
    for result in results:
        others = [other.requested for other in results if other is not result]
        differing = [
            f"{key.replace('_', ' ')} {value:,}" if isinstance(value, int) else f"{key.replace('_', ' ')} {value}"
            for key, value in sorted(result.requested.items(), key=lambda pair: (isinstance(pair[1], int), pair[0]))
            if key not in _ASIDE and any(other.get(key) != value for other in others)
        ]
        store = store_of(result) if len({store_of(one) for one in results}) > 1 or not differing else None
        names.append(", ".join([*([store] if store else []), *differing]))
    return [
        Named(f"{name} ({number})" if names.count(name) > 1 else name, result)
        for number, (name, result) in enumerate(zip(names, results, strict=True), 1)
    ]


def differing(results: Sequence[Result]) -> dict[str, list[Any]]:
    """Return the parameters that results do not share, each with its value in each result."""
    keys = sorted({key for result in results for key in result.requested} - _ASIDE)
    found = {key: [result.requested.get(key) for result in results] for key in keys}
    return {key: values for key, values in found.items() if any(value != values[0] for value in values)}


def store_of(result: Result) -> str:
    """Return the store of a result, as a title names it."""
    name = result.backend.get("name")
    return "no store" if name in {None, "none"} else f"{name} {result.backend.get('version', '')}".rstrip()
