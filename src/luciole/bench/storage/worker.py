"""The process of one repeat: it has the store to itself and calls its verbs as the product does.

Run as `python -m luciole.bench.storage.worker`; it answers a `Repeat`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

import msgspec

from luciole import limits
from luciole.bench import subject
from luciole.bench.attribution.callers import CallerLog
from luciole.bench.backends import Place
from luciole.bench.bare import Bare
from luciole.bench.check import check, judge
from luciole.bench.cpu import own_cpu_us
from luciole.bench.loops import run_here
from luciole.bench.percentiles import Distribution
from luciole.bench.processes import Message, answer_lines
from luciole.bench.result import Phase, Repeat
from luciole.bench.stores import open_fresh
from luciole.client.client import Client
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.model.job import JobSpec
from luciole.model.outbox import AttemptOutcome, Settlement
from luciole.runtime.chance import new_process_id
from luciole.runtime.clock import SystemClock
from luciole.store.spi import Store

_LEASE_US = limits.HOUR_US


class StorageOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What the process of one repeat is told."""

    index: int
    place: Place
    tasks: int  #: enqueues of each payload by each number of callers
    reads: int  #: loads by id, of each payload
    workers: int  #: that deliver, settle and load at once
    claim_batch: int  #: entries that a worker reads and settles at once
    payloads: Sequence[int]  #: sizes in bytes
    callers: Sequence[int]  #: how many enqueue at once
    shards: int = 32
    watched: bool = False  #: say where the time goes, at the cost of the figures
    counts: bool = True  #: its figures are wanted


class _Phases:
    """Times phases, each made of calls that several tasks make at once."""

    def __init__(self, repeat: Repeat, clock: SystemClock, log: CallerLog | None) -> None:
        self._log = log
        self._repeat = repeat
        self._clock = clock
        self._begun_us = clock.monotonic_us()

    async def run(self, name: str, count: int, tasks: Sequence[Callable[["_Calls"], Awaitable[None]]]) -> None:
        """Run tasks to their end; keep rate, distribution of the calls, CPU and effective concurrency."""
        calls = _Calls(self._clock)
        at_us, cpu_us = self._clock.monotonic_us(), own_cpu_us()
        with self._log.window(name, count) if self._log else nullcontext():
            async with asyncio.TaskGroup() as group:
                for task in tasks:
                    group.create_task(_awaited(task(calls)))
        took_us = self._clock.monotonic_us() - at_us
        self._repeat.figures |= {
            f"{name}_rate": count * limits.SECOND_US / took_us,
            f"{name}_cpu_us_per_job": (own_cpu_us() - cpu_us) / count,
            f"{name}_concurrency": calls.busy_us / took_us,
        }
        self._repeat.distributions[f"{name}_time"] = calls.times.percentiles()
        self._repeat.phases.append(
            Phase(
                name=name,
                begun_s=(at_us - self._begun_us) / limits.SECOND_US,
                duration_s=took_us / limits.SECOND_US,
            )
        )


class _Calls:
    """Collects how long calls take."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self.times = Distribution()
        self.busy_us = 0  #: all calls together: over the wall time, how many were under way on average

    def begin(self) -> int:
        return self._clock.monotonic_us()

    def end(self, begun_us: int) -> None:
        took_us = self._clock.monotonic_us() - begun_us
        self.times.add(took_us)
        self.busy_us += took_us


async def _awaited(work: Awaitable[None]) -> None:
    await work


def label(size_bytes: int) -> str:
    """Return what stands in a figure's name for a size: "0", "1k", "16k"."""
    return f"{size_bytes // 1024}k" if size_bytes >= 1024 else str(size_bytes)  # noqa: PLR2004 - a kibibyte


