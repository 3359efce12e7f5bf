"""Repeats that each have a store and a folder of their own."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import msgspec

from luciole.bench.attribution.callers import CLIENT, WindowTold, explain_windows
from luciole.bench.attribution.observing import Observation
from luciole.bench.attribution.profiling import Kind, Profiler
from luciole.bench.backends import Backend, Place
from luciole.bench.ceiling.lanes import Work, measure_rows
from luciole.bench.check import read_back
from luciole.bench.processes import Message, Process
from luciole.bench.result import Repeat, Result
from luciole.bench.run import fresh_place
from luciole.runtime.clock import Clock

SpecT = TypeVar("SpecT")

#: What a repeat that explains the others says of itself.
APART = "Stages, ceilings and waits are those of one repeat more, which is watched closely and counts for no figure."


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """How closely a run is watched."""

    sample_waits: bool = False  #: sessions of the server, 20 times a second
    profiles: Sequence[Kind] = ()  #: each of one repeat more, which counts for nothing


class FreshRepeats(ABC, Generic[SpecT]):
    """What a profile measures again and again; a profile says how one repeat goes."""

    #: Watching costs so much beside what is measured that one repeat more is watched, and counts for no figure.
    explained_apart: ClassVar[bool] = False

    def __init__(
        self,
        spec: SpecT,
        backend: Backend,
        *,
        repeats: int,
        clock: Clock,
        progress: Callable[[str], None],
        watch: Watch | None = None,
    ) -> None:
        """Make it; call it with the result that it fills in.

        Args:
            spec: the parameters, as requested.
            backend: brings the stores; it is up.
            repeats: how many.
            clock: what times them.
            progress: told what a person may want to know.
            watch: how closely it is watched; default: as little as possible.
        """
        self._spec = spec
        self._backend = backend
        self._repeats = repeats
        self._clock = clock
        self._progress = progress
        self._watch = watch or Watch()
        self._explaining = False  #: the repeat that is under way is watched and counts for no figure
        self._profiling: Kind | None = None  #: it is profiled, and counts for no figure

    @property
    def _counts(self) -> bool:
        """Whether the repeat that is under way counts for figures."""
        return not self._explaining and self._profiling is None

    async def __call__(self, result: Result) -> None:
        """Fill in repeats.

        Raises:
            BenchError: a repeat says nothing, or left something behind.
        """
        for index in range(self._repeats):
            repeat = await self._fresh(index)
            repeat.figures |= await self._ceilings()
            result.repeats.append(repeat)
            self._progress(f"repeat {index + 1}/{self._repeats}: {self._line(repeat)}")
        if self.explained_apart:
            await self._explain_apart(result)
        for kind in self._watch.profiles:
            await self._profile(result, kind)

    async def _explain_apart(self, result: Result) -> None:
        """Watch one repeat more; where its time went is kept, and what it did wrong."""
        self._explaining = True
        try:
            repeat = await self._fresh(self._repeats)
        finally:
            self._explaining = False
        kept = result.repeats[-1]
        kept.attribution, kept.stages_us = repeat.attribution, repeat.stages_us
        kept.series, kept.database = repeat.series, repeat.database
        kept.invalid += repeat.invalid
        kept.notes.append(APART)
        keep_faults(kept, repeat)
        self._progress(f"explained: {repeat.attribution[0].sentence}" if repeat.attribution else "nothing was seen")

    async def _profile(self, result: Result, kind: Kind) -> None:
        """Profile one repeat more; only its profile and what it did wrong are kept."""
        self._profiling = kind
        try:
            repeat = await self._fresh(self._repeats)
        finally:
            self._profiling = None
        result.flames += repeat.flames
        keep_faults(result.repeats[-1], repeat)
        self._progress(f"{kind} profile: {sum(flame.samples for flame in repeat.flames):,} samples")

    async def _fresh(self, index: int) -> Repeat:
        with tempfile.TemporaryDirectory(prefix="luciole-bench-") as folder:
            async with fresh_place(self._backend) as place:
                repeat = await self._repeat(index, place, Path(folder))
                repeat.actual |= await read_back(place)
        return repeat

    @abstractmethod
    async def _repeat(self, index: int, place: Place, folder: Path) -> Repeat:
        """Measure once."""

    @asynccontextmanager
    async def _profiled(self, repeat: Repeat, pids: Mapping[str, int]) -> AsyncIterator[None]:
        """Profile processes until the context ends, where this repeat is there for that."""
        if self._profiling is None:
            yield
            return
        async with Profiler(pids, self._profiling) as profiler:
            yield
        repeat.flames += profiler.flames
        repeat.notes += profiler.failed

    async def _asked(self, place: Place, client: Process, verb: str, orders: msgspec.Struct) -> tuple[Message, Repeat]:
        """Let a client measure; watch it as this repeat has it.

        Args:
            place: the store.
            client: the process.
            verb: what it is asked.
            orders: what it is told, with `watched` and `counts` among it.

        Returns:
            Its answer, whose `windows` are what it tells of itself; and what was found out about it.
        """
        seen = Observation(place, {CLIENT: client.pid}, clock=self._clock, waits=self._watch.sample_waits)
        found = Repeat(index=0)
        zero_us = self._clock.monotonic_us()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._profiled(found, {CLIENT: client.pid}))
            if self._explaining:
                await stack.enter_async_context(seen)
            told = {**msgspec.to_builtins(orders), "watched": self._explaining, "counts": self._counts}
            answer = await client.ask(verb, **told)
        if self._explaining:
            await seen.read_after()
            windows = msgspec.convert(answer["windows"], list[WindowTold])
            found.attribution = explain_windows(seen, windows, zero_us=zero_us)
            found.stages_us = windows[0].told.stages_us
            found.series, found.database, found.invalid = seen.lines(zero_us), seen.counters, list(seen.lost)
        return answer, found

    async def _ceilings(self) -> Mapping[str, float]:
        """Measure what the server alone would do beside a repeat; by the names of figures, in rows a second."""
        return {}

    async def _rows(self, works: Sequence[Work], count: int, payload_bytes: int = 0) -> dict[Work, float]:
        """Measure ceilings of rows in a place of their own."""
        async with fresh_place(self._backend) as place:
            return await measure_rows(place, works, count, self._clock, payload=b"x" * payload_bytes)

    @abstractmethod
    def _line(self, repeat: Repeat) -> str:
        """Say in a few words what a repeat found."""


def keep_faults(kept: Repeat, repeat: Repeat) -> None:
    """Keep what failed in a repeat that counts for no figure, and what it says of itself."""
    kept.checks += [check for check in repeat.checks if not check.passed]
    kept.notes += [note for note in repeat.notes if note not in kept.notes]


def take(repeat: Repeat, found: Repeat) -> Repeat:
    """Return a repeat with what was found out about its client."""
    repeat.attribution, repeat.stages_us = found.attribution, found.stages_us
    repeat.series, repeat.database, repeat.flames = found.series, found.database, found.flames
    repeat.invalid += found.invalid
    repeat.notes += found.notes
    return repeat
