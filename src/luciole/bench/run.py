"""A run from its parameters to its result: the lock, the backend, the measuring, the verdict."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from luciole.bench import faults
from luciole.bench.backends import Backend, Place, durable_folder, hide_passwords
from luciole.bench.environment import cpu_clock, environment, product, stolen_share
from luciole.bench.leash import ended_by_sigterm
from luciole.bench.lock import only_bench
from luciole.bench.objective import Clause, unmet_clauses
from luciole.bench.percentiles import merged
from luciole.bench.processes import Process
from luciole.bench.profiles import Profile
from luciole.bench.result import Metric, Repeat, Result, metric, outcome
from luciole.bench.shares import SHARE_MAX, add_shares, impossible_shares
from luciole.bench.verdict import BenchError, InvalidRun, Verdict
from luciole.errors import MissingExtra
from luciole.limits import SECOND_US
from luciole.model.instant import iso
from luciole.runtime.clock import Clock

_log = logging.getLogger("luciole.bench")

#: Why a run that a person stopped is invalid.
INTERRUPTED = "interrupted"

#: A run that lost more of the CPU to others says nothing about the product.
STOLEN_MAX = 0.05


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is, whatever it measures."""

    profile: Profile
    backend: Backend | None  #: None: nothing is stored
    requested: dict[str, Any]
    command: Sequence[str]
    author: str | None = None
    slo: Sequence[Clause] = ()  #: what each repeat must meet besides the profile's own objective


def perform(
    run: Run, measure: Callable[[Result], Awaitable[None]], *, clock: Clock, lock: Path | None = None
) -> Result:
    """Measure, alone on the machine; whatever goes wrong ends as a verdict in the result.

    Args:
        run: what it is.
        measure: fills in what it finds while the backend is up.
        clock: what times it.
        lock: the file of the lock; None: the machine's.
    """
    result = _empty(run, iso(clock.now_us()))
    if fault := faults.asked():
        result.limits_of_inference.append(
            f"A fault was injected on purpose: {fault}. The figures are not the product's."
        )
    begun_us = clock.monotonic_us()
    try:
        with ExitStack() as stack:
            stack.enter_context(ended_by_sigterm())
            stack.enter_context(only_bench(lock))
            if run.backend:
                stack.callback(run.backend.stop)  # Before it starts, for there may be a signal at any moment.
                stack.enter_context(run.backend)
            result.environment = environment(run.backend.folder if run.backend else durable_folder())
            asyncio.run(_measure(run, result, measure))
        verdict, reason = judged(result)
    except BenchError as error:
        verdict, reason = error.verdict, hide_passwords(str(error))
    except KeyboardInterrupt:
        verdict, reason = Verdict.INVALID, INTERRUPTED
    except MissingExtra as error:
        verdict, reason = Verdict.BACKEND_UNAVAILABLE, str(error)
    except Exception as error:  # noqa: BLE001 - whatever it was, the result says so
        _log.exception("the run broke off")
        verdict, reason = Verdict.INVALID, hide_passwords(f"{type(error).__name__}: {error}")
    result.verdict = outcome(verdict, reason)
    result.duration_s = round((clock.monotonic_us() - begun_us) / SECOND_US, 3)
    return result


async def _measure(run: Run, result: Result, measure: Callable[[Result], Awaitable[None]]) -> None:
    if run.backend:
        result.backend = await run.backend.described()
    stolen = cpu_clock()
    await measure(result)
    add_shares(run.profile, result.repeats)
    for repeat in result.repeats:
        repeat.objective += unmet_clauses(run.slo, repeat)
    share = stolen_share(stolen, cpu_clock())
    result.environment["noise"] |= {"stolen_share": round(share, 4), "load_1min_after": round(os.getloadavg()[0], 2)}
    result.actual = result.repeats[-1].actual
    result.metrics = metrics_of(run.profile, result.repeats)
    if result.repeats:
        result.repeats[-1].invalid += impossible_shares(run.profile, result.repeats)
    if result.repeats and share > STOLEN_MAX:
        result.repeats[-1].invalid.append(f"the hypervisor took {share:.0%} of the CPU time")


def _empty(run: Run, started: str) -> Result:
    return Result(
        profile=run.profile.name,
        question=run.profile.question,
        border=run.profile.border,
        verdict=outcome(Verdict.INVALID, "not measured yet"),
        started=started,
        duration_s=0.0,
        author=run.author,
        product=product(),
        command=[hide_passwords(word) for word in run.command],
        environment={},
        backend={"name": run.backend.name if run.backend else "none"},
        requested=run.requested,
        limits_of_inference=list(run.profile.limits_of_inference),
    )


async def in_process(
    module: str,
    verb: str,
    environment: Mapping[str, str] | None = None,
    /,
    **orders: Any,  # noqa: ANN401 - what JSON can carry
) -> Repeat:
    """Let a process of its own, with more in its environment, measure one repeat."""
    async with await Process.start(module, environment) as process:
        return msgspec.convert(await process.ask(verb, **orders), Repeat)


@asynccontextmanager
async def fresh_place(backend: Backend) -> AsyncIterator[Place]:
    """Bring a fresh place, and remove it afterwards.

    Raises:
        InvalidRun: something of it is still there.
    """
    place = await backend.fresh()
    try:
        yield place
    finally:
        left = await backend.remove(place)
    if left:
        raise InvalidRun(f"{left} places of the bench could not be removed")


def judged(result: Result) -> tuple[Verdict, str]:
    """Return the verdict of what was measured; incorrect beats invalid beats all else."""
    failed = [check for repeat in result.repeats for check in repeat.checks if not check.passed]
    if failed:
        names = ", ".join(f"{check.name} is {check.found}, expected {check.expected}" for check in failed[:5])
        return Verdict.INCORRECT, f"the figures are void: {names}"
    if not all(repeat.checks for repeat in result.repeats):
        return Verdict.INVALID, "a repeat was not checked"
    invalid = [reason for repeat in result.repeats for reason in repeat.invalid]
    if invalid:
        return Verdict.INVALID, "; ".join(invalid[:5])
    if result.ceiling_share is not None and result.ceiling_share > SHARE_MAX:
        return Verdict.INVALID, f"a share of {result.ceiling_share:.2f} of the ceiling: it was measured badly"
    unmet = [clause for repeat in result.repeats for clause in repeat.objective]
    loud = [f"{one.name} is {one.high:g}" for one in result.metrics if one.direction == "zero" and one.high]
    if loud:
        unmet.append(f"what must be zero is not: {', '.join(loud)}")
    if unmet:
        return Verdict.OBJECTIVE_MISSED, "; ".join(unmet[:5])
    checks = sum(len(repeat.checks) for repeat in result.repeats)
    return Verdict.OK, f"{checks} checks passed in {len(result.repeats)} repeats"


def metrics_of(profile: Profile, repeats: Sequence[Repeat]) -> list[Metric]:
    """Return each metric of the profile that all repeats have, over all repeats; distributions by their p99."""
    found = []
    for spec in profile.metrics:
        if all(spec.name in repeat.distributions for repeat in repeats):
            parts = [repeat.distributions[spec.name] for repeat in repeats]
            found.append(metric(spec, [float(part.p99) for part in parts], merged(parts)))
        elif all(spec.name in repeat.figures for repeat in repeats):
            found.append(metric(spec, [repeat.figures[spec.name] for repeat in repeats]))
    return found
