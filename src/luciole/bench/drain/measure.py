"""The drain profile as a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from luciole import limits
from luciole.bench.attribution.observing import SampledWaits
from luciole.bench.attribution.parts import Used
from luciole.bench.attribution.threads import NODE_MODULE, looks_path, read_looks
from luciole.bench.backends import Place
from luciole.bench.check import check, judge
from luciole.bench.cluster import Cluster, ClusterProcess
from luciole.bench.cpu import tree_cpu_us
from luciole.bench.drain.explain import DATABASE, EXECUTOR, NODE, explain_drain
from luciole.bench.drain.forgotten import ForgottenTransaction, forgotten_transaction
from luciole.bench.drain.observe import Meter, cores
from luciole.bench.fresh import FreshRepeats
from luciole.bench.processes import Process
from luciole.bench.result import Phase, Repeat, Result
from luciole.bench.steady.sampler import Store
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import InvalidRun
from luciole.bench.work import Work, prepare_counting, quiesce, read_log, read_work
from luciole.model.instant import Instant

_SUBJECT = "luciole.bench.subject:app"

#: Between the last enqueue and the instant: what has just been written is at rest by then.
_LEAD_US = 1 * limits.SECOND_US

#: What a profiler takes to begin.
_PROFILER_LEAD_US = 4 * limits.SECOND_US

#: By then a node has told of its sessions.
_HEARTBEAT_MAX_US = 20 * limits.SECOND_US


class DrainSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters, as requested."""

    jobs: int
    warm_up_jobs: int = 1_000
    slots: int = 1_000
    payload_bytes: int = 0
    shards: int = 32
    churn: int | None = None  #: executions beside a forgotten transaction, before those that count; None: there is none


class Seen(NamedTuple):
    """What was seen of a drain from outside."""

    at_us: Instant  #: when all became due
    after_us: int  #: how long after the repeat began that was
    took_us: int
    used: dict[str, Used]
    others: float  #: cores that processes which are no part of it used
    waits: SampledWaits


