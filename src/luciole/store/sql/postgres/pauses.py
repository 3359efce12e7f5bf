"""How long to wait before the same is tried again."""

from luciole import limits


def pause_us(tries: int, most_us: int, chance: float) -> int:
    """Return a pause that doubles with each try up to a bound, spread so that not all come back together.

    Args:
        tries: how many there were, from 1.
        most_us: the longest pause.
        chance: a random number in [0, 1).
    """
    longest = min(limits.POSTGRES_PAUSE_MIN_US << min(tries, 32), most_us)
    return int(longest * (0.5 + chance / 2))
