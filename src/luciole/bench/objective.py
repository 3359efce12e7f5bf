"""What a person asks of a run besides its profile's own objective: clauses such as `start_lag<=5ms`. Pure."""

import re
from collections.abc import Sequence

import msgspec

from luciole.bench.profiles import Profile
from luciole.bench.result import Repeat
from luciole.bench.verdict import Usage
from luciole.errors import InvalidValue
from luciole.model.duration import duration_us

_CLAUSE = re.compile(r"\s*([a-z0-9_]+)(?:\.(p50|p95|p99|max))?\s*(<=|>=)\s*(\S+)\s*")

#: What a distribution counts by when nobody says so.
_POINT = "p99"


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    text: str
    name: str  #: of a metric
    point: str | None  #: of its distribution; None: its p99, or its figure
    at_most: bool  #: else at least
    value: float  #: in the metric's unit


def read_clause(profile: Profile, text: str) -> Clause:
    """Return what a clause says of a profile.

    Raises:
        Usage: it is none, or the profile has no such metric.
    """
    found = _CLAUSE.fullmatch(text)
    if found is None:
        raise Usage(f"--slo: {text!r} is no clause; write METRIC<=VALUE or METRIC>=VALUE, such as start_lag<=5ms")
    name, point, sign, value = found.groups()
    unit = profile.metric(name).unit
    return Clause(text=text.strip(), name=name, point=point, at_most=sign == "<=", value=_number(text, value, unit))


def _number(text: str, value: str, unit: str) -> float:
    try:
        if value.endswith("%"):
            return float(value[:-1]) / 100
        if unit == "us" and not value.replace(".", "", 1).isdecimal():
            return duration_us(value, field="--slo")
        return float(value)
    except (ValueError, InvalidValue):
        raise Usage(f"--slo: {text!r}: {value!r} is no amount of {unit}") from None


def unmet_clauses(clauses: Sequence[Clause], repeat: Repeat) -> list[str]:
    """Return the clauses that a repeat failed; what it did not measure, it failed."""
    unmet = []
    for clause in clauses:
        found = _found(clause, repeat)
        if found is None:
            unmet.append(f"{clause.text}: this run did not measure it")
        elif found > clause.value if clause.at_most else found < clause.value:
            unmet.append(f"{clause.text}: it is {found:,.6g}")
    return unmet


def _found(clause: Clause, repeat: Repeat) -> float | None:
    if clause.name in repeat.distributions:
        return float(getattr(repeat.distributions[clause.name], clause.point or _POINT))
    return None if clause.point else repeat.figures.get(clause.name)
