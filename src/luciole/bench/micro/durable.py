"""The steps of the micro layer that store: appends and ids on the embedded store, timed, with their commits counted."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

from luciole.bench.backends import Place, durable_folder
from luciole.bench.loops import run_here
from luciole.bench.stores import make_store
from luciole.client.grouping import Enqueuer
from luciole.client.ids import IdSource
from luciole.model.execution import EnqueueRequest, request_shard
from luciole.model.job import JobSpec
from luciole.runtime.clock import SystemClock

_SHARDS = 32
_JOB = JobSpec(namespace="bench", handler="bench.handler")
_ROUTE = _JOB.route_id()
_IDS = 4_096


class Durable(NamedTuple):
    """One step to measure: `prefix_us` is its time, `prefix_commits` what it commits."""

    prefix: str
    guards: str
    each: str  #: what one is called in the unit
    times: int  #: how often the step does it
    rounds: int
    step: Callable[["Bench"], Awaitable[None]]


class Commits:
    """Counts the commits of a store: what it is told of its steps."""

    def __init__(self) -> None:
        self.count = 0

    def begin(self) -> int:
        """Return no time: only numbers matter here."""
        return 0

    def end(self, step: str, begun_us: int) -> None:
        """Count a commit."""
        del begun_us
        self.count += step == "commit"


class Bench(NamedTuple):
    """An open store with what a client puts in front of it."""

    enqueuer: Enqueuer
    ids: IdSource
    job_id: int
    commits: Commits

    async def append(self) -> None:
        """Make one execution durable, as a client's enqueue does."""
        (request_id,) = await self.ids.take()
        shard = request_shard("bench", None, request_id, _SHARDS)
        request = EnqueueRequest(
            namespace="bench", request_id=request_id, shard=shard, job_id=self.job_id, payload=b"{}", route=_ROUTE
        )
        await self.enqueuer.enqueue(request)


async def _alone(bench: Bench) -> None:
    for _ in range(64):
        await bench.append()


async def _few(bench: Bench) -> None:
    for _ in range(8):
        await asyncio.gather(*(bench.append() for _ in range(8)))


async def _crowd(bench: Bench) -> None:
    await asyncio.gather(*(bench.append() for _ in range(64)))


async def _take(bench: Bench) -> None:
    for _ in range(_IDS):
        await bench.ids.take()


async def _bulk(bench: Bench) -> None:
    await bench.ids.take(_IDS)


DURABLES: tuple[Durable, ...] = (
    Durable("append_alone", "a lone caller's request leaves at once, in one transaction", "append", 64, 7, _alone),
    Durable("append_few", "neighbouring ids share a shard: 8 callers write few pages", "append", 64, 7, _few),
    Durable("append_crowd", "64 concurrent callers share a commit, without a timer", "append", 64, 15, _crowd),
    Durable("id_take", "ids come from segments of a thousand, not from the store one by one", "id", _IDS, 7, _take),
    Durable("id_bulk", "a bulk takes its ids at once, in one transaction", "id", _IDS, 15, _bulk),
)


def measure_durables() -> dict[str, float]:
    """Return time and commits of each step, on an embedded store of its own; its folder is gone afterwards."""
    with own_folder() as folder:
        return run_here(_measure(Place(dsn=f"sqlite:///{folder / 'micro.db'}")))


@contextmanager
def own_folder() -> Iterator[Path]:
    """Yield a folder on a disk that keeps what it is given; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="luciole-micro-", dir=durable_folder()) as folder:
        yield Path(folder)


@asynccontextmanager
async def open_bench(place: Place, commits: Commits) -> AsyncIterator[Bench]:
    """Yield a store that is made at a place, with a client in front of it; closed afterwards."""
    store = make_store(place, steps=commits)
    await store.migrate(shards=_SHARDS)
    await store.open()
    ids = IdSource(store)
    try:
        (job_id,) = await store.intern_jobs([_JOB])
        bench = Bench(Enqueuer(store), ids, job_id, commits)
        yield bench
        await bench.enqueuer.close()
    finally:
        await ids.close()
        await store.close()


async def _measure(place: Place) -> dict[str, float]:
    clock = SystemClock()
    found: dict[str, float] = {}
    async with open_bench(place, Commits()) as bench:
        for durable in DURABLES:
            found |= await _one(durable, bench, clock)
    return found


async def _one(durable: Durable, bench: Bench, clock: SystemClock) -> dict[str, float]:
    """Return the median time of some rounds, and the commits of all."""
    await durable.step(bench)
    counted, rounds_us = bench.commits.count, []
    for _ in range(durable.rounds):
        begun_us = clock.monotonic_us()
        await durable.step(bench)
        rounds_us.append(clock.monotonic_us() - begun_us)
    done = durable.times * durable.rounds
    return {
        f"{durable.prefix}_us": sorted(rounds_us)[len(rounds_us) // 2] / durable.times,
        f"{durable.prefix}_commits": (bench.commits.count - counted) / done,
    }
