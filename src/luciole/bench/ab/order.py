"""In which order slices run: a drifting machine must favour neither arm. Pure."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from luciole.runtime.chance import seeded_chance

Arm = Literal["base", "head"]


class Pair(NamedTuple):
    """Two slices that run one after the other."""

    first: Arm
    second: Arm


_AB, _BA = Pair("base", "head"), Pair("head", "base")


def pairs(seed: int) -> Iterator[Pair]:
    """Yield pairs without end: two by two ABBA or BAAB, as the seed has it.

    Each block of four slices has both arms twice, at the same mean time: what drifts steadily cancels out.
    """
    chance = seeded_chance(seed)
    half = 0.5
    while True:
        yield from (_AB, _BA) if chance() < half else (_BA, _AB)
