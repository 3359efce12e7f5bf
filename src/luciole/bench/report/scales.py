"""Scales of charts: from values to places, and the round values to write beside an axis; pure."""

import math
from typing import NamedTuple

#: Steps between round values, as parts of a power of ten.
_STEPS = (1, 2, 2.5, 5, 10)


class Linear(NamedTuple):
    """A straight scale from values to places."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        width = self.high - self.low
        share = (value - self.low) / width if width else 0.0
        return self.begin + share * (self.end - self.begin)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round values from `low` to `high`, about so many."""
    width = high - low
    if width <= 0 or not math.isfinite(width):
        return [low]
    rough = width / count
    power = 10 ** math.floor(math.log10(rough))
    step = next((part * power for part in _STEPS if part * power >= rough * (1 - 1e-9)), 10 * power)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def above(value: float) -> float:
    """Return the round value at or above a greatest one, so that a line does not touch its frame."""
    if value <= 0:
        return 1.0
    step = ticks(0, value)
    return value if step[-1] >= value else step[-1] + (step[1] - step[0] if len(step) > 1 else value)


def short(value: float) -> str:
    """Return a number in at most five characters: 1,200 as 1.2k."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"
