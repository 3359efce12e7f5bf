"""Randomness: the only place that makes it; everybody else is given a `Chance`."""

import random
import secrets
from collections.abc import Callable
from typing import TypeAlias

#: Returns a number in [0, 1), a new one with each call.
Chance: TypeAlias = Callable[[], float]


def system_chance() -> Chance:
    """Return randomness seeded by the operating system."""
    return random.Random(secrets.randbits(64)).random  # noqa: S311 - spreads pauses, guards nothing


def seeded_chance(seed: int) -> Chance:
    """Return randomness that repeats with its seed: what a simulation needs."""
    return random.Random(seed).random  # noqa: S311 - same


def new_process_id() -> str:
    """Return 16 random hex digits: who a node or an executor is, until its process ends."""
    return secrets.token_hex(8)
