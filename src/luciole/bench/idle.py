"""Idle cost: what nodes, executors and the server spend while nothing is due."""

from pathlib import Path

import msgspec

from luciole import limits
from luciole.bench.backends import Place
from luciole.bench.burst import load
from luciole.bench.check import check
from luciole.bench.cluster import Cluster
from luciole.bench.cpu import tree_cpu_us
from luciole.bench.fresh import FreshRepeats
from luciole.bench.result import Phase, Repeat
from luciole.bench.stores import open_fresh
from luciole.bench.work import Work, prepare_counting, quiesce, read_work, statements_between
from luciole.service.schedules import declare

_SUBJECT = "luciole.bench.subject:app"


class IdleSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters, as requested."""

    jobs: int
    duration_s: int
    settle_s: int = 5  #: after the start, before the window
    shards: int = 32


class IdleMeasure(FreshRepeats[IdleSpec]):
    """On SQLite one process runs the app; on a server a node and an executor run apart."""

    def _line(self, repeat: Repeat) -> str:
        shown = f"{repeat.figures['core_share']:.2%} of a core"
        if "queries" in repeat.figures:
            shown += f", {repeat.figures['queries']:.1f} queries/s"
        return shown

    async def _repeat(self, index: int, place: Place, folder: Path) -> Repeat:
        store = await open_fresh(place, shards=self._spec.shards)
        declarations = load.declarations(self._spec.jobs, prefix=load.PREFIX, now_us=await store.now_us())
        await declare(store, declarations, namespace=load.NAMESPACE, owner=load.OWNER)
        await store.close()
        await prepare_counting(place)
        await quiesce(place)
        async with Cluster(place.dsn, folder, self._clock) as cluster:
            pids = await self._start(cluster)
            if place.server_pid:
                pids["server"] = place.server_pid
            await self._clock.sleep(self._spec.settle_s * limits.SECOND_US)
            work, cpu_us, begun_us = await read_work(place), _cpu(pids), self._clock.monotonic_us()
            await self._clock.sleep(self._spec.duration_s * limits.SECOND_US)
            after_us, took_us = _cpu(pids), self._clock.monotonic_us() - begun_us
            after = await read_work(place)
            cluster.check()
        figures = {f"{name}_share": (after_us[name] - cpu_us[name]) / took_us for name in pids}
        figures["core_share"] = sum(figures.values())
        figures |= _rates(work, after, took_us)
        values: dict[str, int | str] = {
            "namespace": load.NAMESPACE,
            "prefix": load.PREFIX,
            "jobs": self._spec.jobs,
            "all": self._spec.jobs,
            "shards": self._spec.shards,
        }
        return Repeat(
            index=index,
            phases=[Phase(name="idle", begun_s=0, duration_s=took_us / limits.SECOND_US)],
            figures=figures,
            checks=await check(place, "register", values),
            actual={"processes": sorted(pids), "statements": statements_between(work, after)},
        )

    async def _start(self, cluster: Cluster) -> dict[str, int]:
        if self._backend.name == "sqlite":
            return {"node": (await cluster.start_app(_SUBJECT)).pid}
        node, address = await cluster.start_node()
        executor = await cluster.start_executor(_SUBJECT, [address])
        return {"node": node.pid, "executor": executor.pid}


def _cpu(pids: dict[str, int]) -> dict[str, int]:
    return {name: tree_cpu_us(pid) for name, pid in pids.items()}


def _all_statements(work: Work) -> int | None:
    """Return how many statements there were, those that begin and end transactions included."""
    return None if work.statements is None or work.control is None else work.statements + work.control


def _rates(before: Work, after: Work, took_us: int) -> dict[str, float]:
    """Return what the server counted a second, without the one question that reads the counters."""
    found = {}
    for name, one, other in (
        ("queries", _all_statements(before), _all_statements(after)),
        ("commits", before.commits, after.commits),
    ):
        if one is not None and other is not None:
            found[name] = (other - one) * limits.SECOND_US / took_us
    return found
