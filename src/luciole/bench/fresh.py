"""Repeats that each have a store and a folder of their own."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from luciole.bench.backends import Backend, Place
from luciole.bench.ceiling.lanes import Work, measure_rows
from luciole.bench.check import read_back
from luciole.bench.result import Repeat, Result
from luciole.bench.run import fresh_place
from luciole.runtime.clock import Clock

SpecT = TypeVar("SpecT")


class FreshRepeats(ABC, Generic[SpecT]):
    """What a profile measures again and again; a profile says how one repeat goes."""

    def __init__(
        self, spec: SpecT, backend: Backend, *, repeats: int, clock: Clock, progress: Callable[[str], None]
    ) -> None:
        """Make it; call it with the result that it fills in.

        Args:
            spec: the parameters, as requested.
            backend: brings the stores; it is up.
            repeats: how many.
            clock: what times them.
            progress: told what a person may want to know.
        """
        self._spec = spec
        self._backend = backend
        self._repeats = repeats
        self._clock = clock
        self._progress = progress

    async def __call__(self, result: Result) -> None:
        """Fill in repeats.

        Raises:
            BenchError: a repeat says nothing, or left something behind.
        """
        for index in range(self._repeats):
            with tempfile.TemporaryDirectory(prefix="luciole-bench-") as folder:
                async with fresh_place(self._backend) as place:
                    repeat = await self._repeat(index, place, Path(folder))
                    repeat.actual |= await read_back(place)
            repeat.figures |= await self._ceilings()
            result.repeats.append(repeat)
            self._progress(f"repeat {index + 1}/{self._repeats}: {self._line(repeat)}")

    @abstractmethod
    async def _repeat(self, index: int, place: Place, folder: Path) -> Repeat:
        """Measure once."""

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
