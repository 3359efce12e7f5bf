"""The schedules of a steady load: declared as an app declares its own, before the window begins."""

from collections.abc import Iterable, Iterator
from itertools import islice, repeat

from luciole import limits
from luciole.bench.steady import subject
from luciole.bench.steady.spec import Handler, SteadySpec, still_trigger, triggers
from luciole.bench.verdict import InvalidRun
from luciole.model.instant import Instant
from luciole.model.job import JobSpec
from luciole.model.schedule import Policy
from luciole.model.trigger import Trigger
from luciole.runtime.clock import Clock
from luciole.service.schedules import Declaration, declare
from luciole.store.spi import Store

#: Names of schedules that fire inside the window, and of those that wait.
PREFIX = "steady-"
STILL_PREFIX = "still-"

#: Declarations in memory at once; each chunk has an owner of its own, whose other schedules are read first.
_CHUNK = 50_000

#: Schedules whose registration says how long all of them take.
_PROBE = 2_000

#: What the estimate may be wrong by, and what comes after registration: statistics and a checkpoint.
_MARGIN = 2
_MARGIN_US = 5 * limits.SECOND_US


def job_of(handler: Handler) -> JobSpec:
    """Return the job that a handler's runs are of."""
    if handler.kind == "noop":
        return subject.noop.bind().spec
    chosen = {"sleep": subject.sleep, "cpu": subject.cpu, "block": subject.block}[handler.kind]
    return chosen.bind(handler.duration_ms).spec


async def register(store: Store, spec: SteadySpec, job: JobSpec, clock: Clock) -> Instant:
    """Register the load; return the first fire time of all, which is still to come.

    What does not fire inside the window comes first: how long that takes says when the window may begin.

    Raises:
        InvalidRun: registration took until then, so that the first fires were late by themselves.
    """
    firing = spec.firing
    begun_us = clock.monotonic_us()
    still = still_trigger(spec, await store.now_us())
    waiting = max(_PROBE, spec.schedules - firing)
    await declare_in_chunks(store, _named(job, repeat(still, waiting), STILL_PREFIX))
    took_us = clock.monotonic_us() - begun_us
    wanted_us = await store.now_us() + round(firing / waiting * took_us * _MARGIN) + _MARGIN_US
    start_us = -(-wanted_us // limits.SECOND_US) * limits.SECOND_US
    await declare_in_chunks(store, _named(job, triggers(spec, start_us), PREFIX))
    if await store.now_us() > start_us:
        raise InvalidRun("the load was not registered when it should have begun; is something else running?")
    return start_us


async def declare_in_chunks(store: Store, each: Iterable[Declaration]) -> None:
    """Declare many schedules, some thousands at a time, each time for an owner of its own."""
    waiting = iter(each)
    while chunk := list(islice(waiting, _CHUNK)):
        await declare(store, chunk, namespace=subject.NAMESPACE, owner=chunk[0].name)


def _named(job: JobSpec, each: Iterable[Trigger], prefix: str) -> Iterator[Declaration]:
    policy = Policy()
    for number, trigger in enumerate(each):
        yield Declaration(name=f"{prefix}{number:07d}", job=job, trigger=trigger, policy=policy)
