"""When requests of an open loop arrive: a Poisson process from a seed, and whether they came as that has it."""

from collections.abc import Iterator, Sequence
from math import log
from zlib import crc32

import msgspec

from luciole.bench.check import judge
from luciole.bench.result import Check
from luciole.limits import SECOND_US
from luciole.runtime.chance import Chance, seeded_chance

#: The share of the rate that was asked for, at least, in percent; a starved generator says so by its lateness, too.
_RATE_PERCENT_MIN = 90


class Arrived(msgspec.Struct, kw_only=True):
    """What a generator did, as it kept it itself."""

    count: int = 0
    marks: int = 0  #: a checksum of the instants since the begin, in order, each with what was drawn beside it
    last_us: int = 0  #: when the last request left, since the begin

    def add(self, offset_us: int, left_us: int, drawn: float = 0.0) -> None:
        """Note a request.

        Args:
            offset_us: its intended instant since the begin.
            left_us: when it left.
            drawn: what chance said of it beside its instant.
        """
        self.count += 1
        self.marks = crc32(f"{offset_us} {drawn}".encode("ascii"), self.marks)
        self.last_us = left_us


def offsets(rate: float, span_us: int, chance: Chance) -> Iterator[float]:
    """Yield instants of a Poisson process in microseconds since its begin, up to its end."""
    at_us = 0.0
    while (at_us := at_us - log(1 - chance()) * SECOND_US / rate) < span_us:
        yield at_us


def asked(rate: float, span_us: int, seed: int, *, draws: bool = False) -> Arrived:
    """Return what a generator does that takes its parameters as they were asked for.

    Args:
        rate: requests a second.
        span_us: from the begin to the end.
        seed: of chance.
        draws: chance is asked once more for each request.
    """
    chance, found = seeded_chance(seed), Arrived()
    for offset_us in offsets(rate, span_us, chance):
        found.add(round(offset_us), round(offset_us), chance() if draws else 0.0)
    return found


def arrived_as_asked(found: Arrived, wanted: Arrived) -> list[Check]:
    """Judge whether rate, length and seed took effect, by the instants that came of them."""
    return [
        judge("requests_of_the_seed", "report", "= :wanted", found.count, {"wanted": wanted.count}),
        judge("instants_of_the_seed", "report", "= :wanted", found.marks, {"wanted": wanted.marks}),
    ]


def rate_missed(found: Arrived, wanted: Arrived) -> list[str]:
    """Return why the requests that left are not the load that was asked for; nothing when they are."""
    percent = 100 * found.count * wanted.last_us // (wanted.count * max(1, found.last_us)) if wanted.count else 100
    if percent >= _RATE_PERCENT_MIN:
        return []
    return [f"requests left at {percent} % of the rate that was asked for"]


def drawn_as_asked(name: str, found: Sequence[float], seed: int) -> Check:
    """Judge whether what was drawn by chance, in order, came of a seed."""
    chance = seeded_chance(seed)
    wrong = sum(value != chance() for value in found)
    return judge(name, "report", "= 0", wrong, {})
