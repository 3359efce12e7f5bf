"""Two sets of results, before and after: the ratio of each gated throughput, and what they come to together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import fmean, median

from luciole.bench.deciding.kept import results_below
from luciole.bench.deciding.likeness import FREE
from luciole.bench.deciding.table import number
from luciole.bench.result import Metric, Result
from luciole.bench.verdict import NotReadable, Verdict

#: Results that are gates for nothing.
_SOUND = {Verdict.OK, Verdict.OBJECTIVE_MISSED}

Key = tuple[str, str, str, str]  #: profile, store, parameters, figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """One throughput on both sides."""

    profile: str
    store: str
    figure: str
    unit: str
    before: tuple[float, ...]  #: a value a repeat, of all results of its side
    after: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median after by the median before: over 1 is better."""
        return median(self.after) / median(self.before)


def gains(before: Sequence[Result], after: Sequence[Result]) -> list[Gain]:
    """Return every gated throughput that both sides have, in the order of the first side.

    A throughput is what is counted by a second and better when higher. Several results of one profile, store and set of
    parameters are slices of one measurement: their values come together. A parameter that one side does not know yet
    is none.

    Raises:
        NotReadable: a side has none, a throughput or a machine of one side alone, or a result that is not sound.
    """
    for side, results in (("BEFORE", before), ("AFTER", after)):
        for one in results:
            if one.verdict.code not in _SOUND:
                raise NotReadable(f"{side}: {one.profile} is {one.verdict.word}: {one.verdict.reason}")
    machines = {str(one.environment.get("fingerprint")) for one in (*before, *after)}
    if len(machines) > 1:
        raise NotReadable(f"results of several machines: {', '.join(sorted(machines))}; each set must be of one")
    known = _known_to_all((*before, *after))
    old, new = _throughputs(before, known), _throughputs(after, known)
    alone = [f"{key[3]} of {key[0]} on {key[1]}" for key in dict.fromkeys((*old, *new)) if (key in old) != (key in new)]
    if alone or not old:
        raise NotReadable(f"on one side only: {', '.join(alone)}" if alone else "no throughput in these results")
    return [
        Gain(profile=key[0], store=key[1], figure=key[3], unit=unit, before=tuple(values), after=tuple(new[key][1]))
        for key, (unit, values) in old.items()
    ]


def read_all(folder: Path) -> list[Result]:
    """Read every result below a folder, ordered by path.

    Raises:
        NotReadable: there is none, or one can't be read.
    """
    found = []
    for _, one in results_below(folder):
        if isinstance(one, NotReadable):
            raise one
        found.append(one)
    if not found:
        raise NotReadable(f"{folder}: no result below it")
    return found


def is_throughput(one: Metric) -> bool:
    """Return whether a figure is gated, and counts something by the second."""
    return one.direction == "higher" and one.unit.endswith("/s")


def together(ratios: Sequence[float]) -> float:
    """Return the geometric mean: twice and half come to 1."""
    return exp(fmean(log(ratio) for ratio in ratios))


def page(found: Sequence[Gain]) -> str:
    """Return all gains as a Markdown table, and the geometric mean."""
    whole = together([gain.ratio for gain in found])
    return "\n".join(
        [
            "| profile | store | figure | before | after | ratio | repeats |",
            "|---|---|---|--:|--:|--:|--:|",
            *_rows(found),
            "",
            f"Geometric mean over {len(found)} gated throughputs: {whole:.3f}, {whole - 1:+.1%}.",
        ]
    )


def _rows(found: Sequence[Gain]) -> Iterator[str]:
    for gain in found:
        yield (
            f"| {gain.profile} | {gain.store} | {gain.figure} ({gain.unit}) | {number(median(gain.before))} | "
            f"{number(median(gain.after))} | {gain.ratio:.2f} | {len(gain.before)}, {len(gain.after)} |"
        )


def _subject(result: Result) -> tuple[str, str]:
    return result.profile, str(result.backend.get("name"))


def _known_to_all(results: Sequence[Result]) -> Mapping[tuple[str, str], set[str]]:
    """Return the parameters that every result of a profile and store names: an older revision lacks newer ones."""
    known: dict[tuple[str, str], set[str]] = {}
    for one in results:
        known[_subject(one)] = known.get(_subject(one), set(one.requested)) & set(one.requested) - FREE
    return known


def _throughputs(
    results: Sequence[Result], known: Mapping[tuple[str, str], set[str]]
) -> Mapping[Key, tuple[str, list[float]]]:
    found: dict[Key, tuple[str, list[float]]] = {}
    for result in results:
        asked = repr([(name, result.requested[name]) for name in sorted(known[_subject(result)])])
        for one in result.metrics:
            if is_throughput(one):
                key = (*_subject(result), asked, one.name)
                found.setdefault(key, (one.unit, []))[1].extend(one.values)
    return found
