"""The burst as a run: the sweep for its ceiling, then repeats, each in a process of its own on fresh places."""

from collections.abc import Callable, Sequence
from statistics import median

import msgspec
from msgspec.structs import replace

from luciole.bench.attribution.profiling import Kind
from luciole.bench.backends import Backend
from luciole.bench.burst.load import TRIGGERS
from luciole.bench.burst.spec import BurstSpec, RepeatOrders
from luciole.bench.ceiling.measure import measure_ceiling
from luciole.bench.ceiling.settings import CeilingSetting, Rate, ceiling_of, settings_to_try
from luciole.bench.check import judge
from luciole.bench.fresh import Watch, keep_faults
from luciole.bench.result import Ceiling, Repeat, Result
from luciole.bench.run import fresh_place, in_process
from luciole.runtime.clock import Clock


class BurstMeasure:
    """Measures bursts on a backend that is up."""

    def __init__(
        self,
        spec: BurstSpec,
        backend: Backend,
        *,
        repeats: int,
        ceiling: str,
        clock: Clock,
        progress: Callable[[str], None],
        watch: Watch | None = None,
    ) -> None:
        self._spec = spec
        self._watch = watch or Watch()
        self._backend = backend
        self._repeats = repeats
        self._extent = ceiling
        self._clock = clock
        self._progress = progress

    async def __call__(self, result: Result) -> None:
        """Fill in repeats and ceiling."""
        rates = await self.sweep() if self._extent != "none" else []
        best = [max(rates, key=lambda one: one.rate).setting] if rates else []
        for index in range(self._repeats):
            repeat = await self._repeat(index, best)
            result.repeats.append(repeat)
            self._progress(_line(repeat, self._repeats))
        for kind in self._watch.profiles:
            await self._profile(result, kind)
        if rates:
            result.ceiling = whole_ceiling(
                [ceiling_of(rates), *(repeat.ceiling for repeat in result.repeats if repeat.ceiling)]
            )
            result.ceiling_share = median(repeat.figures["ceiling_share"] for repeat in result.repeats)

    async def sweep(self) -> list[Rate]:
        """Find the setting at which the server alone is fastest."""
        self._progress("ceiling: trying batch sizes and connections")
        async with fresh_place(self._backend) as place:
            return await measure_ceiling(
                place,
                settings_to_try(self._backend.name, self._extent),
                jobs=self._spec.jobs,
                shards=self._spec.shards,
                triggers=TRIGGERS,
                clock=self._clock,
            )

    async def _profile(self, result: Result, kind: Kind) -> None:
        """Profile one repeat more; only its profile and what it did wrong are kept."""
        repeat = await self._repeat(self._repeats, [], profile=kind)
        result.flames += repeat.flames
        keep_faults(result.repeats[-1], repeat)
        self._progress(f"{kind} profile: {sum(flame.samples for flame in repeat.flames):,} samples")

    async def _repeat(self, index: int, ceiling: list[CeilingSetting], *, profile: Kind | None = None) -> Repeat:
        async with fresh_place(self._backend) as place, fresh_place(self._backend) as ceiling_place:
            orders = RepeatOrders(
                index=index,
                spec=self._spec,
                place=place,
                ceiling_place=ceiling_place,
                ceiling=ceiling,
                sample_waits=self._watch.sample_waits,
                profile=profile,
            )
            return await in_process("luciole.bench.burst.repeat", "repeat", **msgspec.to_builtins(orders))


class CeilingMeasure:
    """Measures the ceiling alone, on a backend that is up."""

    def __init__(self, burst: BurstMeasure, *, jobs: int, repeats: int, progress: Callable[[str], None]) -> None:
        self._burst = burst
        self._jobs = jobs
        self._repeats = repeats
        self._progress = progress

    async def __call__(self, result: Result) -> None:
        """Fill in one repeat for each sweep; each rate is checked to stand for all rows."""
        for index in range(self._repeats):
            rates = await self._burst.sweep()
            found = ceiling_of(rates)
            rows = min(one.written for one in rates)
            written = judge("rows_written", "store", "= :jobs", rows, {"jobs": self._jobs})
            result.repeats.append(
                Repeat(index=index, figures={"ceiling_rate": found.rate}, ceiling=found, checks=[written])
            )
            self._progress(f"sweep {index + 1}/{self._repeats}: {found.rate:,.0f} jobs/s at batch {found.batch}")
        result.ceiling = whole_ceiling([repeat.ceiling for repeat in result.repeats if repeat.ceiling])


def whole_ceiling(found: Sequence[Ceiling]) -> Ceiling:
    """Return the ceiling of the run: the best of the sweep and of what was measured beside each repeat."""
    best = max(found, key=lambda one: one.rate)
    return replace(best, tried=[tried for one in found for tried in one.tried])


def _line(repeat: Repeat, repeats: int) -> str:
    figures = repeat.figures
    failed = sum(not check.passed for check in repeat.checks)
    share = f", {figures['ceiling_share']:.2f} of the ceiling" if "ceiling_share" in figures else ""
    checks = f"{failed} CHECKS FAILED" if failed else f"{len(repeat.checks)} checks passed"
    return (
        f"repeat {repeat.index + 1}/{repeats}: {figures['drain_rate']:,.0f} jobs/s{share}, "
        f"settled at {figures['settle_rate']:,.0f}/s, {checks}"
    )
