"""Whether two results are of the same thing: machine, backend, parameters."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from luciole.bench.result import Result

#: What may be asked for differently without measuring something else.
FREE = frozenset({"size", "repeats", "ceiling", "author"})


class Likeness(Enum):
    """What must be the same unless its difference is allowed."""

    MACHINE = "machine"
    PARAMETERS = "parameters"
    METRICS = "metrics"  #: figures that stand in one of the results only


def differences_of(old: Result, new: Result) -> list[tuple[Likeness, str]]:
    """Return what makes two results results of different things, each with its words."""
    found = []
    if old.profile != new.profile:
        found.append((Likeness.PARAMETERS, f"profile: {old.profile} and {new.profile}"))
    one, other = (result.environment.get("fingerprint") for result in (old, new))
    if one != other or one is None:
        found.append((Likeness.MACHINE, f"another machine: fingerprint {one or 'unknown'} and {other or 'unknown'}"))
    found += [(Likeness.PARAMETERS, text) for text in _unlike("", old.requested, new.requested, free=FREE)]
    for name in ("name", "version"):
        if old.backend.get(name) != new.backend.get(name):
            found.append((Likeness.PARAMETERS, f"backend {name}: {old.backend.get(name)} and {new.backend.get(name)}"))
    one_set, other_set = (result.backend.get("settings") or {} for result in (old, new))
    found += [(Likeness.PARAMETERS, text) for text in _unlike("server setting ", one_set, other_set)]
    return found


def _unlike(
    prefix: str, old: Mapping[str, Any], new: Mapping[str, Any], free: frozenset[str] = frozenset()
) -> Iterator[str]:
    for name in sorted({*old, *new} - free):
        if old.get(name) != new.get(name):
            yield f"{prefix}{name}: {old.get(name)!r} and {new.get(name)!r}"
