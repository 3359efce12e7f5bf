"""The drain profile as a run."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from luciole import limits
from luciole.bench.backends import Backend, Place
from luciole.bench.check import check, judge
from luciole.bench.cluster import Cluster, ClusterProcess
from luciole.bench.cpu import tree_cpu_us
from luciole.bench.processes import Process
from luciole.bench.result import Phase, Repeat, Result
from luciole.bench.run import fresh_place
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import InvalidRun
from luciole.bench.work import Work, prepare_counting, quiesce, read_log, read_work
from luciole.runtime.clock import Clock

_SUBJECT = "luciole.bench.subject:app"

#: Between the last enqueue and the instant: what has just been written is at rest by then.
_LEAD_US = 1 * limits.SECOND_US


class DrainSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters, as requested."""

    jobs: int
    warm_up_jobs: int = 1_000
    slots: int = 1_000
    payload_bytes: int = 0
    shards: int = 32


class DrainMeasure:
    """A node, one executor behind gRPC and the enqueuer are processes apart; each repeat has a store of its own."""

    def __init__(
        self, spec: DrainSpec, backend: Backend, *, repeats: int, clock: Clock, progress: Callable[[str], None]
    ) -> None:
        self._spec = spec
        self._backend = backend
        self._repeats = repeats
        self._clock = clock
        self._progress = progress

    async def __call__(self, result: Result) -> None:
        """Fill in repeats."""
        for index in range(self._repeats):
            with tempfile.TemporaryDirectory(prefix="luciole-bench-") as folder:
                async with fresh_place(self._backend) as place:
                    repeat = await self._repeat(index, place, Path(folder))
            result.repeats.append(repeat)
            self._progress(
                f"repeat {index + 1}/{self._repeats}: {repeat.figures['drain_rate']:,.0f} jobs/s, "
                f"{repeat.figures['pull_share']:.2f} of a bare loop"
            )

    async def _repeat(self, index: int, place: Place, folder: Path) -> Repeat:
        store = await open_fresh(place, shards=self._spec.shards)
        await store.close()
        await prepare_counting(place)
        driver = await Process.start("luciole.bench.drain.driver", {"LUCIOLE_DSN": place.dsn})
        try:
            async with Cluster(place.dsn, folder, self._clock) as cluster:
                node, address = await cluster.start_node()
                executor = await cluster.start_executor(_SUBJECT, [address], slots=self._spec.slots)
                repeat = await self._drain(index, place, driver, (node, executor))
                cluster.check()
        finally:
            await driver.stop()
        spec = self._spec
        repeat.checks += await check(place, "enqueue", {"jobs": spec.jobs + spec.warm_up_jobs, "shards": spec.shards})
        return repeat

    async def _drain(
        self, index: int, place: Place, driver: Process, processes: tuple[ClusterProcess, ClusterProcess]
    ) -> Repeat:
        spec = self._spec
        repeat = Repeat(index=index, actual={"processes": 3, "transport": "grpc", "slots": spec.slots})
        begun_us = self._clock.now_us()
        bare = await driver.ask(
            "pull_bare", dsn=place.dsn, schema=place.schema, count=spec.jobs, payload_bytes=spec.payload_bytes
        )
        await driver.ask("fill", count=spec.warm_up_jobs, payload_bytes=spec.payload_bytes, due_us=None)
        await driver.ask("wait")
        # So far ahead that all are durable before: at a tenth of the rate that is asked for.
        at_us = self._clock.now_us() + _LEAD_US + spec.jobs * 100
        filled = await driver.ask("fill", count=spec.jobs, payload_bytes=spec.payload_bytes, due_us=at_us)
        if filled["now_us"] >= at_us:
            raise InvalidRun("the enqueues took so long that they were due before the last was durable")
        await quiesce(place)
        before, cpu_us = await read_work(place), self._cpu_us(place, processes)
        await self._clock.sleep(max(0, at_us - self._clock.now_us()))
        ended = await driver.ask("wait")
        after, used_us = await read_work(place), self._cpu_us(place, processes)
        took_us = ended["now_us"] - at_us
        repeat.checks.append(judge("drained_after_the_instant", "report", "> 0", took_us, {}))
        repeat.figures |= {
            "drain_rate": spec.jobs * limits.SECOND_US / took_us,
            "drain_us": float(took_us),
            "bare_pull_rate": bare["rate"],
            "pull_share": spec.jobs * limits.SECOND_US / took_us / bare["rate"],
            "enqueue_many_rate": filled["rate"],
            **{name: (used_us[name] - cpu_us[name]) / spec.jobs for name in cpu_us},
            **await self._work(place, before, after),
        }
        repeat.phases.append(
            Phase(name="drain", begun_s=(at_us - begun_us) / limits.SECOND_US, duration_s=took_us / limits.SECOND_US)
        )
        await driver.ask("close")
        return repeat

    def _cpu_us(self, place: Place, processes: tuple[ClusterProcess, ClusterProcess]) -> dict[str, int]:
        found = {
            name: tree_cpu_us(process.pid)
            for name, process in zip(("node_cpu_us_per_job", "executor_cpu_us_per_job"), processes, strict=True)
        }
        if place.server_pid is not None:
            found["server_cpu_us_per_job"] = tree_cpu_us(place.server_pid)
        return found

    async def _work(self, place: Place, before: Work, after: Work) -> dict[str, float]:
        if before.commits is None or after.commits is None:
            return {}
        jobs = self._spec.jobs
        found = {"commits_per_job": (after.commits - before.commits) / jobs}
        log = await read_log(place, before, after)
        if log is not None:
            found["wal_bytes_per_job"] = log.bytes / jobs
        return found
