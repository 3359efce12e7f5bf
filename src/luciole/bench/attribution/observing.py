"""What watches processes from outside while windows are open."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Self

from luciole.bench.attribution.document import Attribution, Series, Waits
from luciole.bench.attribution.parts import can_tell_delays
from luciole.bench.attribution.postgres import Counters, WaitSampler, grown, read_counters
from luciole.bench.attribution.samplers import PartsSampler, Sampler, Sampling
from luciole.bench.attribution.watching import Told
from luciole.bench.attribution.windows import Window
from luciole.bench.backends import Place
from luciole.limits import SECOND_US
from luciole.runtime.clock import Clock

#: Points that a line over time has at most.
_POINTS_MAX = 200


class SampledWaits:
    """Whom the sessions of a server wait for, where that is asked for; a context manager around a window."""

    def __init__(self, place: Place, clock: Clock, *, asked: bool) -> None:
        self._sampler = WaitSampler(place) if asked else None
        self._sampling = Sampling([self._sampler] if self._sampler else [], clock)

    async def __aenter__(self) -> Self:
        await self._sampling.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._sampling.__aexit__(*error)

    @property
    def lost(self) -> list[str]:
        """Why what was sampled can't be trusted."""
        return self._sampling.lost

    def between(self, begun_us: int, ended_us: int) -> Waits | None:
        """Return average active sessions between two instants of the monotonic clock; None: nobody looked."""
        return self._sampler.waits(begun_us, ended_us) if self._sampler else None

    def series(self, zero_us: int) -> list[Series]:
        """Return what was written into the log over time."""
        return self._sampler.series(zero_us) if self._sampler else []


class Observation:
    """Samplers around the windows of a repeat; a context manager."""

    def __init__(self, place: Place, pids: Mapping[str, int], *, clock: Clock, waits: bool) -> None:
        """Prepare it.

        Args:
            place: the store.
            pids: of the processes, by their names.
            clock: times the samples.
            waits: whether the server's sessions are sampled, which costs it about 1 % of a core.
        """
        parts = dict(pids)
        if place.server_pid:
            parts["the database"] = place.server_pid
        self._place = place
        self._parts = PartsSampler(parts)
        self._embedded = place.dsn.startswith("sqlite:")
        self._waits = WaitSampler(place) if waits and not self._embedded else None
        samplers: list[Sampler] = [self._parts, *([self._waits] if self._waits else [])]
        self._sampling = Sampling(samplers, clock)
        self._stack = AsyncExitStack()
        self._before: Counters = {}
        self.counters: Counters = {}  #: what those of the server grew by, once `read_after` was called

    async def __aenter__(self) -> Self:
        if not self._embedded:
            self._before = await read_counters(self._place)
        await self._stack.enter_async_context(self._sampling)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def read_after(self) -> None:
        """Read the counters again; a server hears the last ones of a connection when that ends."""
        if not self._embedded:
            self.counters = grown(self._before, await read_counters(self._place))

    @property
    def lost(self) -> list[str]:
        """Why what was sampled can't be trusted."""
        return self._sampling.lost

    def explain(
        self,
        name: str,
        told: Mapping[str, Told],
        *,
        jobs: int,
        begun_us: int,
        zero_us: int,
        connections: int,
        commits_per_job: float,
        offered: bool = False,
    ) -> Attribution:
        """Explain one window.

        Args:
            name: of the window.
            told: of each process, by its name.
            jobs: done in it.
            begun_us: its begin, by the monotonic clock.
            zero_us: the begin of the repeat, by the same.
            connections: that all of them together may use.
            commits_per_job: calls that commit, by jobs.
            offered: its rate is that of the load, not the most that it could do.
        """
        ended_us = max(one.ended_us for one in told.values())
        found = Window(
            name,
            jobs=jobs,
            told=told,
            begun_us=begun_us,
            cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            others=self._parts.others(begun_us, ended_us),
            connections=connections,
            used=self._parts.used(begun_us, ended_us),
            waits=self._waits.waits(begun_us, ended_us) if self._waits else None,
            commits_per_job=commits_per_job,
            embedded=self._embedded,
            offered=offered,
        ).explain()
        found.begun_s = round((begun_us - zero_us) / SECOND_US, 4)
        if not self._embedded and self._waits is None:
            found.missing.append("waits of the database and flushes of its log: run it with --sample-waits")
        if not self._place.server_pid and not self._embedded:
            found.missing.append("CPU of the database: it is not a server of the bench's own")
        if not can_tell_delays():
            found.missing.append("how long processes wait for a core: this system has no schedstat")
        return found

    def series(
        self, drained: Sequence[Told], closed: Sequence[Told], *, jobs: int, due_us: int, zero_us: int
    ) -> list[Series]:
        """Return the lines of a burst over time: jobs done, backlog, lag, CPU, log.

        Args:
            drained: of each scheduler, with its commits.
            closed: of each scheduler, with its settlements.
            jobs: N.
            due_us: T, by the monotonic clock.
            zero_us: where the time of the lines begins.
        """
        commits = sorted(pair for told in drained for pair in told.done)
        settled = sorted(pair for told in closed for pair in told.done)
        lag = [((at_us - due_us) / 1_000, at_us) for at_us, done in commits if done]
        begin = [(due_us, 0)]
        waiting = [(at_us, -done) for at_us, done in commits]
        return [
            _running("planned", "jobs", [*begin, *commits], zero_us),
            _running("settled", "jobs", [*begin, *settled], zero_us),
            _running("backlog", "jobs", [(due_us, jobs), *waiting], zero_us),
            _thinned("fire lag", "ms", [(at_us, round(ms, 3)) for ms, at_us in lag], zero_us),
            *self.lines(zero_us),
        ]

    def lines(self, zero_us: int) -> list[Series]:
        """Return the lines over time that any window has: CPU, memory, log."""
        return [*self._parts.series(zero_us), *(self._waits.series(zero_us) if self._waits else [])]


def _running(name: str, unit: str, steps: Sequence[tuple[int, int]], zero_us: int) -> Series:
    total, points = 0, []
    for at_us, step in steps:
        total += step
        points.append((at_us, float(total)))
    return _thinned(name, unit, points, zero_us)


def _thinned(name: str, unit: str, points: Sequence[tuple[int, float]], zero_us: int) -> Series:
    """Return a line of not too many points, its last one among them."""
    every = max(1, -(-len(points) // _POINTS_MAX))
    kept = [*points[::every], *(points[-1:] if every > 1 else [])]
    return Series(
        name=name,
        unit=unit,
        at_s=[round((at_us - zero_us) / SECOND_US, 4) for at_us, _ in kept],
        values=[value for _, value in kept],
    )
