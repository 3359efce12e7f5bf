"""What a comparison of two revisions leaves behind: one document, `ab.json`, and its page."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from luciole.bench.ab.arms import Side
from luciole.bench.ab.judging import Judged
from luciole.bench.deciding.comparing import signed
from luciole.bench.deciding.table import number
from luciole.bench.result import Outcome

KIND = "luciole.bench.ab"
SCHEMA = 1
FILE_NAME = "ab.json"


class JudgedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure; shares are of the base's value, worse is positive."""

    name: str
    unit: str
    direction: str
    kind: str
    base: float
    head: float
    call: str
    pairs: int
    change: float
    bound: float | None  #: above the true change in 97.5 % of cases
    p: float
    detectable: float | None  #: the least change that would have been found in four of five tries
    confirmed: bool | None
    note: str
    differences: list[float | None]  #: logarithms, pair by pair; None: from or to nothing


class Document(msgspec.Struct, kw_only=True):
    """The whole document."""

    kind: str = KIND
    schema: int = SCHEMA
    profile: str
    options: list[str]
    verdict: Outcome
    started: str
    duration_s: float
    author: str | None
    command: list[str]
    environment: dict[str, Any]
    base: dict[str, Any]
    head: dict[str, Any]
    seed: int
    order: list[str]  #: which side came first, pair by pair
    threshold: float
    slices: int
    invalid: list[str]  #: slices that said nothing, and why
    figures: list[JudgedFigure]


def judged_figure(judged: Judged, note: str) -> JudgedFigure:
    """Return a judgement as the document has it."""
    found = judged.judgement
    return JudgedFigure(
        name=judged.name,
        unit=judged.unit,
        direction=judged.direction,
        kind=judged.kind.value,
        base=judged.base,
        head=judged.head,
        call=found.call.value,
        pairs=found.pairs,
        change=found.change,
        bound=_finite(found.bound),
        p=found.p,
        detectable=_finite(found.detectable),
        confirmed=judged.confirmed,
        note=note,
        differences=[_finite(one) for one in judged.differences],
    )


def side_told(side: Side) -> dict[str, Any]:
    """Return a side as the document has it; the folder is gone when somebody reads it."""
    return {"asked": side.asked, "revision": side.revision, "dirty": side.dirty}


def write_document(document: Document, folder: Path) -> Path:
    """Write `ab.json` into a folder, whole or not at all; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE_NAME
    draft = path.with_suffix(".part")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    draft.replace(path)
    return path


def page(document: Document) -> str:
    """Return the document for people, as Markdown."""
    base, head = (
        f"{side['asked']} ({str(side['revision'])[:12]}{', changed' if side['dirty'] else ''})"
        for side in (document.base, document.head)
    )
    lines = [
        f"# {document.profile}: {head} against {base}",
        "",
        (
            f"{document.slices} slices of `run {' '.join([document.profile, *document.options])}`, "
            f"seed {document.seed}, threshold {document.threshold * 100:g} %."
        ),
        "",
    ]
    lines += [f"- a slice was thrown away: {reason}" for reason in document.invalid]
    lines += [""] if document.invalid else []
    if document.figures:
        lines += [
            "| figure | base | head | worse by | at most | p | pairs | could see | |",
            "|---|--:|--:|--:|--:|--:|--:|--:|---|",
            *("| " + " | ".join(_cells(figure)) + " |" for figure in document.figures),
        ]
    return "\n".join(lines).rstrip()


def _cells(figure: JudgedFigure) -> Sequence[str]:
    loud = figure.call == "regressed"
    word = f"**{figure.call.upper()}**" if loud else figure.call
    counted = figure.kind == "work"
    return (
        f"{figure.name} ({figure.unit})",
        number(figure.base),
        number(figure.head),
        signed(figure.change),
        "" if counted or figure.bound is None else signed(figure.bound),
        "" if counted else f"{figure.p:.4f}",
        str(figure.pairs),
        "" if counted or figure.detectable is None else f"{figure.detectable * 100:.1f} %",
        f"{word} {figure.note}".rstrip(),
    )


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
