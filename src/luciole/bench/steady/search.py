"""The search for the most that meets an objective: doubling, then bisection, then confirmation; pure."""

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


#: At what shares of an amount it is confirmed: the first must be met, the others need not be.
_SHARES = (0.9, 1.0, 1.1)

#: What is left of an amount that was not confirmed.
_LOWERED = 0.8


class Confirmation(msgspec.Struct, kw_only=True):
    """What to try in longer windows, given what short ones met: they may flatter.

    Just below the amount, then the amount and just above. When not even the first is met, the amount was none of what
    is sustained, and a lower one takes its place, until one is met.
    """

    amount: int  #: what short windows met; lowered while it is not confirmed
    met: int = 0  #: the most that was met; 0: nothing yet
    tried: int = 0  #: of the shares of this amount

    def next(self) -> int | None:
        """Return the amount to try, or None when the confirmation is over."""
        if self.tried == len(_SHARES) or self.amount == 0:
            return None
        return round(self.amount * _SHARES[self.tried])

    def note(self, amount: int, *, met: bool) -> None:
        """Take what became of an amount."""
        if met:
            self.met = max(self.met, amount)
        if self.met:
            self.tried += 1
        else:
            self.amount = _round(int(self.amount * _LOWERED))


def _round(amount: int) -> int:
    """Keep three digits: more would claim what no measurement can know."""
    unit: int = 10 ** max(0, len(str(amount)) - 3)
    return amount // unit * unit
