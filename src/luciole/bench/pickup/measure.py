"""The pickup profile as a run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from luciole import limits
from luciole.bench import subject
from luciole.bench.arrivals import drawn_as_asked
from luciole.bench.backends import Place
from luciole.bench.check import ask, check, judge
from luciole.bench.cluster import Cluster
from luciole.bench.fresh import FreshRepeats
from luciole.bench.processes import Process
from luciole.bench.result import Percentiles, Phase, Repeat
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import InvalidRun

_SUBJECT = "luciole.bench.subject:app"
_SETTLE_MAX_US = 20 * limits.SECOND_US


class PickupSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters, as requested."""

    jobs: int
    warm_up_jobs: int = 100
    shards: int = 32
    seed: int = 1


class PickupMeasure(FreshRepeats[PickupSpec]):
    """On SQLite one process does all; on a server the enqueuer, the node and the executor are processes apart."""

    def _line(self, repeat: Repeat) -> str:
        lag = repeat.distributions["start_lag"]
        return f"enqueue to start p50 {lag.p50 / 1000:.2f} ms, p99 {lag.p99 / 1000:.2f} ms, max {lag.max / 1000:.2f} ms"

    async def _repeat(self, index: int, place: Place, folder: Path) -> Repeat:
        single = self._backend.name == "sqlite"
        store = await open_fresh(place, shards=self._spec.shards)
        await store.close()
        begun_us = self._clock.monotonic_us()
        async with await Process.start("luciole.bench.pickup.enqueuer", {"LUCIOLE_DSN": place.dsn}) as enqueuer:
            port = (await enqueuer.ask("listen"))["port"]
            async with self._others(place, folder, port, single=single):
                told = await enqueuer.ask(
                    "enqueue",
                    dsn=place.dsn,
                    count=self._spec.jobs,
                    warm_up=self._spec.warm_up_jobs,
                    seed=self._spec.seed + index,
                    single=single,
                )
                await self._wait_for_the_end(place)
        jobs = self._spec.jobs + self._spec.warm_up_jobs
        took_s = (self._clock.monotonic_us() - begun_us) / limits.SECOND_US
        return Repeat(
            index=index,
            phases=[Phase(name="enqueue", begun_s=0, duration_s=took_s)],
            distributions={
                "start_lag": msgspec.convert(told["lag"], Percentiles),
                "enqueue_time": msgspec.convert(told["sending"], Percentiles),
            },
            checks=[
                judge("reported_starts", "report", "= :jobs", told["starts"], {"jobs": jobs}),
                judge("reported_starts_twice", "report", "= 0", told["strange"], {}),
                drawn_as_asked("pauses_of_another_seed", told["drawn"], self._spec.seed + index),
                *await check(place, "enqueue", {"jobs": jobs, "shards": self._spec.shards}),
            ],
            actual={"loop": told["loop"], "processes": 1 if single else 3, "transport": "none" if single else "grpc"},
        )

    @asynccontextmanager
    async def _others(self, place: Place, folder: Path, port: int, *, single: bool) -> AsyncIterator[None]:
        """Run node and executor beside the enqueuer, unless it is all of them itself."""
        if single:
            yield
            return
        async with Cluster(place.dsn, folder, self._clock, {subject.PORT_VARIABLE: str(port)}) as cluster:
            _, address = await cluster.start_node()
            await cluster.start_executor(_SUBJECT, [address])
            yield

    async def _wait_for_the_end(self, place: Place) -> None:
        """Wait until the last outcome is recorded."""
        end_us = self._clock.monotonic_us() + _SETTLE_MAX_US
        while (await ask(place, ("open_entries",), {}))["open_entries"]:
            if self._clock.monotonic_us() > end_us:
                raise InvalidRun("some executions did not end")
            await self._clock.sleep(50 * limits.MS_US)
