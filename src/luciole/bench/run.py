"""A run from its parameters to its result: the lock, the backend, the repeats, the verdict."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from luciole.bench.backends import Backend, hide_passwords
from luciole.bench.burst.load import TRIGGERS
from luciole.bench.burst.spec import BurstSpec, RepeatOrders
from luciole.bench.ceiling.measure import measure_ceiling
from luciole.bench.ceiling.settings import CeilingSetting, Rate, ceiling_of, settings_to_try
from luciole.bench.environment import environment, product
from luciole.bench.lock import only_bench
from luciole.bench.percentiles import merged
from luciole.bench.processes import Process
from luciole.bench.profiles import Profile
from luciole.bench.result import Ceiling, Metric, Repeat, Result, metric, outcome
from luciole.bench.verdict import BenchError, InvalidRun, Verdict
from luciole.limits import SECOND_US
from luciole.model.instant import iso
from luciole.runtime.clock import Clock

_log = logging.getLogger("luciole.bench")

#: A share over it says that the ceiling was measured badly.
SHARE_MAX = 1.1

#: Tells a person how far it is.
Progress = Callable[[str], None]


class BurstRun:
    """One run of the burst profile."""

    def __init__(  # noqa: PLR0913 - what a run is made of
        self,
        profile: Profile,
        spec: BurstSpec,
        backend: Backend,
        *,
        repeats: int,
        ceiling: str,
        requested: dict[str, Any],
        command: Sequence[str],
        author: str | None,
        clock: Clock,
        progress: Progress,
    ) -> None:
        self._profile = profile
        self._spec = spec
        self._backend = backend
        self._repeats = repeats
        self._extent = ceiling
        self._requested = requested
        self._command = [hide_passwords(word) for word in command]
        self._author = author
        self._clock = clock
        self._progress = progress

    def run(self, *, lock: Path | None = None) -> Result:
        """Measure; whatever goes wrong ends as a verdict in the result."""
        result = self._empty()
        begun_us = self._clock.monotonic_us()
        try:
            with ExitStack() as stack:
                stack.enter_context(only_bench(lock))
                stack.enter_context(self._backend)
                result.environment = environment(self._backend.folder)
                asyncio.run(self._measure(result))
            verdict, reason = judged(result)
        except BenchError as error:
            verdict, reason = error.verdict, hide_passwords(str(error))
        except KeyboardInterrupt:
            verdict, reason = Verdict.INVALID, "interrupted"
        except Exception as error:  # noqa: BLE001 - whatever it was, the result says so
            _log.exception("the run broke off")
            verdict, reason = Verdict.INVALID, hide_passwords(f"{type(error).__name__}: {error}")
        result.verdict = outcome(verdict, reason)
        result.duration_s = round((self._clock.monotonic_us() - begun_us) / SECOND_US, 3)
        return result

    def _empty(self) -> Result:
        return Result(
            profile=self._profile.name,
            question=self._profile.question,
            border=self._profile.border,
            verdict=outcome(Verdict.INVALID, "not measured yet"),
            started=iso(self._clock.now_us()),
            duration_s=0.0,
            author=self._author,
            product=product(),
            command=self._command,
            environment={},
            backend={"name": self._backend.name},
            requested=self._requested,
            limits_of_inference=list(self._profile.limits_of_inference),
        )

    async def _measure(self, result: Result) -> None:
        result.backend = await self._backend.described()
        rates = await self._sweep() if self._extent != "none" else []
        best = [max(rates, key=lambda one: one.rate).setting] if rates else []
        for index in range(self._repeats):
            repeat = await self._repeat(index, best)
            result.repeats.append(repeat)
            self._progress(_line(repeat, self._repeats))
        result.actual = result.repeats[-1].actual
        result.metrics = metrics_of(self._profile, result.repeats)
        if rates:
            result.ceiling = whole_ceiling(rates, result.repeats)
            result.ceiling_share = median(repeat.figures["ceiling_share"] for repeat in result.repeats)

    async def _sweep(self) -> list[Rate]:
        """Find the setting at which the server alone is fastest."""
        self._progress("ceiling: trying batch sizes and connections")
        place = await self._backend.fresh()
        try:
            return await measure_ceiling(
                place,
                settings_to_try(self._backend.name, self._extent),
                jobs=self._spec.jobs,
                shards=self._spec.shards,
                triggers=TRIGGERS,
                clock=self._clock,
            )
        finally:
            await self._backend.remove(place)

    async def _repeat(self, index: int, ceiling: list[CeilingSetting]) -> Repeat:
        """Let a process of its own measure once, on fresh places; leave nothing behind."""
        place, ceiling_place = await self._backend.fresh(), await self._backend.fresh()
        process = await Process.start("luciole.bench.burst.repeat")
        try:
            orders = RepeatOrders(
                index=index, spec=self._spec, place=place, ceiling_place=ceiling_place, ceiling=ceiling
            )
            told = await process.ask("repeat", **msgspec.to_builtins(orders))
        finally:
            await process.stop()
            left = [await self._backend.remove(one) for one in (place, ceiling_place)]
        if sum(left):
            raise InvalidRun(f"{sum(left)} places of the bench could not be removed")
        return msgspec.convert(told, Repeat)


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


def whole_ceiling(rates: Sequence[Rate], repeats: Sequence[Repeat]) -> Ceiling:
    """Return the ceiling of the run: the best of the sweep and of what was measured beside each repeat."""
    beside = [
        Rate(CeilingSetting(repeat.ceiling.batch, repeat.ceiling.connections), repeat.ceiling.rate)
        for repeat in repeats
        if repeat.ceiling
    ]
    return ceiling_of([*rates, *beside])


def _line(repeat: Repeat, repeats: int) -> str:
    figures = repeat.figures
    failed = sum(not check.passed for check in repeat.checks)
    share = f", {figures['ceiling_share']:.2f} of the ceiling" if "ceiling_share" in figures else ""
    checks = f"{failed} CHECKS FAILED" if failed else f"{len(repeat.checks)} checks passed"
    return (
        f"repeat {repeat.index + 1}/{repeats}: {figures['drain_rate']:,.0f} jobs/s{share}, "
        f"settled at {figures['settle_rate']:,.0f}/s, {checks}"
    )
