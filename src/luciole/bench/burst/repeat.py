"""One repeat of a burst, phase by phase; a process of its own.

Run as `python -m luciole.bench.burst.repeat`; it is told `RepeatOrders` and answers a `Repeat`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from luciole import limits
from luciole.bench.attribution.document import Trace
from luciole.bench.attribution.observing import Observation
from luciole.bench.attribution.profiling import Profiler
from luciole.bench.attribution.traces import merge
from luciole.bench.attribution.watching import Told
from luciole.bench.backends import Place
from luciole.bench.burst import load
from luciole.bench.burst.figures import burst_checks, burst_figures
from luciole.bench.burst.flap import Flapping
from luciole.bench.burst.owners import Owners
from luciole.bench.burst.spec import BurstSpec, Closed, Drained, RepeatOrders, SchedulerOrders
from luciole.bench.ceiling.lanes import beside_a_burst
from luciole.bench.ceiling.measure import measure_ceiling
from luciole.bench.ceiling.settings import Rate, ceiling_of
from luciole.bench.check import Values, ask, check
from luciole.bench.cpu import tree_cpu_us
from luciole.bench.loops import run_here
from luciole.bench.percentiles import merged
from luciole.bench.processes import Message, Process, answer_lines, ask_all
from luciole.bench.result import Phase, Repeat
from luciole.bench.steady.effective import planned_ahead
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import InvalidRun
from luciole.bench.work import prepare_counting, quiesce, read_log, read_work, statements_between
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.runtime.clock import SystemClock
from luciole.service.schedules import declare
from luciole.store.spi import Store

#: The instant lies ahead by this much, so that moving all due times has ended before it comes; few move soon.
_LEAD_MIN_US = limits.SECOND_US
_LEAD_MAX_US = 3 * limits.SECOND_US
_LEAD_MORE_PER_JOB_US = 400
_LEAD_PER_JOB_US = 60

#: A gate that opens later than this measures the machine, not the product.
_GATE_LATE_MAX_US = 100 * limits.MS_US

_STALE_MOVES = 64


class BurstRepeat:
    """The coordinator: it owns no part of the path, only its order."""

    def __init__(self, orders: RepeatOrders) -> None:
        self._orders = orders
        self._spec = orders.spec
        self._place = orders.place
        self._clock = SystemClock()
        self._begun_us = self._clock.monotonic_us()
        self._found = Repeat(index=orders.index)
        self._processes: list[Process] = []
        self._zombies: list[Process] = []  #: of the topology of that name: they had the shards before
        self._troubles: dict[str, int] = {}  #: what was done to the burst, counted
        self.values: Values = {}  #: what the questions of the checker take

    async def run(self) -> Repeat:
        """Run all phases; what can't be trusted is said in `invalid`."""
        rates: list[Rate] = []
        if self._orders.ceiling:
            async with self._phase("ceiling"):
                rates += await self._ceiling()
        store = await open_fresh(self._place, shards=self._spec.shards)
        try:
            await prepare_counting(self._place)
            self._owners = Owners(store, self._spec.shards)
            await self._prepare(store)
            at_us, self.values = await self._aim(store)
            await self._window(store, at_us)
            self.values = {**self.values, "fence_sum": sum(lease.fence for lease in self._owners.leases.values())}
            async with self._phase("release"):
                await self._owners.release()
            async with self._phase("check"):
                self._found.checks += await check(self._place, "burst", self.values)
                self._found.checks += await planned_ahead(self._place, self._spec.plan_ahead_us)
        finally:
            for process in (*self._processes, *self._zombies):
                await process.stop()
            await store.close()
        if self._orders.ceiling:
            async with self._phase("ceiling"):
                rates += await self._ceiling()
            self._found.ceiling = ceiling_of(rates)
            self._found.figures["ceiling_share"] = self._found.figures["drain_rate"] / self._found.ceiling.rate
            async with self._phase("ceiling"):
                self._found.figures |= await beside_a_burst(
                    self._orders.ceiling_place, self._found.ceiling.rate, self._spec.jobs, self._clock
                )
        return self._found

    async def _prepare(self, store: Store) -> None:
        """Register, lease, start the schedulers and warm them up."""
        spec = self._spec
        now_us = await store.now_us()
        declarations = load.declarations(spec.jobs, prefix=load.PREFIX, now_us=now_us)
        async with self._phase("register") as phase:
            await declare(store, declarations, namespace=load.NAMESPACE, owner=load.OWNER)
        self._found.figures["register_rate"] = spec.jobs / phase[0]
        warm_up = load.declarations(spec.warm_up_jobs, prefix=load.WARM_UP_PREFIX, now_us=now_us)
        await declare(store, warm_up, namespace=load.NAMESPACE, owner=f"{load.OWNER}-warm-up")
        async with self._phase("lease"):
            leases = await self._owners.take_all(self._owners.join())
        async with self._phase("warm_up"):
            await self._start(store, leases, zombies=self._spec.topology == "zombie")
        if self._spec.topology == "zombie":
            async with self._phase("take_over"):
                leases = await self._owners.take_over(self._owners.join(), range(spec.shards))
            async with self._phase("warm_up"):
                await self._start(store, leases, zombies=False)

    async def _start(self, store: Store, leases: Sequence[Lease], *, zombies: bool) -> None:
        """Start the schedulers, each with its leases, and warm them up."""
        started = self._zombies if zombies else self._processes
        for number in range(self._spec.schedulers):
            process = await Process.start("luciole.bench.burst.scheduler")
            started.append(process)
            orders = SchedulerOrders(
                spec=self._spec, place=self._place, leases=self._share(leases, number), zombie=zombies
            )
            told = await process.ask("open", **msgspec.to_builtins(orders))
            role = "zombies" if zombies else "schedulers"
            self._found.actual.setdefault(role, []).append({"pid": process.pid, **told})
        if self._spec.warm_up_jobs:
            await store.reschedule(load.NAMESPACE, load.WARM_UP_PREFIX, await store.now_us())
        settled = sum(answer["settled"] for answer in await ask_all(started, "warm_up"))
        if settled != self._spec.warm_up_jobs:
            raise InvalidRun(f"{settled} of {self._spec.warm_up_jobs} jobs of the warm-up were settled")

    def _share(self, leases: Sequence[Lease], number: int) -> list[Lease]:
        """Return the leases of one scheduler: all of them in contention, else its part."""
        return list(leases) if self._spec.topology == "contention" else list(leases[number :: self._spec.schedulers])

    async def _aim(self, store: Store) -> tuple[Instant, Values]:
        """Move every due time to one instant, and see that nothing is due before it."""
        async with self._phase("quiesce"):
            self._found.notes += await quiesce(self._place)
        jobs = self._spec.jobs
        lead_us = min(_LEAD_MAX_US, _LEAD_MIN_US + _LEAD_MORE_PER_JOB_US * jobs) + _LEAD_PER_JOB_US * jobs
        lead_us += self._spec.plan_ahead_us
        at_us = await store.now_us() + lead_us
        if self._spec.start == "warm":
            await self._all("begin", at_us=at_us)
        async with self._phase("reschedule"):
            moved = await store.reschedule(load.NAMESPACE, load.PREFIX, at_us)
        if moved != self._spec.jobs:
            raise InvalidRun(f"{moved} of {self._spec.jobs} schedules could be moved to the instant")
        values: dict[str, int | str] = {
            "namespace": load.NAMESPACE,
            "prefix": load.PREFIX,
            "jobs": self._spec.jobs,
            "shards": self._spec.shards,
            "at_us": at_us,
            "opens_us": at_us - self._spec.plan_ahead_us,
        }
        async with self._phase("assert_nothing_due"):
            told = await ask(self._place, ("revision_before", "due_before_the_instant"), values)
        if told["due_before_the_instant"] or told["revision_before"] < 0:
            raise InvalidRun(f"before the instant, {told['due_before_the_instant']} schedules were due")
        values["revision"] = told["revision_before"]
        async with self._phase("refuse_stale"):
            stale = await self._all("send_stale", at_us=at_us, moves=_STALE_MOVES)
        self._stale = {name: sum(answer[name] for answer in stale) for name in ("attempted", "accepted")}
        if await store.now_us() >= at_us - self._spec.plan_ahead_us:
            raise InvalidRun("the instant had passed before everything stood ready: the machine is too slow for N")
        return at_us, values

    async def _window(self, store: Store, at_us: Instant) -> None:
        """Drain, close the outbox, and read what it cost."""
        before, written = await read_work(self._place), await self._written()
        pids = {f"scheduler {number}": process.pid for number, process in enumerate(self._processes, 1)}
        async with (
            self._profiled(pids),
            Observation(self._place, pids, clock=self._clock, waits=self._orders.sample_waits) as seen,
        ):
            server_us = _server_cpu_us(self._place)
            async with self._phase("drain"):
                drained = await self._drain(store, at_us)
            drained_server_us = _server_cpu_us(self._place)
            async with self._phase("settle"):
                closed = [msgspec.convert(answer, Closed) for answer in await self._all("close_outbox")]
        server_parts_us = (drained_server_us - server_us, _server_cpu_us(self._place) - drained_server_us)
        grown = {pid: count - written[pid] for pid, count in (await self._written()).items()}
        ways = await self._all("traces")
        self._found.traces = merge(msgspec.convert(answer["traces"], list[Trace]) for answer in ways)
        await self._all("close")  # A server hears the last counts of a connection when it ends.
        after = await read_work(self._place)
        await seen.read_after()
        self._found.actual["statements"] = statements_between(before, after)
        opens_us = at_us - self._spec.plan_ahead_us
        self._found.figures |= burst_figures(
            jobs=self._spec.jobs,
            at_us=opens_us,
            drained=drained,
            closed=closed,
            server_us=server_parts_us if self._place.server_pid else None,
            written=sum(grown.values()),
            work=(before, after),
            log=await read_log(self._place, before, after),
            stale=self._stale["attempted"],
        )
        self._found.checks += burst_checks(
            jobs=self._spec.jobs,
            drained=drained,
            closed=closed,
            stale=self._stale,
            topology=self._spec.topology,
            troubles=self._troubles,
        )
        self._found.figures |= {name: float(count) for name, count in self._troubles.items()}
        self._found.distributions |= {
            "fire_lag": merged(part.fire_lag for part in drained),
            "decide_lag": merged(part.decide_lag for part in drained),
            "commit_time": merged(part.commit_time for part in drained),
            "settle_lag": merged(part.settle_lag for part in closed),
        }
        self._explain(seen, drained, closed)
        self._judge(drained, at_us)

    def _judge(self, drained: Sequence[Drained], at_us: Instant) -> None:
        """Say what makes the repeat worthless."""
        late_us = max(part.gate_us for part in drained) - at_us
        self._found.figures["gate_late_us"] = float(late_us)
        if late_us > _GATE_LATE_MAX_US:
            self._found.invalid.append(f"a gate opened {late_us} us late: the generator lagged")
        if errors := sum(part.errors for part in drained):
            self._found.invalid.append(f"a plan loop failed {errors} times: its pauses are in the figures")

    async def _drain(self, store: Store, at_us: Instant) -> list[Drained]:
        """Let the schedulers plan all of it, each topology in its way."""
        if self._spec.topology == "flap" or self._spec.start == "warm":
            answers = await self._drain_in_loops(store, at_us)
        elif self._spec.topology == "zombie":
            told = await asyncio.gather(
                ask_all(self._processes, "drain", at_us=at_us), ask_all(self._zombies, "drain", at_us=at_us)
            )
            answers = told[0]
            tried = await ask_all(self._zombies, "send_stale_deliveries", moves=_STALE_MOVES)
            late = [msgspec.convert(answer, Drained) for answer in told[1]]
            self._troubles |= {
                "zombie_plans": sum(part.refused for part in late),
                "zombie_deliveries": sum(answer["attempted"] for answer in tried),
                "zombie_accepted": sum(part.created + part.entries for part in late)
                + sum(answer["accepted"] for answer in tried),
            }
        else:
            answers = await self._all("drain", at_us=at_us)
        return [msgspec.convert(answer, Drained) for answer in answers]

    async def _drain_in_loops(self, store: Store, at_us: Instant) -> Sequence[Message]:
        """Let plan loops run until nothing is due; with `flap` they are disturbed meanwhile."""
        leases = list(self._owners.leases.values())
        held = {
            number: {lease.shard for lease in self._share(leases, number)} for number in range(len(self._processes))
        }
        flapping = Flapping(store=store, owners=self._owners, processes=self._processes, held=held, clock=self._clock)
        if self._spec.start == "cold":
            await self._all("begin", at_us=at_us)
        if self._spec.topology == "flap":
            await flapping.disturb(self._spec.jobs, at_us)
            self._troubles |= {"take_overs": flapping.take_overs, "kills": flapping.kills}
        await flapping.ended(at_us)
        self._processes = [self._processes[number] for number in sorted(held)]
        while (left_us := at_us - await store.now_us()) > 0:
            await self._clock.sleep(left_us)  # I11: what was planned ahead is reported when it was due, not before.
        return [
            await process.ask("finish", at_us=at_us, shards=sorted(held[number]))
            for number, process in zip(sorted(held), self._processes, strict=True)
        ]

    @asynccontextmanager
    async def _profiled(self, pids: Mapping[str, int]) -> AsyncIterator[None]:
        """Profile the schedulers, where that was asked for."""
        if self._orders.profile is None:
            yield
            return
        async with Profiler(pids, self._orders.profile) as profiler:
            yield
        self._found.flames = profiler.flames
        self._found.notes += profiler.failed

    def _explain(self, seen: Observation, drained: Sequence[Drained], closed: Sequence[Closed]) -> None:
        """Say where the time of both windows went."""
        found = self._found
        told, settled = [part.told for part in drained], [part.told for part in closed]
        due_us = min(one.begun_us for one in told)
        found.attribution = [
            seen.explain(
                "drain",
                _named(told),
                jobs=self._spec.jobs,
                begun_us=due_us,
                zero_us=self._begun_us,
                connections=_connections(self._spec, found.actual["schedulers"][0]["connections"]),
                commits_per_job=sum(part.chunks for part in drained) / self._spec.jobs,
            ),
            seen.explain(
                "settle",
                _named(settled),
                jobs=self._spec.jobs,
                begun_us=min(one.begun_us for one in settled),
                zero_us=self._begun_us,
                connections=_connections(self._spec, min(self._spec.reporters, limits.POSTGRES_SETTLE_CONNECTIONS_MAX)),
                commits_per_job=sum(part.batches for part in closed) / self._spec.jobs,
            ),
        ]
        found.stages_us = max(told, key=lambda one: one.ended_us).stages_us
        found.series = seen.series(told, settled, jobs=self._spec.jobs, due_us=due_us, zero_us=self._begun_us)
        found.database = seen.counters
        found.invalid += seen.lost

    async def _all(self, verb: str, **arguments: object) -> Sequence[Message]:
        """Ask all schedulers at once; return their answers in order."""
        return await ask_all(self._processes, verb, **arguments)

    async def _written(self) -> dict[int, int]:
        """Return the bytes that each scheduler has handed to the filesystem, by process id."""
        answers = await self._all("written")
        return {process.pid: answer["bytes"] or 0 for process, answer in zip(self._processes, answers, strict=True)}

    async def _ceiling(self) -> list[Rate]:
        return await measure_ceiling(
            self._orders.ceiling_place,
            self._orders.ceiling,
            jobs=self._spec.jobs,
            shards=self._spec.shards,
            triggers=load.TRIGGERS,
            clock=self._clock,
        )

    @asynccontextmanager
    async def _phase(self, name: str) -> AsyncIterator[list[float]]:
        """Time a phase; the list holds its duration in seconds once it has ended."""
        duration: list[float] = []
        begun_us = self._clock.monotonic_us()
        yield duration
        duration.append((self._clock.monotonic_us() - begun_us) / limits.SECOND_US)
        self._found.phases.append(
            Phase(name=name, begun_s=(begun_us - self._begun_us) / limits.SECOND_US, duration_s=duration[0])
        )


def _server_cpu_us(place: Place) -> int:
    return tree_cpu_us(place.server_pid) if place.server_pid else 0


def _connections(spec: BurstSpec, one: int) -> int:
    """Return how many connections all schedulers have of those that one may use."""
    return min(one, spec.pool or one) * spec.schedulers


def _named(told: Sequence[Told]) -> dict[str, Told]:
    return {f"scheduler {number}": one for number, one in enumerate(told, 1)}


async def repeat(**orders: object) -> Message:
    """Run one repeat as it is told."""
    found = await BurstRepeat(msgspec.convert(orders, RepeatOrders)).run()
    return found.message()


if __name__ == "__main__":
    run_here(answer_lines({"repeat": repeat}))