async def repeat(**orders: object) -> Message:
    """Enqueue, deliver and settle, load, with payloads of each size."""
    told = msgspec.convert(orders, StorageOrders)
    clock = SystemClock()
    found = Repeat(index=told.index, actual={"processes": 1, "loop": type(asyncio.get_running_loop()).__module__})
    log = CallerLog(clock) if told.watched else None
    plain = await open_fresh(told.place, shards=told.shards, steps=log)
    store = log.around(plain) if log else plain
    client = Client(store, clock)
    run = _Storage(told, store, client, _Phases(found, clock, log))
    bare = await Bare.open(told.place, clock)
    try:
        for size in told.payloads:
            bare_rate = await bare.insert_rate(told.tasks, b"x" * size) if told.counts else 0.0
            await run.payload(size)
            if told.counts:  # Before and after: a ceiling is the better of both.
                bare_rate = max(bare_rate, await bare.insert_rate(told.tasks, b"x" * size))
                found.figures[f"bare_insert_{label(size)}_rate" if size else "bare_insert_rate"] = bare_rate
    finally:
        await bare.close()
        await client.close()
        await plain.close()
    if told.counts:
        alone = found.figures[f"enqueue_{label(told.payloads[0])}_by_1_rate"]
        found.figures["enqueue_share"] = alone / found.figures["bare_insert_rate"]
    found.actual |= run.actual
    found.checks += [
        judge("loads_of_another_payload", "report", "= 0", run.wrong, {}),
        *await check(told.place, "enqueue", {"jobs": run.enqueued, "shards": told.shards}),
    ]
    answer = found.message()
    if log:
        log.close()
        answer["windows"] = msgspec.to_builtins(log.windows)
    return answer


class _Storage:
    def __init__(self, orders: StorageOrders, store: Store, client: Client, phases: _Phases) -> None:
        self._orders = orders
        self._store = store
        self._client = client
        self._phases = phases
        self._run = new_process_id()
        self._spec: JobSpec = replace(subject.nothing.spec, namespace=f"{subject.NAMESPACE}-{self._run}")
        self.enqueued = 0
        self.wrong = 0
        #: Tasks that settled, and the most that one of them got at once.
        self.actual: dict[str, int] = {"workers": 0, "claim_batch": 0}

    async def payload(self, size: int) -> None:
        """Run all phases with payloads of one size."""
        orders = self._orders
        payload = b"x" * size
        keys: list[ExecutionKey] = []
        for callers in orders.callers:
            each = orders.tasks // callers

            async def caller(calls: _Calls, each: int = each) -> None:
                for _ in range(each):
                    at_us = calls.begin()
                    keys.append((await self._client.enqueue(self._spec, payload)).key)
                    calls.end(at_us)

            await self._phases.run(f"enqueue_{label(size)}_by_{callers}", each * callers, [caller] * callers)
        self.enqueued += len(keys)
        await self._settle(size, len(keys))
        await self._load(size, keys)

    async def _settle(self, size: int, count: int) -> None:
        store, orders = self._store, self._orders
        leases = await store.acquire_leases(self._run, range(orders.shards), ttl_us=_LEASE_US)
        shards = [lease.shard for lease in leases]

        async def worker(calls: _Calls, own: Sequence[int]) -> None:
            while True:
                at_us = calls.begin()
                ready = await store.ready_entries(own, await store.now_us(), limit=orders.claim_batch)
                self.actual["claim_batch"] = max(self.actual["claim_batch"], len(ready.entries))
                now_us = await store.now_us()
                settlements = [
                    Settlement(
                        entry.key,
                        entry.attempt,
                        ExecutionState.SUCCEEDED,
                        AttemptOutcome.SUCCEEDED,
                        now_us,
                        now_us,
                        self._run,
                    )
                    for entry in ready.entries[: limits.REPORT_BATCH_MAX]
                ]
                if not settlements:
                    return
                await store.settle(settlements)
                calls.end(at_us)

        parts = [shards[place :: orders.workers] for place in range(orders.workers)]
        tasks = [lambda calls, own=part: worker(calls, own) for part in parts if part]
        self.actual["workers"] = len(tasks)
        await self._phases.run(f"settle_{label(size)}", count, tasks)
        await store.release_leases(leases)

    async def _load(self, size: int, keys: Sequence[ExecutionKey]) -> None:
        orders = self._orders
        each = orders.reads // orders.workers

        async def worker(calls: _Calls, place: int) -> None:
            for number in range(each):
                at_us = calls.begin()
                view = await self._store.get_execution(keys[(place + number * orders.workers) % len(keys)])
                calls.end(at_us)
                self.wrong += view is None or len(view.payload) != size

        tasks = [lambda calls, place=place: worker(calls, place) for place in range(orders.workers)]
        await self._phases.run(f"load_{label(size)}", each * orders.workers, tasks)


if __name__ == "__main__":
    run_here(answer_lines({"repeat": repeat}))
