"""The chaos profile as a run: a cluster under load, one fault after the other, then the questions."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec

from luciole import limits
from luciole.bench import subject
from luciole.bench.backends import Place, connect_postgres
from luciole.bench.chaos.ledger import read_ledger, reconcile
from luciole.bench.chaos.watch import Watch
from luciole.bench.check import Values, check, judge
from luciole.bench.cluster import Cluster, ClusterProcess
from luciole.bench.fresh import FreshRepeats
from luciole.bench.percentiles import Distribution
from luciole.bench.result import Check, Phase, Repeat
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import InvalidRun
from luciole.model.instant import Instant, to_datetime
from luciole.model.trigger import every
from luciole.runtime.clock import Clock
from luciole.runtime.extras import require
from luciole.service import schedules
from luciole.store.spi import Store

with require("bench"):
    import psutil

_SUBJECT = "luciole.bench.subject:app"
_PREFIX = "chaos-"
_LOOK_US = 100 * limits.MS_US
_PATIENCE_US = 60 * limits.SECOND_US

#: What a killed node may still have had under way at the server does not count as fired elsewhere.
_UNDER_WAY_US = 100 * limits.MS_US

#: The lease's time to live, at its default; a node is frozen for three of them.
_LEASE_TTL_S = 3

#: When the load has to be back after all connections were cut, and how long it is counted for, at the least.
_BACK_US = 10 * limits.SECOND_US
_COUNTED_US = 4 * limits.SECOND_US
#: What an execution takes at most to be created after its fire time, at the end of the count.
_LATE_US = 2 * limits.SECOND_US


#: So many executions that did not succeed are told of.
_TROUBLED_MAX = 5


class ChaosSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters, as requested."""

    rate: int  #: fires a second
    period_s: int = 2  #: of each schedule
    handler_ms: int = 200
    node_kills: int
    executor_kills: int
    freezes: int  #: with the node's own deadline check, and as many without
    disconnects: int = 0  #: of all clients at once, by the server
    slots: int = 400
    shards: int = 32


class ChaosMeasure(FreshRepeats[ChaosSpec]):
    """Two nodes and two executors; whatever is killed is replaced by a new process."""

    def _line(self, repeat: Repeat) -> str:
        figures = repeat.figures
        recovered_s = figures["recovery_max_us"] / limits.SECOND_US
        return f"{figures['executions']:,.0f} executions, recovered within {recovered_s:.2f} s"

    async def _repeat(self, index: int, place: Place, folder: Path) -> Repeat:
        one = ChaosRepeat(self._spec, place, folder, clock=self._clock, progress=self._progress)
        return await one.run(index)


