"""Backoff: how long to wait after so many failures in a row."""

from dataclasses import dataclass

from luciole.limits import MS_US, SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses that grow by a factor up to a bound, each spread so that many clients don't come back together."""

    first_us: int = 50 * MS_US
    factor: float = 2.0
    max_us: int = 2 * SECOND_US
    spread: float = 0.5  #: 0.5: between half the pause and the whole of it

    def delay_us(self, failures: int, chance: float) -> int:
        """Return the pause after `failures` failures in a row (from 1), in microseconds.

        Args:
            failures: how many there were.
            chance: a random number in [0, 1).
        """
        steps = min(max(failures, 1) - 1, 64)  # Beyond that the bound has long been reached.
        pause = min(self.first_us * self.factor**steps, self.max_us)
        return int(pause * (1 - self.spread * chance))
