"""The search for the most that meets an objective: doubling, then bisection; pure."""

import msgspec


class Search(msgspec.Struct, kw_only=True):
    """Which amount to try next, given what was met and what was not.

    An amount between the two bounds is tried until they are close; it never tries one twice.
    """

    start: int
    most: int
    precision: float  #: bounds whose ratio is within it are close enough
    met: int = 0  #: the most that was met; 0: nothing yet
    failed: int | None = None  #: the least that was not met

    def next(self) -> int | None:
        """Return the amount to try, or None when the search is over."""
        if self.failed is None:
            if self.met == 0:
                return min(self.start, self.most)
            return min(self.met * 2, self.most) if self.met < self.most else None
        if self.met == 0:
            return self.failed // 2 or None
        between = _round((self.met + self.failed) // 2)
        if self.failed <= self.met * (1 + self.precision) or not self.met < between < self.failed:
            return None
        return between

    def note(self, amount: int, *, met: bool) -> None:
        """Take what became of an amount."""
        if met:
            self.met = max(self.met, amount)
        elif self.failed is None or amount < self.failed:
            self.failed = amount


def _round(amount: int) -> int:
    """Keep three digits: more would claim what no measurement can know."""
    unit: int = 10 ** max(0, len(str(amount)) - 3)
    return amount // unit * unit