class DrainMeasure(FreshRepeats[DrainSpec]):
    """A node, one executor behind gRPC and the enqueuer are processes apart; each repeat has a store of its own."""

    async def __call__(self, result: Result) -> None:
        """Fill in repeats."""
        if self._spec.churn is not None:
            result.limits_of_inference.append("A transaction was held open on purpose: dead rows piled up beside it.")
        await super().__call__(result)

    def _line(self, repeat: Repeat) -> str:
        figures = repeat.figures
        share = figures["drain_rate"] / figures["bare_pull_rate"]
        return f"{figures['drain_rate']:,.0f} jobs/s, {share:.2f} of a bare loop"

    async def _ceilings(self) -> Mapping[str, float]:
        rows = await self._rows(("enqueue",), self._spec.jobs, self._spec.payload_bytes)
        return {"enqueue_ceiling_rate": rows["enqueue"]}

    async def _repeat(self, index: int, place: Place, folder: Path) -> Repeat:
        store = await open_fresh(place, shards=self._spec.shards)
        await store.close()
        await prepare_counting(place)
        async with (
            await Process.start("luciole.bench.drain.driver", {"LUCIOLE_DSN": place.dsn}) as driver,
            Cluster(place.dsn, folder, self._clock) as cluster,
        ):
            node, address = await cluster.start_node(module=NODE_MODULE, arguments=())
            executor = await cluster.start_executor(_SUBJECT, [address], slots=self._spec.slots)
            repeat = await self._measured(index, place, driver, (node, executor))
            repeat.actual["slots"] = await self._slots(place)
            cluster.check()
        self._explain(repeat, folder, node)
        spec = self._spec
        jobs = spec.jobs + spec.warm_up_jobs + (spec.churn or 0)
        repeat.checks += await check(place, "enqueue", {"jobs": jobs, "shards": spec.shards})
        return repeat

    async def _slots(self, place: Place) -> int:
        """Return how many slots the node knows of; it tells so with each heartbeat."""
        store = Store(place)
        await store.open()
        try:
            end_us = self._clock.monotonic_us() + _HEARTBEAT_MAX_US
            while not (found := await store.gauge("slots")) and self._clock.monotonic_us() < end_us:
                await self._clock.sleep(100 * limits.MS_US)
            return found
        finally:
            await store.close()

    async def _measured(
        self, index: int, place: Place, driver: Process, processes: tuple[ClusterProcess, ClusterProcess]
    ) -> Repeat:
        spec = self._spec
        repeat = Repeat(index=index, actual={"processes": 3, "transport": "grpc"})
        begun_us = self._clock.now_us()
        bare = await driver.ask(
            "pull_bare", dsn=place.dsn, schema=place.schema, count=spec.jobs, payload_bytes=spec.payload_bytes
        )
        await self._run_through(driver, spec.warm_up_jobs)
        if spec.churn is None:
            await self._drain(repeat, place, driver, processes, begun_us)
        else:
            async with forgotten_transaction(place) as forgotten:
                await self._run_through(driver, spec.churn)
                await self._drain(repeat, place, driver, processes, begun_us, forgotten)
                repeat.checks += await forgotten.checks()
        repeat.figures["bare_pull_rate"] = bare["rate"]
        await driver.ask("close")
        return repeat

    async def _run_through(self, driver: Process, count: int) -> None:
        await driver.ask("fill", count=count, payload_bytes=self._spec.payload_bytes, due_us=None)
        await driver.ask("wait")

    async def _drain(
        self,
        repeat: Repeat,
        place: Place,
        driver: Process,
        processes: tuple[ClusterProcess, ClusterProcess],
        begun_us: int,
        forgotten: ForgottenTransaction | None = None,
    ) -> None:
        spec = self._spec
        # So far ahead that all are durable before: at a tenth of the rate that is asked for.
        at_us = self._clock.now_us() + _LEAD_US + spec.jobs * 100 + (0 if self._counts else _PROFILER_LEAD_US)
        filled = await driver.ask("fill", count=spec.jobs, payload_bytes=spec.payload_bytes, due_us=at_us)
        if filled["now_us"] >= at_us:
            raise InvalidRun("the enqueues took so long that they were due before the last was durable")
        await quiesce(place)
        if forgotten:
            dead_rows = await forgotten.dead_rows()
            repeat.figures["dead_rows"] = float(dead_rows)
            fewer = {"fewer": (spec.churn or 0) - 1}
            repeat.checks.append(judge("dead_rows_kept", "store", "> :fewer", dead_rows, fewer))
        before, cpu_us = await read_work(place), self._cpu_us(place, processes)
        meter = self._meter(place, processes)
        waits = SampledWaits(place, self._clock, asked=self._watch.sample_waits)
        node, executor = processes
        async with waits, self._profiled(repeat, {NODE: node.pid, EXECUTOR: executor.pid}):
            await self._clock.sleep(max(0, at_us - self._clock.now_us()))
            begun = meter.read()
            ended = await driver.ask("wait")
            over = meter.read()
        repeat.invalid += waits.lost
        after, used_us = await read_work(place), self._cpu_us(place, processes)
        took_us = ended["now_us"] - at_us
        others = over.others(begun, max(1, took_us))
        self._seen = Seen(at_us, at_us - begun_us, took_us, over.since(begun), others, waits)
        repeat.checks.append(judge("drained_after_the_instant", "report", "> 0", took_us, {}))
        repeat.figures |= {
            "drain_rate": spec.jobs * limits.SECOND_US / took_us,
            "drain_us": float(took_us),
            "enqueue_many_rate": filled["rate"],
            **{name: (used_us[name] - cpu_us[name]) / spec.jobs for name in cpu_us},
            **await self._work(place, before, after),
        }
        repeat.phases.append(
            Phase(name="drain", begun_s=(at_us - begun_us) / limits.SECOND_US, duration_s=took_us / limits.SECOND_US)
        )

    def _explain(self, repeat: Repeat, folder: Path, node: ClusterProcess) -> None:
        """Say where the time of the node's thread went, and what the drain came near."""
        seen = self._seen
        if seen.took_us <= 0:
            return
        due_us = seen.at_us - (self._clock.now_us() - self._clock.monotonic_us())
        found = explain_drain(
            jobs=self._spec.jobs,
            begun_us=due_us,
            ended_us=due_us + seen.took_us,
            looks=list(read_looks(looks_path(folder, node.pid))),
            used=seen.used,
            cores=cores(),
            others=seen.others,
            waits=seen.waits.between(due_us, due_us + seen.took_us),
        )
        repeat.series = seen.waits.series(due_us - seen.after_us)
        found.begun_s = round(seen.after_us / limits.SECOND_US, 4)
        repeat.attribution = [found]
        repeat.stages_us = {stage.name: stage.exclusive_us for stage in found.stages}

    def _meter(self, place: Place, processes: tuple[ClusterProcess, ClusterProcess]) -> Meter:
        node, executor = processes
        database = {} if place.server_pid is None else {DATABASE: place.server_pid}
        return Meter({NODE: node.pid, EXECUTOR: executor.pid, **database})

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
