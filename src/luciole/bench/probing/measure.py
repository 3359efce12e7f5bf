"""Probes as a run: one or several of them, on the disk that the backend's data lies on."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from luciole.bench.backends import Backend, Place
from luciole.bench.probing.creating import create_files
from luciole.bench.probing.fio import fio_pattern, has_fio
from luciole.bench.probing.spec import Probed, ProbeSpec
from luciole.bench.probing.trips import round_trips
from luciole.bench.probing.writing import RANDOM_4K, SEQUENTIAL_1M, Pattern, flush_log, write_pattern
from luciole.bench.result import Phase, Repeat, Result
from luciole.bench.run import fresh_place
from luciole.bench.verdict import Usage
from luciole.limits import SECOND_US
from luciole.runtime.clock import Clock

_Probe: TypeAlias = Callable[[Path, Place, ProbeSpec, Clock], Awaitable[Probed]]


async def _random(folder: Path, _: Place, spec: ProbeSpec, clock: Clock) -> Probed:
    return await _written(folder, RANDOM_4K, spec, clock)


async def _sequential(folder: Path, _: Place, spec: ProbeSpec, clock: Clock) -> Probed:
    return await _written(folder, SEQUENTIAL_1M, spec, clock)


async def _create(folder: Path, _: Place, spec: ProbeSpec, clock: Clock) -> Probed:
    return await asyncio.to_thread(create_files, folder, spec, clock)


async def _log(folder: Path, _: Place, spec: ProbeSpec, clock: Clock) -> Probed:
    return await asyncio.to_thread(flush_log, folder, spec, clock)


async def _trips(_: Path, place: Place, spec: ProbeSpec, clock: Clock) -> Probed:
    return await round_trips(place, spec, clock)


async def _written(folder: Path, pattern: Pattern, spec: ProbeSpec, clock: Clock) -> Probed:
    if spec.tool == "fio" or (spec.tool == "auto" and has_fio()):
        return await asyncio.to_thread(fio_pattern, folder, pattern, spec)
    return await asyncio.to_thread(write_pattern, folder, pattern, spec, clock)


#: What can be probed, by name.
PROBES: Mapping[str, _Probe] = {
    "4k-randwrite": _random,
    "1m-seqwrite": _sequential,
    "meta-create": _create,
    "wal-fsync": _log,
    "rtt": _trips,
}


class ProbeMeasure:
    """Runs probes on a backend that is up."""

    def __init__(
        self,
        names: Sequence[str],
        spec: ProbeSpec,
        backend: Backend,
        *,
        repeats: int,
        clock: Clock,
        progress: Callable[[str], None],
    ) -> None:
        """Prepare them.

        Raises:
            Usage: fio is asked for and is not there.
        """
        if spec.tool == "fio" and not has_fio():
            raise Usage("--tool: fio is not installed; install it, or leave --tool out for what is built in")
        self._names = names
        self._spec = spec
        self._backend = backend
        self._repeats = repeats
        self._clock = clock
        self._progress = progress

    async def __call__(self, result: Result) -> None:
        """Fill in repeats."""
        for index in range(self._repeats):
            repeat = Repeat(index=index, actual={"tools": {}})
            begun_us = self._clock.monotonic_us()
            for name in self._names:
                async with fresh_place(self._backend) as place:
                    await self._one(name, place, repeat, begun_us)
            result.repeats.append(repeat)

    async def _one(self, name: str, place: Place, repeat: Repeat, begun_us: int) -> None:
        from_us = self._clock.monotonic_us()
        with tempfile.TemporaryDirectory(prefix="luciole-bench-", dir=self._backend.scratch(place)) as folder:
            found = await PROBES[name](Path(folder), place, self._spec, self._clock)
        repeat.phases.append(
            Phase(
                name=name,
                begun_s=(from_us - begun_us) / SECOND_US,
                duration_s=(self._clock.monotonic_us() - from_us) / SECOND_US,
            )
        )
        repeat.figures |= found.figures
        repeat.distributions |= found.distributions
        repeat.checks.append(found.check)
        repeat.actual["tools"][name] = found.tool
        shown = ", ".join(f"{figure} {value:,.0f}" for figure, value in found.figures.items())
        self._progress(f"repeat {repeat.index + 1}/{self._repeats}: {name} ({found.tool}): {shown}")
