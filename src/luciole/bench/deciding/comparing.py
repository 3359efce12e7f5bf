"""Two stored results, figure by figure: what became worse, what better, and what can't be said. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from math import inf
from typing import Literal

from luciole.bench.deciding.accepted import Accepted
from luciole.bench.deciding.figures import Figure, figures_of
from luciole.bench.deciding.kinds import WORK_FLOOR, Kind, kind_of_unit, threshold_of
from luciole.bench.deciding.likeness import Likeness, differences_of
from luciole.bench.deciding.noise import detectable
from luciole.bench.deciding.ranks import rank_sum_p
from luciole.bench.deciding.sequential import THRESHOLD
from luciole.bench.profiles import PROFILES, Profile
from luciole.bench.result import Result
from luciole.bench.verdict import Verdict, worst

Rule = Literal["threshold", "evidence"]

#: With so many values on both sides the rank test can tell them apart.
RANKED_MIN = 4

#: What p of the rank test may be at most. Four against four reach 0.014 when they don't overlap.
RANK_P_MAX = 0.05


class Found(Enum):
    """What became of one figure."""

    REGRESSED = "REGRESSED"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    ACCEPTED = "accepted"
    SHOWN = "not gated"
    MISSING = "MISSING"
    UNKNOWN = "UNKNOWN"
    UNIT_CHANGED = "UNIT CHANGED"


#: What makes two results not comparable, whatever else they say.
_BROKEN = {Found.MISSING, Found.UNKNOWN, Found.UNIT_CHANGED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    name: str
    found: Found
    unit: str = ""
    direction: str = ""
    old: float | None = None
    new: float | None = None
    change: float | None = None  #: the share by which the value changed, whichever way is better
    threshold: float | None = None  #: the share by which it may become worse
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How to compare."""

    today: date
    rule: Rule = "evidence"
    threshold: float = THRESHOLD
    allow: frozenset[Likeness] = frozenset()
    accepted: Sequence[Accepted] = ()
    noise: Mapping[str, float] | None = None  #: this machine's, by figure, as `calibrate` found it


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What two results say together."""

    rows: tuple[Row, ...]
    differences: tuple[str, ...]  #: why they may not be compared, or what was allowed to differ
    verdict: Verdict
    reason: str

    def count(self, found: Found) -> int:
        """Return how many figures ended so."""
        return sum(row.found is found for row in self.rows)


def compare(old: Result, new: Result, terms: Terms) -> Comparison:
    """Compare two results.

    Args:
        old: what was.
        new: what is.
        terms: how.

    Returns:
        All figures with what became of them. A figure that is on one side only is never a pass.
    """
    profile = PROFILES.get(new.profile)
    rows = _rows(old, new, profile, terms) if profile and old.profile == new.profile else ()
    differences = differences_of(old, new)
    forbidden = [text for likeness, text in differences if likeness not in terms.allow]
    verdict, reason = _verdict(old, new, rows, forbidden)
    return Comparison(rows=rows, differences=tuple(text for _, text in differences), verdict=verdict, reason=reason)


def _rows(old: Result, new: Result, profile: Profile, terms: Terms) -> tuple[Row, ...]:
    before, after = figures_of(old), figures_of(new)
    registered = {spec.name for spec in profile.metrics}
    rows = []
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name), after.get(name)
        metric = (one or other).metric if one or other else ""  # type: ignore[union-attr] # one of them is there
        if metric not in registered:
            rows.append(Row(name=name, found=Found.UNKNOWN, note=f"{profile.name} has no metric of this name"))
        elif one is None or other is None:
            rows.append(_one_sided(name, one, other, terms))
        else:
            rows.append(_accepting(_row(one, other, profile, terms), metric, new, terms))
    return tuple(rows)


def _one_sided(name: str, one: Figure | None, other: Figure | None, terms: Terms) -> Row:
    there = one or other
    assert there
    allowed = there.direction == "none" or Likeness.METRICS in terms.allow
    return Row(
        name=name,
        found=Found.SHOWN if allowed else Found.MISSING,
        unit=there.unit,
        direction=there.direction,
        old=one.median if one else None,
        new=other.median if other else None,
        note=f"only in {'OLD' if one else 'NEW'}",
    )


def _row(one: Figure, other: Figure, profile: Profile, terms: Terms) -> Row:
    kind = kind_of_unit(one.unit)
    threshold = threshold_of(kind, under_load=profile.under_load, asked=terms.threshold)
    change = share_of_change(one.median, other.median)
    row = Row(
        name=one.name,
        found=Found.UNCHANGED,
        unit=other.unit,
        direction=one.direction,
        old=one.median,
        new=other.median,
        change=change,
        threshold=threshold,
        note=_noise(one, other, terms),
    )
    if (one.unit, one.direction) != (other.unit, other.direction):
        was, now = (f"{figure.unit}, {figure.direction} is better" for figure in (one, other))
        return replace(row, found=Found.UNIT_CHANGED, note=f"was {was}; is {now}")
    if one.direction == "zero":
        return replace(row, found=Found.REGRESSED if max(other.values) > 0 else Found.UNCHANGED, threshold=None)
    if not (one.gated and other.gated):
        note = "" if one.direction == "none" else "too few samples beyond it"
        return replace(row, found=Found.SHOWN, threshold=None, note=note)
    if worse(one, other, kind, threshold, terms.rule):
        return replace(row, found=Found.REGRESSED)
    if worse(other, one, kind, threshold, terms.rule):
        return replace(row, found=Found.IMPROVED)
    return row


def worse(one: Figure, other: Figure, kind: Kind, threshold: float, rule: Rule) -> bool:
    """Return whether the second figure is worse than the first, beyond what is allowed.

    What is counted is compared as it is, beyond its own spread. What is timed must be over the threshold in
    the median and, by evidence, above in the rank test where there are values enough; fewer count as they stand.
    """
    higher = one.direction == "higher"
    least, most = (other.median, one.median) if higher else (one.median, other.median)
    if most <= least or share_of_change(least, most) <= threshold:
        return False
    if kind is Kind.WORK:
        spread = max(one.values) - one.median
        return most - least > max(WORK_FLOOR, spread)
    if rule == "threshold" or min(len(one.values), len(other.values)) < RANKED_MIN:
        return True
    sides = (other.values, one.values) if higher else (one.values, other.values)
    return rank_sum_p(*sides) <= RANK_P_MAX


def share_of_change(old: float, new: float) -> float:
    """Return by which share a value changed; from nothing to something it is infinite."""
    if old == new:
        return 0.0
    return (new - old) / abs(old) if old else (inf if new > 0 else -inf)


def _noise(one: Figure, other: Figure, terms: Terms) -> str:
    """Return what calibration says of a figure: its noise, and which change so many values can see through it."""
    noise = (terms.noise or {}).get(one.name)
    if noise is None:
        return ""
    return f"noise here {noise:.1%}, could see {detectable(noise, len(one.values), len(other.values)):.1%}"


def _accepting(row: Row, metric: str, new: Result, terms: Terms) -> Row:
    """Turn a regression that was accepted into what it is, unless it grew or its day has passed."""
    if row.found is not Found.REGRESSED or row.change is None:
        return row
    notes = [row.note] if row.note else []
    for entry in terms.accepted:
        if not entry.covers(new.profile, str(new.backend.get("name")), metric):
            continue
        if entry.expires < terms.today:
            notes.append(f"was accepted until {entry.expires}: {entry.reason}")
        elif _worsening(row) > entry.size:
            notes.append(f"more than the {entry.size:.1%} that were accepted")
        else:
            return replace(row, found=Found.ACCEPTED, note=f"until {entry.expires}: {entry.reason}")
    return replace(row, note="; ".join(notes))


def _worsening(row: Row) -> float:
    """Return by which share of the old value it is worse, as a loss: half the rate is 0.5, twice the time 1."""
    assert row.change is not None
    return abs(row.change)


def _verdict(old: Result, new: Result, rows: Sequence[Row], forbidden: Sequence[str]) -> tuple[Verdict, str]:
    verdicts, reasons = [], []
    if new.verdict.code in _UNUSABLE:
        verdicts.append(Verdict(new.verdict.code))
        reasons.append(f"NEW is {new.verdict.word}: {new.verdict.reason}")
    if old.verdict.code in _UNUSABLE:
        verdicts.append(Verdict.NOT_COMPARABLE)
        reasons.append(f"OLD is {old.verdict.word}: {old.verdict.reason}")
    broken = [f"{row.name} ({row.found.value.lower()})" for row in rows if row.found in _BROKEN]
    if forbidden or broken:
        verdicts.append(Verdict.NOT_COMPARABLE)
        reasons += [*forbidden, *broken]
    elif not rows:
        verdicts.append(Verdict.NOT_COMPARABLE)
        reasons.append("they have no figure in common")
    regressed = [row for row in rows if row.found is Found.REGRESSED]
    if regressed:
        verdicts.append(Verdict.REGRESSED)
        reasons.append("worse: " + ", ".join(f"{row.name} {signed(row.change)}" for row in regressed))
    counts = {found: sum(row.found is found for row in rows) for found in _SUMMED}
    reasons.append(", ".join(f"{count} {found.value.lower()}" for found, count in counts.items() if count))
    return worst(verdicts), "; ".join(reason for reason in reasons if reason)


#: Results whose figures say nothing about the product.
_UNUSABLE = {Verdict.INCORRECT, Verdict.INVALID, Verdict.USAGE, Verdict.BACKEND_UNAVAILABLE, Verdict.NOT_COMPARABLE}

_SUMMED = (Found.REGRESSED, Found.IMPROVED, Found.ACCEPTED, Found.UNCHANGED, Found.SHOWN)


def signed(change: float | None) -> str:
    """Return a change as people read it: `+12.3 %`."""
    return "" if change is None else f"{change * 100:+.1f} %"