class ChaosRepeat:
    """One repeat: load, faults, the end, the questions."""

    def __init__(
        self, spec: ChaosSpec, place: Place, folder: Path, *, clock: Clock, progress: Callable[[str], None]
    ) -> None:
        self._spec = spec
        self._place = place
        self._folder = folder
        self._clock = clock
        self._progress = progress
        self._begun_us = clock.monotonic_us()
        self._recovery = Distribution()
        self._redelivery = Distribution()
        self._nodes: list[tuple[ClusterProcess, str]] = []
        self._executors: list[ClusterProcess] = []
        self._stale = {"checked": 0, "unchecked": 0}
        self._lost = 0
        self._seen = {"nodes_killed": 0, "executors_killed": 0, "nodes_frozen": 0, "disconnects": 0}
        self._back_percent = 100
        self._phases: list[Phase] = []

    async def run(self, index: int) -> Repeat:
        """Run it all and judge it."""
        ledger = self._folder / "ledger"
        store = await open_fresh(self._place, shards=self._spec.shards)
        self._watch = Watch(await connect_postgres(self._place), self._clock)
        environment = {subject.LEDGER_VARIABLE: str(ledger)}
        try:
            async with Cluster(self._place.dsn, self._folder, self._clock, environment) as self._cluster:
                await self._start()
                values = await self._load(store)
                await self._phase("node_kills", self._kill_nodes)
                await self._phase("executor_kills", self._kill_executors)
                await self._phase("freezes", self._freeze)
                await self._phase("disconnects", self._disconnect)
                await self._phase("end", lambda: self._end(store))
            executions = await self._watch.executions()
            troubled = await self._watch.troubled(_TROUBLED_MAX)
        finally:
            await self._watch.close()
            await store.close()
        checks = [
            *await check(self._place, "chaos", values),
            *reconcile(read_ledger(ledger), executions),
        ]
        checks += happened(self._spec, self._seen)
        if self._spec.freezes:
            found = self._stale["unchecked"]
            checks.append(judge("stale_writes_refused_without_a_deadline", "report", "> 0", found, {}))
            sent = self._stale["checked"]
            checks.append(judge("stale_writes_sent_with_a_deadline", "report", "= 0", sent, {}))
        if self._spec.disconnects:
            found = self._back_percent
            checks.append(judge("percent_of_the_rate_after_a_disconnect", "report", "> 97", found, {}))
        if self._spec.executor_kills:
            checks.append(judge("attempts_lost_with_executors", "report", "> 0", self._lost, {}))
        return Repeat(
            index=index,
            phases=self._phases,
            figures={
                "executions": len(executions),
                "attempts_lost": self._lost,
                "stale_writes_with_deadline": self._stale["checked"],
                "stale_writes_refused": self._stale["unchecked"],
                "back_percent": self._back_percent,
                "recovery_max_us": self._recovery.percentiles().max,
                "redelivery_max_us": self._redelivery.percentiles().max,
            },
            distributions={
                "recovery": self._recovery.percentiles(),
                "redelivery": self._redelivery.percentiles(),
            },
            checks=checks,
            actual={"nodes": 2, "executors": 2, "lease_ttl_s": _LEASE_TTL_S},
            notes=troubled,
        )

    async def _start(self) -> None:
        for _ in range(2):
            self._nodes.append(await self._cluster.start_node())
        for _ in range(2):
            self._executors.append(await self._start_executor())

    async def _start_executor(self) -> ClusterProcess:
        addresses = [address for _, address in self._nodes]
        return await self._cluster.start_executor(_SUBJECT, addresses, slots=self._spec.slots)

    async def _load(self, store: Store) -> Values:
        """Register schedules whose fires are spread evenly, and wait until they flow."""
        spec = self._spec
        count = spec.rate * spec.period_s
        start_us = (await store.now_us() // limits.SECOND_US + 3) * limits.SECOND_US
        start = to_datetime(start_us)
        bound = subject.work.bind(spec.handler_ms)
        job = bound.spec
        step = timedelta(seconds=spec.period_s) / count
        declared = [
            schedules.Declaration(
                name=f"{_PREFIX}{n:06d}",
                job=job,
                trigger=every(timedelta(seconds=spec.period_s), anchor=start + n * step, start=start),
            )
            for n in range(count)
        ]
        await schedules.declare(store, declared, namespace=subject.NAMESPACE, owner="chaos")
        await self._until("the load flows", lambda: self._flows(start_us))
        self._progress(f"{spec.rate} fires/s flow from {count} schedules")
        return {
            "jobs": count,
            "namespace": subject.NAMESPACE,
            "prefix": _PREFIX,
            "start_us": start_us,
            "period_us": spec.period_s * limits.SECOND_US,
            "shards": spec.shards,
        }

    async def _flows(self, since_us: Instant) -> bool:
        holders = await self._watch.holders()
        if len(holders) < 2 or sum(map(len, holders.values())) < self._spec.shards:  # noqa: PLR2004 - two nodes
            return False
        everywhere = range(self._spec.shards)
        return await self._watch.fired_since(everywhere, since_us, self._spec.period_s * limits.SECOND_US)

    async def _kill_nodes(self) -> None:
        for number in range(self._spec.node_kills):
            node, address = self._nodes.pop(0)
            shards, at_us = await self._down(node, signal.SIGKILL)
            self._cluster.forget(node)
            took_us = await self._recovered(shards, at_us)
            self._progress(
                f"node kill {number + 1}/{self._spec.node_kills}: {len(shards)} shards of {address} fire again "
                f"elsewhere after {took_us / limits.SECOND_US:.2f} s"
            )
            self._nodes.append(await self._cluster.start_node())
            await self._balanced()

    async def _down(self, node: ClusterProcess, number: signal.Signals) -> tuple[Sequence[int], Instant]:
        """Kill or freeze a node; return its shards and the store's time of it."""
        node.check()
        node_id = await self._watch.node_of(node.pid)
        shards = (await self._watch.holders()).get(node_id or "", [])
        if not shards:
            raise InvalidRun(f"{node.name} holds no shard: killing it would show nothing")
        at_us = await self._watch.now_us()
        if number is signal.SIGKILL:
            await node.kill()
            self._seen["nodes_killed"] += node.was_killed
        else:
            node.signal(number)
            self._seen["nodes_frozen"] += await self._stands_still(node)
        return shards, at_us

    async def _stands_still(self, node: ClusterProcess) -> bool:
        """Wait until the system calls a process stopped."""
        await self._until("the node stands still", lambda: _is(psutil.STATUS_STOPPED, node.pid))
        return True

    async def _recovered(self, shards: Sequence[int], at_us: Instant) -> int:
        """Wait until all shards fire again; return the longest that one of them took."""
        period_us = self._spec.period_s * limits.SECOND_US
        since_us = at_us + _UNDER_WAY_US
        await self._until("all shards fire again", lambda: self._watch.fired_since(shards, since_us, period_us))
        first: dict[int, Instant] = {}

        async def created() -> bool:
            # A planned fire may be one that overlap skips: what counts is an execution.
            first.update(await self._watch.first_fire_after(shards, since_us))
            return len(first) == len(shards)

        await self._until("all shards have an execution again", created)
        took = [first[shard] - at_us for shard in shards]
        for one in took:
            self._recovery.add(one)
        return max(took)

    async def _balanced(self) -> None:
        """Wait until both nodes hold about half, and the load flows everywhere."""
        fair = self._spec.shards // 2
        now_us = await self._watch.now_us()

        async def balanced() -> bool:
            holders = await self._watch.holders()
            alive = [await self._watch.node_of(node.pid) for node, _ in self._nodes]
            return all(len(holders.get(node_id or "", [])) == fair for node_id in alive)

        await self._until("the shards are shared evenly", balanced)
        await self._until("the load flows", lambda: self._flows(now_us))

    async def _kill_executors(self) -> None:
        for number in range(self._spec.executor_kills):
            executor = self._executors.pop(0)
            executor.check()
            at_us = await self._watch.now_us()
            await executor.kill()
            self._seen["executors_killed"] += executor.was_killed
            self._cluster.forget(executor)
            await self._until("all that was due before is done", partial(self._done_since, at_us))
            lost, latest_us = await self._watch.redelivered(at_us)
            self._lost += lost
            if lost:
                self._redelivery.add(latest_us - at_us)
            self._progress(
                f"executor kill {number + 1}/{self._spec.executor_kills}: {lost} runs lost, the last redelivered after "
                f"{max(0, latest_us - at_us) / limits.SECOND_US:.2f} s"
            )
            self._executors.append(await self._start_executor())
            await self._clock.sleep(2 * limits.SECOND_US)

    async def _done_since(self, at_us: Instant) -> bool:
        return await self._watch.open_since(at_us) == 0

    async def _freeze(self) -> None:
        """Freeze nodes for three leases: first ordinary ones, then ones whose own deadline check is off."""
        for kind, module, arguments in (
            ("checked", "luciole", ("node",)),
            ("unchecked", "luciole.bench.chaos.node", ()),
        ):
            for number in range(self._spec.freezes):
                old, _ = self._nodes.pop(0)
                await old.stop()
                self._cluster.forget(old)
                node, address = await self._cluster.start_node(module=module, arguments=arguments)
                self._nodes.append((node, address))
                await self._balanced()
                stale = await self._freeze_one(node)
                self._stale[kind] += stale
                self._progress(
                    f"freeze {number + 1}/{self._spec.freezes} ({kind}): {stale} stale writes sent and refused"
                )

    async def _freeze_one(self, node: ClusterProcess) -> int:
        node_id = await self._watch.node_of(node.pid)
        assert node_id
        shards, at_us = await self._down(node, signal.SIGSTOP)
        await self._recovered(shards, at_us)
        left_us = at_us + 3 * _LEASE_TTL_S * limits.SECOND_US - await self._watch.now_us()
        await self._clock.sleep(left_us)
        before = await self._watch.telemetry(node_id)
        node.signal(signal.SIGCONT)

        async def heard() -> bool:
            return await self._watch.telemetry(node_id) != before

        await self._until("the node speaks again", heard)
        await self._balanced()  # It is back at work, and what it counted is published.
        counters = json.loads(await self._watch.telemetry(node_id)).get("counters", {})
        return int(counters.get("plans_refused_stale", 0))

    async def _disconnect(self) -> None:
        """End every connection of every client, and count what fires once they had time to come back."""
        for number in range(self._spec.disconnects):
            at_us = await self._watch.now_us() + _BACK_US
            ended = await self._watch.end_connections()
            self._seen["disconnects"] += ended > 0
            period_us = self._spec.period_s * limits.SECOND_US
            periods = -(-_COUNTED_US // period_us)
            await self._clock.sleep(_BACK_US + periods * period_us + _LATE_US)
            fired = await self._watch.fired_between(at_us, at_us + periods * period_us)
            percent = 100 * fired // (self._spec.rate * self._spec.period_s * periods)
            self._back_percent = min(self._back_percent, percent)
            self._progress(
                f"disconnect {number + 1}/{self._spec.disconnects}: {ended} connections ended, {percent} % of the rate "
                f"from {_BACK_US // limits.SECOND_US} s on"
            )

    async def _end(self, store: Store) -> None:
        """Pause all schedules, and wait until nothing is open."""
        names = [f"{_PREFIX}{n:06d}" for n in range(self._spec.rate * self._spec.period_s)]
        for at in range(0, len(names), 16):
            await asyncio.gather(*(schedules.pause(store, subject.NAMESPACE, name) for name in names[at : at + 16]))

        async def closed() -> bool:
            return await self._watch.open_at_all() == 0

        await self._until("nothing is open", closed)

    async def _until(self, what: str, reached: Callable[[], Awaitable[bool]]) -> None:
        end_us = self._clock.monotonic_us() + _PATIENCE_US
        while not await reached():
            self._cluster.check()
            if self._clock.monotonic_us() > end_us:
                raise InvalidRun(f"it took longer than {_PATIENCE_US // limits.SECOND_US} s until {what}")
            await self._clock.sleep(_LOOK_US)

    async def _phase(self, name: str, part: Callable[[], Awaitable[None]]) -> None:
        begun_us = self._clock.monotonic_us()
        await part()
        self._phases.append(
            Phase(
                name=name,
                begun_s=(begun_us - self._begun_us) / limits.SECOND_US,
                duration_s=(self._clock.monotonic_us() - begun_us) / limits.SECOND_US,
            )
        )


def happened(spec: ChaosSpec, seen: Mapping[str, int]) -> list[Check]:
    """Judge whether each fault that was asked for happened, by what the system said of the processes."""
    asked = {
        "nodes_killed": spec.node_kills,
        "executors_killed": spec.executor_kills,
        "nodes_frozen": 2 * spec.freezes,  # With the node's own deadline check, and without.
        "disconnects": spec.disconnects,
    }
    return [judge(name, "report", "= :asked", seen[name], {"asked": count}) for name, count in asked.items()]


async def _is(status: str, pid: int) -> bool:
    """Whether the system gives a process this status."""
    return psutil.Process(pid).status() == status
