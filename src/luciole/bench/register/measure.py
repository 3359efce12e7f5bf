"""The register profile as a run."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from luciole.bench.backends import Place
from luciole.bench.fresh import FreshRepeats, take
from luciole.bench.processes import Process
from luciole.bench.register.client import RegisterOrders
from luciole.bench.result import Repeat


class RegisterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters, as requested."""

    jobs: int  #: in bulk
    singles: int  #: each in a transaction of its own
    registrars: int = 1


class RegisterMeasure(FreshRepeats[RegisterSpec]):
    """A process of its own registers into a fresh store."""

    explained_apart = True

    async def _repeat(self, index: int, place: Place, folder: Path) -> Repeat:
        del folder
        spec = self._spec
        orders = RegisterOrders(
            index=index, place=place, jobs=spec.jobs, singles=spec.singles, registrars=spec.registrars
        )
        async with await Process.start("luciole.bench.register.client") as client:
            answer, found = await self._asked(place, client, "repeat", orders)
        return take(msgspec.convert(answer, Repeat), found)

    async def _ceilings(self) -> Mapping[str, float]:
        rows = await self._rows(("register", "find"), self._spec.jobs)
        return {f"{work}_ceiling_rate": rate for work, rate in rows.items()}

    def _line(self, repeat: Repeat) -> str:
        return f"{repeat.figures['bulk_rate']:,.0f} schedules/s"
