"""Registration: schedules declared one by one and in bulk, through the use case that an app goes through.

Run as `python -m luciole.bench.register.client`; it answers a `Repeat`.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec

from luciole import limits
from luciole.bench.attribution.callers import CallerLog
from luciole.bench.backends import Place
from luciole.bench.burst import load
from luciole.bench.check import check
from luciole.bench.cpu import own_cpu_us
from luciole.bench.loops import run_here
from luciole.bench.percentiles import Distribution
from luciole.bench.processes import Message, answer_lines
from luciole.bench.result import Phase, Repeat
from luciole.bench.stores import open_fresh
from luciole.runtime.clock import SystemClock
from luciole.service.schedules import Declaration, declare
from luciole.store.spi import Store


class RegisterOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What the process of one repeat is told."""

    index: int
    place: Place
    jobs: int  #: in bulk
    singles: int  #: each in a transaction of its own
    registrars: int = 1  #: at once, each with a share of the schedules
    shards: int = 32
    watched: bool = False  #: say where the time goes, at the cost of the figures
    counts: bool = True  #: its figures are wanted


class _Registration:
    """One repeat."""

    def __init__(self, orders: RegisterOrders) -> None:
        self._orders = orders
        self._clock = SystemClock()
        self._log = CallerLog(self._clock) if orders.watched else None
        self._found = Repeat(index=orders.index, actual={"batch": limits.REGISTER_BATCH_MAX})

    async def run(self) -> Message:
        """Register one by one into an empty store, then in bulk, then the same once more."""
        told = self._orders
        plain = await open_fresh(told.place, shards=told.shards, steps=self._log)
        store = self._log.around(plain) if self._log else plain
        try:
            now_us = await store.now_us()
            singles = load.declarations(told.singles, prefix=load.WARM_UP_PREFIX, now_us=now_us)
            with self._window("single", told.singles):
                await self._register_singles(store, singles)
            bulk = load.declarations(told.jobs, prefix=load.PREFIX, now_us=now_us)
            parts = [part for part in (bulk[at :: told.registrars] for at in range(told.registrars)) if part]
            self._found.actual["registrars"] = len(parts)
            begun_us = self._clock.monotonic_us()
            for name in ("bulk", "again"):
                with self._window(name, told.jobs):
                    await self._register(store, name, parts, begun_us)
        finally:
            await plain.close()
        await self._check()
        answer = self._found.message()
        if self._log:
            self._log.close()
            answer["windows"] = msgspec.to_builtins(self._log.windows)
        return answer

    def _window(self, name: str, jobs: int) -> AbstractContextManager[None]:
        return self._log.window(name, jobs) if self._log else nullcontext()

    async def _register_singles(self, store: Store, singles: Sequence[Declaration]) -> None:
        clock, lag = self._clock, Distribution()
        waiting = iter(enumerate(singles))

        async def register_singles() -> None:
            for number, single in waiting:
                at_us = clock.monotonic_us()
                await declare(store, [single], namespace=load.NAMESPACE, owner=f"{load.OWNER}-{number}")
                lag.add(clock.monotonic_us() - at_us)

        await asyncio.gather(*(register_singles() for _ in range(self._orders.registrars)))
        self._found.distributions["single_time"] = lag.percentiles()

    async def _register(self, store: Store, name: str, parts: Sequence[Sequence[Declaration]], begun_us: int) -> None:
        clock, found = self._clock, self._found
        at_us, cpu_us = clock.monotonic_us(), own_cpu_us()
        declared = await asyncio.gather(
            *(
                declare(store, part, namespace=load.NAMESPACE, owner=f"{load.OWNER}-bulk-{number}")
                for number, part in enumerate(parts)
            )
        )
        took_us = clock.monotonic_us() - at_us
        found.figures["changed_again"] = sum(one.created + one.changed for one in declared)
        found.figures[f"{name}_rate"] = self._orders.jobs * limits.SECOND_US / took_us
        found.figures[f"{name}_cpu_us"] = (own_cpu_us() - cpu_us) / self._orders.jobs
        found.phases.append(
            Phase(
                name=name,
                begun_s=(at_us - begun_us) / limits.SECOND_US,
                duration_s=took_us / limits.SECOND_US,
            )
        )

    async def _check(self) -> None:
        told = self._orders
        values: dict[str, int | str] = {
            "namespace": load.NAMESPACE,
            "prefix": load.PREFIX,
            "jobs": told.jobs,
            "all": told.jobs + told.singles,
            "shards": told.shards,
        }
        self._found.checks += await check(told.place, "register", values)


async def repeat(**orders: object) -> Message:
    """Do as told."""
    return await _Registration(msgspec.convert(orders, RegisterOrders)).run()


if __name__ == "__main__":
    run_here(answer_lines({"repeat": repeat}))
