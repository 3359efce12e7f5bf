"""The store profile as a run."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from luciole.bench.backends import Place
from luciole.bench.ceiling.lanes import Work
from luciole.bench.fresh import FreshRepeats, take
from luciole.bench.processes import Process
from luciole.bench.profiles.store import CALLERS, PAYLOADS
from luciole.bench.result import Repeat
from luciole.bench.storage.worker import StorageOrders, label


class StoreSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters, as requested."""

    tasks: int
    reads: int
    workers: int
    claim_batch: int


class StoreMeasure(FreshRepeats[StoreSpec]):
    """A process of its own calls the verbs of a fresh store."""

    explained_apart = True

    async def _repeat(self, index: int, place: Place, folder: Path) -> Repeat:
        del folder
        spec = self._spec
        orders = StorageOrders(
            index=index,
            place=place,
            payloads=PAYLOADS,
            callers=CALLERS,
            tasks=spec.tasks,
            reads=spec.reads,
            workers=spec.workers,
            claim_batch=spec.claim_batch,
        )
        async with await Process.start("luciole.bench.storage.worker") as worker:
            answer, found = await self._asked(place, worker, "repeat", orders)
        return take(msgspec.convert(answer, Repeat), found)

    async def _ceilings(self) -> Mapping[str, float]:
        found: dict[str, float] = {}
        works: tuple[Work, ...] = ("enqueue", "settle", "load")
        for size in PAYLOADS:
            rows = await self._rows(works, self._spec.tasks, size)
            found |= {f"{work}_{label(size)}_ceiling_rate": rate for work, rate in rows.items()}
        return found

    def _line(self, repeat: Repeat) -> str:
        rates = {name: repeat.figures[f"{name}_rate"] for name in ("enqueue_0_by_1", "enqueue_0_by_64", "settle_0")}
        return ", ".join(f"{name} {rate:,.0f}/s" for name, rate in rates.items())
