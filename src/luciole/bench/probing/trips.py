"""Round trips: the smallest question to a store, again and again, over one connection."""

import sqlite3

from luciole.bench.backends import Place, connect_postgres, sqlite_path
from luciole.bench.check import judge
from luciole.bench.percentiles import Distribution
from luciole.bench.probing.spec import Probed, ProbeSpec
from luciole.limits import SECOND_US
from luciole.runtime.clock import Clock


async def round_trips(place: Place, spec: ProbeSpec, clock: Clock) -> Probed:
    """Ask for the number 1, one question after the other."""
    lag = Distribution()
    answered = 0
    begun_us = clock.monotonic_us()
    if place.dsn.startswith("sqlite:"):
        embedded = sqlite3.connect(sqlite_path(place.dsn))
        try:
            at_us = begun_us
            for _ in range(spec.round_trips):
                answered += embedded.execute("SELECT 1").fetchone()[0]
                now_us = clock.monotonic_us()
                lag.add(now_us - at_us)
                at_us = now_us
        finally:
            embedded.close()
    else:
        connection = await connect_postgres(place)
        try:
            question = await connection.prepare("SELECT 1")
            begun_us = at_us = clock.monotonic_us()
            for _ in range(spec.round_trips):
                answered += await question.fetchval()
                now_us = clock.monotonic_us()
                lag.add(now_us - at_us)
                at_us = now_us
        finally:
            await connection.close()
    return Probed(
        figures={"rtt_rate": answered * SECOND_US / (clock.monotonic_us() - begun_us)},
        check=judge("questions_answered", "report", "= :trips", answered, {"trips": spec.round_trips}),
        distributions={"rtt": lag.percentiles()},
        tool="sqlite3" if place.dsn.startswith("sqlite:") else "asyncpg",
    )
