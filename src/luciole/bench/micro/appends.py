"""Durable appends by so many concurrent callers on the embedded store, each of which waits for its own.

Run as `python -m luciole.bench.micro.appends CALLERS COUNT`; it prints one line of JSON. To count system calls, run it
under `strace -f -c`.
"""

import asyncio
import resource
import sys

import msgspec

from luciole import limits
from luciole.bench.backends import Place
from luciole.bench.cpu import own_cpu_us
from luciole.bench.loops import run_here
from luciole.bench.micro.durable import Bench, Commits, open_bench, own_folder
from luciole.bench.percentiles import Distribution
from luciole.runtime.clock import SystemClock

#: Appends of each caller before the clock starts: statements are prepared, files and pages are there.
_WARM_UP = 100


async def measure_appends(place: Place, *, callers: int, count: int) -> dict[str, float]:
    """Return what an append costs.

    Args:
        place: a SQLite file that is made here.
        callers: how many append at once, each one by one.
        count: appends of all together, rounded down to the same number for each.

    Returns:
        `rate` a second, `p50_us` and `p99_us` from the call to the durable answer; for each append `cpu_us` of this
        process, `commits`, and `switches`: how often one of its threads went to sleep.
    """
    clock, commits = SystemClock(), Commits()
    async with open_bench(place, commits) as bench:
        await _append(bench, clock, callers=callers, each=_WARM_UP)
        counted, slept, cpu_us, begun_us = commits.count, _switches(), own_cpu_us(), clock.monotonic_us()
        times_us = await _append(bench, clock, callers=callers, each=count // callers)
        took_us, used_us, done = clock.monotonic_us() - begun_us, own_cpu_us() - cpu_us, len(times_us)
        committed, slept = commits.count - counted, _switches() - slept
    times = Distribution()
    for time_us in times_us:
        times.add(time_us)
    return {
        "rate": round(done * limits.SECOND_US / took_us),
        "p50_us": times.value_at(50),
        "p99_us": times.value_at(99),
        "cpu_us": round(used_us / done, 1),
        "commits": round(committed / done, 4),
        "switches": round(slept / done, 3),
    }


async def _append(bench: Bench, clock: SystemClock, *, callers: int, each: int) -> list[int]:
    """Return how long each append took, in microseconds."""
    times_us: list[int] = []

    async def caller() -> None:
        for _ in range(each):
            begun_us = clock.monotonic_us()
            await bench.append()
            times_us.append(clock.monotonic_us() - begun_us)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return times_us


def _switches() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def main(callers: int, count: int) -> None:
    """Measure on a store of its own; print the figures."""
    with own_folder() as folder:
        place = Place(dsn=f"sqlite:///{folder / 'appends.db'}")
        found = run_here(measure_appends(place, callers=callers, count=count))
    sys.stdout.write(msgspec.json.encode({"callers": callers, **found}).decode("ascii") + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
