"""From pairs of results to a judgement of each figure. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from luciole.bench.deciding.comparing import worse
from luciole.bench.deciding.figures import Figure, figures_of
from luciole.bench.deciding.kinds import Kind, kind_of_unit, threshold_of
from luciole.bench.deciding.sequential import Call, Judgement, confirmed, judge, worsening
from luciole.bench.result import Result
from luciole.bench.verdict import NotReadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of one figure."""

    name: str
    unit: str
    direction: str
    kind: Kind
    base: float
    head: float
    judgement: Judgement
    confirmed: bool | None = None  #: whether fresh pairs show a regression once more; None: nobody asked
    differences: tuple[float, ...] = field(repr=False, default=())


@dataclass(slots=True)
class Pairs:
    """Results of both sides, pair by pair."""

    under_load: bool
    threshold: float
    base: list[Mapping[str, Figure]] = field(default_factory=list)
    head: list[Mapping[str, Figure]] = field(default_factory=list)

    def add(self, base: Result, head: Result) -> None:
        """Take one more pair.

        Raises:
            NotReadable: a gated figure stands on one side only, or its unit differs.
        """
        one, other = figures_of(base), figures_of(head)
        for name in dict.fromkeys((*one, *other)):
            before, after = one.get(name), other.get(name)
            if before is None or after is None:
                if _gated(before or after):
                    raise NotReadable(f"{name}: only {'BASE' if before else 'HEAD'} measures it")
            elif (before.unit, before.direction) != (after.unit, after.direction):
                raise NotReadable(f"{name}: in {before.unit} in BASE, in {after.unit} in HEAD")
        self.base.append(one)
        self.head.append(other)

    def judged(self) -> dict[str, Judged]:
        """Judge every gated figure that each pair has, as far as the last look that is reached."""
        names = [name for name, figure in self.base[0].items() if _gated(figure)]
        return {name: self._judged(name) for name in names if self._whole(name)}

    def _whole(self, name: str) -> bool:
        return all(name in one and one[name].gated for one in (*self.base, *self.head))

    def _judged(self, name: str) -> Judged:
        one, other = (self._together(side, name) for side in (self.base, self.head))
        higher = one.direction == "higher"
        differences = tuple(
            worsening(old, new, higher_is_better=higher) for old, new in zip(one.values, other.values, strict=True)
        )
        kind = kind_of_unit(one.unit)
        threshold = threshold_of(kind, under_load=self.under_load, asked=self.threshold)
        judgement = judge(differences, threshold=threshold)
        if kind is Kind.WORK and judgement.pairs:
            judgement = replace(judgement, call=_counted(one, other, threshold), final=True)
        if one.direction == "zero":
            call = Call.REGRESSED if max(other.values) > 0 else Call.PASSED
            judgement = replace(judgement, call=call, final=True)
        return Judged(
            name=name,
            unit=one.unit,
            direction=one.direction,
            kind=kind,
            base=one.median,
            head=other.median,
            judgement=judgement,
            differences=differences,
        )

    @staticmethod
    def _together(side: Sequence[Mapping[str, Figure]], name: str) -> Figure:
        first = side[0][name]
        values = [value for one in side for value in one[name].values]
        return Figure(
            name=name, metric=first.metric, unit=first.unit, direction=first.direction, values=values, beyond=None
        )


def confirm(judged: Judged, fresh: Pairs) -> Judged:
    """Say whether fresh pairs show a regression once more; one that they don't stays open."""
    again = fresh.judged().get(judged.name)
    if judged.kind is Kind.WORK or judged.direction == "zero":
        held = again is not None and again.judgement.call is Call.REGRESSED
    else:
        held = again is not None and confirmed(again.differences, threshold=fresh.threshold)
    call = Call.REGRESSED if held else Call.INCONCLUSIVE
    return replace(judged, confirmed=held, judgement=replace(judged.judgement, call=call))


def _counted(one: Figure, other: Figure, threshold: float) -> Call:
    if worse(one, other, Kind.WORK, threshold, "threshold"):
        return Call.REGRESSED
    return Call.IMPROVED if worse(other, one, Kind.WORK, threshold, "threshold") else Call.PASSED


def _gated(figure: Figure | None) -> bool:
    return figure is not None and figure.direction != "none"
