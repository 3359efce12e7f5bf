"""What was planted and what was seen: the table and the verdict of the self-test. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from luciole.bench.selftest.laboratory import Laboratory
from luciole.bench.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What became of one planted fault."""

    caught: bool | None  #: None: it could not be planted here
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One fault, and what must see it."""

    fault: str
    layer: str
    expected: str
    plant: Callable[[Laboratory], Seen]


def table(seen: Sequence[tuple[Case, Seen]]) -> str:
    """Return fault, layer, what was expected and what was seen, as Markdown."""
    words = {True: "yes", False: "**NO**", None: "not here"}
    rows = [
        f"| {case.fault} | {case.layer} | {case.expected} | {found.text} | {words[found.caught]} |"
        for case, found in seen
    ]
    return "\n".join(["| fault | layer | expected | seen | |", "|---|---|---|---|---|", *rows])


def judged(seen: Sequence[tuple[Case, Seen]]) -> tuple[Verdict, str]:
    """Return the verdict: a fault that nobody saw says that the bench can't be trusted."""
    missed = [f"{case.fault} ({case.layer})" for case, found in seen if found.caught is False]
    if missed:
        return Verdict.INVALID, f"not seen: {', '.join(missed)}; the bench can't be trusted"
    absent = sum(found.caught is None for _, found in seen)
    beside = f", {absent} could not be planted here" if absent else ""
    return Verdict.OK, f"{len(seen) - absent} cases planted and seen as they must{beside}"
