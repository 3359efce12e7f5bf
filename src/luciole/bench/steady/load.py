"""The schedules of a steady load: declared as an app declares its own, before the window begins."""

from collections.abc import Iterator, Sequence

from luciole import limits
from luciole.bench.steady import subject
from luciole.bench.steady.spec import Handler, SteadySpec, still_trigger, triggers
from luciole.bench.verdict import InvalidRun
from luciole.model.instant import Instant
from luciole.model.job import JobSpec
from luciole.model.schedule import Policy
from luciole.runtime.clock import Clock
from luciole.service.schedules import Declaration, declare
from luciole.store.spi import Store

#: Names of schedules that fire inside the window, and of those that wait.
PREFIX = "steady-"
STILL_PREFIX = "still-"

#: Declarations in memory at once; each chunk has an owner of its own, whose other schedules are read first.
_CHUNK = 10_000

#: Schedules whose registration says how long all of them take.
_PROBE = 2_000

#: What the estimate may be wrong by, and what comes after registration: statistics and a checkpoint.
_MARGIN = 1.5
_MARGIN_US = 5 * limits.SECOND_US


def job_of(handler: Handler) -> JobSpec:
    """Return the job that a handler's runs are of."""
    if handler.kind == "noop":
        return subject.noop.bind().spec
    chosen = subject.sleep if handler.kind == "sleep" else subject.cpu
    return chosen.bind(handler.duration_ms).spec


async def register(store: Store, spec: SteadySpec, job: JobSpec, clock: Clock) -> Instant:
    """Register the load; return the first fire time of all, which is still to come.

    Raises:
        InvalidRun: registration took until then, so that the first fires were late by themselves.
    """
    begun_us = clock.monotonic_us()
    still = still_trigger(spec, await store.now_us())
    probe = [Declaration(name=f"{STILL_PREFIX}probe-{n}", job=job, trigger=still) for n in range(_PROBE)]
    await declare(store, probe, namespace=subject.NAMESPACE, owner="probe")
    took_us = clock.monotonic_us() - begun_us
    now_us = await store.now_us()
    wanted_us = now_us + round(spec.schedules / _PROBE * took_us * _MARGIN) + _MARGIN_US
    start_us = -(-wanted_us // limits.SECOND_US) * limits.SECOND_US
    for number, chunk in enumerate(_chunks(spec, job, start_us)):
        await declare(store, chunk, namespace=subject.NAMESPACE, owner=f"chunk-{number}")
    if await store.now_us() > start_us:
        raise InvalidRun("the load was not registered when it should have begun; is something else running?")
    return start_us


def _chunks(spec: SteadySpec, job: JobSpec, start_us: Instant) -> Iterator[Sequence[Declaration]]:
    chunk: list[Declaration] = []
    policy = Policy()
    for number, (fires, trigger) in enumerate(triggers(spec, start_us)):
        name = f"{PREFIX if fires else STILL_PREFIX}{number:07d}"
        chunk.append(Declaration(name=name, job=job, trigger=trigger, policy=policy))
        if len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
