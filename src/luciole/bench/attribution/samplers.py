"""Samplers: look at something many times a second while a window is open. A lost sampler makes the run invalid."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Self

from luciole.bench import faults
from luciole.bench.attribution.document import Series
from luciole.bench.attribution.parts import Used, machine_busy_us, pids_of, used_by
from luciole.limits import MS_US, SECOND_US
from luciole.runtime.clock import Clock

#: A sampler that looked less often than this share of what it should have was lost.
LOOKS_MIN = 0.3

#: How long a last look may take.
_CLOSE_S = 10

#: How often a sampler looks.
EVERY_US = 50 * MS_US


class Sampler(ABC):
    """Looks at one thing."""

    name: str

    async def open(self) -> None:  # noqa: B027 - most need nothing
        """Get what it needs."""

    @abstractmethod
    async def look(self, at_us: int) -> None:
        """Look once, at this monotonic instant."""

    async def close(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give back what it got; safe to repeat."""


class PartsSampler(Sampler):
    """CPU, run delay and memory of each part."""

    name = "parts"

    def __init__(self, parts: Mapping[str, int]) -> None:
        """Take the parts: from a name to the process that it starts with."""
        self._roots = dict(parts)
        self._pids: dict[str, list[int]] = {}
        self.looks: list[tuple[int, dict[str, Used]]] = []
        self._busy: list[tuple[int, int]] = []

    async def open(self) -> None:
        """Find the processes of each part; they are the same for the whole window."""
        self._pids = {name: pids_of(pid) for name, pid in self._roots.items()}

    async def look(self, at_us: int) -> None:
        """Read them all."""
        self.looks.append((at_us, {name: used_by(pids) for name, pids in self._pids.items()}))
        self._busy.append((at_us, machine_busy_us()))

    def others(self, begun_us: int, ended_us: int) -> float:
        """Return how many cores processes that are none of the parts used between two instants, on average.

        The bench that looks is one of them.
        """
        if len(self._busy) < 2:  # noqa: PLR2004 - a difference needs two
            return 0.0
        before = next((look for look in reversed(self._busy) if look[0] <= begun_us), self._busy[0])
        after = next((look for look in self._busy if look[0] >= ended_us), self._busy[-1])
        own_us = sum(used.cpu_us for used in self.used(begun_us, ended_us).values())
        return max(0.0, (after[1] - before[1] - own_us) / max(1, after[0] - before[0]))

    def used(self, begun_us: int, ended_us: int) -> dict[str, Used]:
        """Return what each part used between two instants, and its greatest memory there."""
        if not self.looks:
            return {}
        before = max(
            (look for look in self.looks if look[0] <= begun_us), default=self.looks[0], key=lambda one: one[0]
        )
        after = min(
            (look for look in self.looks if look[0] >= ended_us), default=self.looks[-1], key=lambda one: one[0]
        )
        between = [look for look in self.looks if before[0] <= look[0] <= after[0]]
        return {
            name: Used(
                max(0, used.cpu_us - before[1][name].cpu_us),  # What was killed takes its count with it.
                max(0, used.run_delay_us - before[1][name].run_delay_us),
                max(look[1][name].rss_bytes for look in between),
            )
            for name, used in after[1].items()
        }

    def series(self, zero_us: int) -> list[Series]:
        """Return CPU in cores and memory of each part over time."""
        found = []
        for name in self._roots:
            at_s, values = [], []
            for (from_us, former), (to_us, latter) in zip(self.looks, self.looks[1:], strict=False):
                if to_us > from_us:
                    at_s.append(round((to_us - zero_us) / SECOND_US, 3))
                    values.append(max(0.0, round((latter[name].cpu_us - former[name].cpu_us) / (to_us - from_us), 3)))
            found.append(Series(name=f"CPU of {name}", unit="cores", at_s=at_s, values=values))
        return found + [
            Series(
                name=f"memory of {name}",
                unit="MiB",
                at_s=[round((at_us - zero_us) / SECOND_US, 3) for at_us, _ in self.looks],
                values=[round(parts[name].rss_bytes / 1_048_576, 1) for _, parts in self.looks],
            )
            for name in self._roots
        ]


class Sampling:
    """Runs samplers while a window is open."""

    def __init__(self, samplers: Sequence[Sampler], clock: Clock, *, every_us: int = EVERY_US) -> None:
        self._samplers = samplers
        self._clock = clock
        self._every_us = every_us
        self._running: list[tuple[Sampler, asyncio.Task[int]]] = []
        self._closing = asyncio.Event()
        self._stack = AsyncExitStack()
        self.lost: list[str] = []  #: why what was sampled can't be trusted, once the window is closed

    async def __aenter__(self) -> Self:
        self._begun_us = self._clock.monotonic_us()
        for sampler in self._samplers:
            self._stack.push_async_callback(sampler.close)
            try:
                await sampler.open()
                await sampler.look(self._clock.monotonic_us())
            except Exception as problem:  # noqa: BLE001 - whatever it was, the run goes on and says so
                self.lost.append(f"the sampler of {sampler.name} could not start: {problem}")
                continue
            task = asyncio.create_task(self._run(sampler), name=f"bench-sampler-{sampler.name}")
            self._running.append((sampler, task))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        expected = (self._clock.monotonic_us() - self._begun_us) // self._every_us
        for sampler, task in self._running:
            try:
                async with asyncio.timeout(_CLOSE_S):
                    looks = await task
            except Exception as problem:  # noqa: BLE001 - whatever it was, the run says so
                self.lost.append(f"the sampler of {sampler.name} was lost: {type(problem).__name__}: {problem}")
                continue
            if looks < expected * LOOKS_MIN:
                self.lost.append(f"the sampler of {sampler.name} looked {looks} times instead of {expected}")
        await self._stack.aclose()

    async def _run(self, sampler: Sampler) -> int:
        """Look until the window closes, and once more then; return how often."""
        looks = 0
        while not await self._clock.wait(self._closing, self._every_us):
            faults.fail_look()
            await sampler.look(self._clock.monotonic_us())
            looks += 1
        await sampler.look(self._clock.monotonic_us())
        return looks
