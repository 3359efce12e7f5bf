"""The profiles as data: each asks one question and draws the border of its figures."""

from luciole.bench.profiles.backlog import BACKLOG
from luciole.bench.profiles.burst import BURST
from luciole.bench.profiles.capacity import CAPACITY_STEADY
from luciole.bench.profiles.chaos import CHAOS
from luciole.bench.profiles.drain import DRAIN
from luciole.bench.profiles.enqueue import ENQUEUE
from luciole.bench.profiles.idle import IDLE
from luciole.bench.profiles.micro import MICRO
from luciole.bench.profiles.mixed import MIXED
from luciole.bench.profiles.pickup import PICKUP
from luciole.bench.profiles.probe import PROBE
from luciole.bench.profiles.profile import SIZES, Profile, Size
from luciole.bench.profiles.register import REGISTER
from luciole.bench.profiles.soak import SOAK
from luciole.bench.profiles.sql_ceiling import SQL_CEILING
from luciole.bench.profiles.steady import STEADY
from luciole.bench.profiles.store import STORE
from luciole.bench.verdict import Usage

__all__ = ["PROFILES", "SIZES", "Profile", "Size", "find_profile"]

_ALL = (
    BURST,
    REGISTER,
    ENQUEUE,
    PICKUP,
    DRAIN,
    STORE,
    IDLE,
    STEADY,
    CAPACITY_STEADY,
    MIXED,
    BACKLOG,
    SOAK,
    CHAOS,
    MICRO,
    PROBE,
    SQL_CEILING,
)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in _ALL}


def find_profile(name: str) -> Profile:
    """Return a profile by its name.

    Raises:
        Usage: there is none; the message names those that there are.
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise Usage(f"profile {name!r}: there is none; choose from {', '.join(PROFILES)}") from None
