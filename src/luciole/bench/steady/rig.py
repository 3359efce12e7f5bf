"""Nodes, executors and a store under a steady load: everything that the profiles of this family share."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from luciole import limits
from luciole.bench.attribution.threads import NODE_MODULE, Look, looks_path, read_looks
from luciole.bench.backends import Place
from luciole.bench.cluster import Cluster, ClusterProcess
from luciole.bench.result import Phase
from luciole.bench.steady import subject
from luciole.bench.steady.sampler import LATE_MAX_US, Sampler, Store
from luciole.bench.verdict import InvalidRun
from luciole.model.instant import Instant
from luciole.runtime.clock import Clock

_SUBJECT = "luciole.bench.steady.subject:app"
_LOOK_US = 100 * limits.MS_US
_PATIENCE_US = 90 * limits.SECOND_US


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How many of each part."""

    nodes: int
    executors: int
    slots: int  #: of all executors together
    shards: int
    plan_ahead_us: int = 0
    looked_at: bool = False  #: each node keeps where the time of its thread goes


class Rig:
    """The parts of one repeat; a context manager that ends them.

    Args:
        place: a store that is up to date.
        folder: for ledgers and logs.
        data_folder: where the store's data lies.
        size: how many of each.
        clock: the time.
    """

    def __init__(self, place: Place, folder: Path, data_folder: Path, size: Size, clock: Clock) -> None:
        self.store = Store(place)
        self.ledgers = folder / "ledgers"
        self.phases: list[Phase] = []
        self.pids: dict[str, int] = {} if place.server_pid is None else {"database": place.server_pid}
        self._place = place
        self._folder = folder
        self._data_folder = data_folder
        self._size = size
        self._clock = clock
        self._begun_us = clock.monotonic_us()
        self._cluster = Cluster(
            place.dsn,
            folder,
            clock,
            {subject.LEDGERS_VARIABLE: str(self.ledgers), "LUCIOLE_PLAN_AHEAD": f"{size.plan_ahead_us}us"},
        )
        self._executors: list[ClusterProcess] = []
        self.actual: dict[str, int] = {}  #: as nodes and store say it, once all have started

    async def __aenter__(self) -> Self:
        self.ledgers.mkdir()
        await self.store.open()
        await self._cluster.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            await self._cluster.__aexit__(kind)
        finally:
            await self.store.close()

    async def start(self) -> None:
        """Start nodes and executors, and wait until every shard is held and every executor known to every node."""
        size = self._size
        addresses = []
        for number in range(size.nodes):
            node, address = await (
                self._cluster.start_node(module=NODE_MODULE, arguments=())
                if size.looked_at
                else self._cluster.start_node()
            )
            self.pids[_name("node", number, size.nodes)] = node.pid
            addresses.append(address)
        for number in range(size.executors):
            # The remainder goes to the first, so that the sum is what was asked for.
            slots = size.slots // size.executors + (number < size.slots % size.executors)
            executor = await self._cluster.start_executor(_SUBJECT, addresses, slots=slots)
            self._executors.append(executor)
            self.pids[_name("executor", number, size.executors)] = executor.pid
        await self.until("all nodes, shards and executors are ready", self._ready)
        # Each node knows every executor.
        self.actual = {
            "slots": await self.store.gauge("slots"),
            "shards": await self.store.number("SELECT count(*) FROM lease"),
        }

    def looks(self) -> dict[str, Iterator[Look]]:
        """Return the looks that each node took at itself, once it has ended; none where they were not asked for."""
        nodes = {name: pid for name, pid in self.pids.items() if name.startswith("node") and self._size.looked_at}
        return {name: read_looks(looks_path(self._folder, pid)) for name, pid in nodes.items()}

    async def sampled(self, until: Callable[[Sampler], Awaitable[None]]) -> Sampler:
        """Sample what the parts use while something is waited for.

        Raises:
            InvalidRun: the sampler was starved or failed.
        """
        sampler = Sampler(self.pids, self.store, self._data_folder, self._clock)
        looking = asyncio.create_task(sampler.run())
        waiting = asyncio.ensure_future(until(sampler))
        try:
            await asyncio.wait((looking, waiting), return_when=asyncio.FIRST_COMPLETED)
            if looking.done():
                raise InvalidRun(f"the sampler was lost: {looking.exception()!r}")
            await waiting
        finally:
            for task in (looking, waiting):
                task.cancel()
                with suppress(BaseException):
                    await task
        if sampler.late_us > LATE_MAX_US:
            raise InvalidRun(f"the bench was starved: a look came {sampler.late_us / limits.SECOND_US:.1f} s late")
        return sampler

    async def until(
        self, what: str, reached: Callable[[], Awaitable[bool]], *, patience_us: int = _PATIENCE_US
    ) -> None:
        """Wait until something is so.

        Raises:
            InvalidRun: it takes too long, or a part ended by itself.
        """
        end_us = self._clock.monotonic_us() + patience_us
        while not await reached():
            self.check()
            if self._clock.monotonic_us() > end_us:
                raise InvalidRun(f"it took longer than {patience_us // limits.SECOND_US} s until {what}")
            await self._clock.sleep(_LOOK_US)

    async def sleep_until(self, at_us: Instant) -> None:
        """Sleep until an instant of the store's clock, which is the host's."""
        while (left_us := at_us - self._clock.now_us()) > 0:
            self.check()
            await self._clock.sleep(min(left_us, limits.SECOND_US))

    async def kill(self) -> None:
        """End all parts at once: what they were about is of no interest any more."""
        await self._cluster.kill()

    def check(self) -> None:
        """Make sure that all parts still run."""
        self._cluster.check()

    async def phase(self, name: str, part: Awaitable[object]) -> None:
        """Wait for a part of the repeat, and note how long it took."""
        begun_us = self._clock.monotonic_us()
        await part
        self.phases.append(
            Phase(
                name=name,
                begun_s=(begun_us - self._begun_us) / limits.SECOND_US,
                duration_s=(self._clock.monotonic_us() - begun_us) / limits.SECOND_US,
            )
        )

    async def _ready(self) -> bool:
        size = self._size
        if await self.store.number("SELECT count(*) FROM lease WHERE holder IS NOT NULL") < size.shards:
            return False
        if await self.store.number("SELECT count(DISTINCT holder) FROM lease") < min(size.nodes, size.shards):
            return False
        told = [json.loads(text) for text in await self.store.telemetry()]
        sessions = [one.get("gauges", {}).get("sessions", 0) for one in told]
        return len(sessions) == size.nodes and min(sessions) >= size.executors


def _name(part: str, number: int, count: int) -> str:
    return part if count == 1 else f"{part}_{number + 1}"
