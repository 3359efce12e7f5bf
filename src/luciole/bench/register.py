"""Registration: schedules declared one by one and in bulk, through the use case that an app goes through.

Run as `python -m luciole.bench.register`; it answers a `Repeat`.
"""

import asyncio

import msgspec

from luciole import limits
from luciole.bench.backends import Place
from luciole.bench.burst import load
from luciole.bench.check import check, read_back
from luciole.bench.cpu import own_cpu_us
from luciole.bench.loops import run_here
from luciole.bench.percentiles import Distribution
from luciole.bench.processes import Message, answer_lines
from luciole.bench.result import Phase, Repeat
from luciole.bench.stores import open_fresh
from luciole.runtime.clock import SystemClock
from luciole.service.schedules import declare


class RegisterOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What the process of one repeat is told."""

    index: int
    place: Place
    jobs: int  #: in bulk
    singles: int  #: each in a transaction of its own
    registrars: int = 1  #: at once, each with a share of the schedules
    shards: int = 32


async def repeat(**orders: object) -> Message:
    """Register one by one into an empty store, then in bulk, then the same once more."""
    told = msgspec.convert(orders, RegisterOrders)
    clock = SystemClock()
    found = Repeat(index=told.index, actual={"batch": limits.REGISTER_BATCH_MAX})
    store = await open_fresh(told.place, shards=told.shards)
    try:
        now_us = await store.now_us()
        bulk = load.declarations(told.jobs, prefix=load.PREFIX, now_us=now_us)
        parts = [part for part in (bulk[at :: told.registrars] for at in range(told.registrars)) if part]
        found.actual["registrars"] = len(parts)
        singles = load.declarations(told.singles, prefix=load.WARM_UP_PREFIX, now_us=now_us)
        lag = Distribution()
        waiting = iter(enumerate(singles))

        async def register_singles() -> None:
            for number, single in waiting:
                at_us = clock.monotonic_us()
                await declare(store, [single], namespace=load.NAMESPACE, owner=f"{load.OWNER}-{number}")
                lag.add(clock.monotonic_us() - at_us)

        await asyncio.gather(*(register_singles() for _ in range(told.registrars)))
        found.distributions["single_time"] = lag.percentiles()
        begun_us = clock.monotonic_us()
        for name in ("bulk", "again"):
            at_us, cpu_us = clock.monotonic_us(), own_cpu_us()
            declared = await asyncio.gather(
                *(
                    declare(store, part, namespace=load.NAMESPACE, owner=f"{load.OWNER}-bulk-{number}")
                    for number, part in enumerate(parts)
                )
            )
            took_us = clock.monotonic_us() - at_us
            found.figures["changed_again"] = sum(one.created + one.changed for one in declared)
            found.figures[f"{name}_rate"] = told.jobs * limits.SECOND_US / took_us
            found.figures[f"{name}_cpu_us"] = (own_cpu_us() - cpu_us) / told.jobs
            found.phases.append(
                Phase(
                    name=name,
                    begun_s=(at_us - begun_us) / limits.SECOND_US,
                    duration_s=took_us / limits.SECOND_US,
                )
            )
    finally:
        await store.close()
    values: dict[str, int | str] = {
        "namespace": load.NAMESPACE,
        "prefix": load.PREFIX,
        "jobs": told.jobs,
        "all": told.jobs + told.singles,
        "shards": told.shards,
    }
    found.actual |= await read_back(told.place)
    found.checks += await check(told.place, "register", values)
    return found.message()


if __name__ == "__main__":
    run_here(answer_lines({"repeat": repeat}))
