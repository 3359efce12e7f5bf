"""The steady profile as a run: registered, fired for a window, drained, reconciled, judged."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from luciole import limits
from luciole.bench.attribution.document import Flame
from luciole.bench.attribution.heart import read_beats
from luciole.bench.attribution.observing import SampledWaits
from luciole.bench.attribution.profiling import Profiler
from luciole.bench.backends import Backend, Place
from luciole.bench.check import Values, ask, check
from luciole.bench.environment import cpu_clock, stolen_share
from luciole.bench.fresh import Watch, keep_faults
from luciole.bench.result import Check, Repeat, Result
from luciole.bench.run import STOLEN_MAX, fresh_place
from luciole.bench.steady import load, subject
from luciole.bench.steady.effective import effective
from luciole.bench.steady.explain import Load
from luciole.bench.steady.judge import punctuality, unmet
from luciole.bench.steady.ledger import read_starts, reconciled
from luciole.bench.steady.rig import Rig, Size
from luciole.bench.steady.sampler import SHORT_LOOKS, Sample, Sampler, resources, thinned
from luciole.bench.steady.spec import NODES_PROVEN, SteadySpec, read_handler
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import InvalidRun
from luciole.bench.work import Work, prepare_counting, quiesce, read_log, read_work, statements_between
from luciole.model.instant import Instant
from luciole.runtime.clock import Clock

#: A window that is judged while it runs ends early once something has been due for this long.
_HOPELESS_US = 4 * limits.SECOND_US


class Window(msgspec.Struct, kw_only=True):
    """What was seen of one window, before it is judged."""

    start_us: Instant
    end_us: Instant
    given_up: bool = False  #: it fell so far behind that its end was not awaited
    stolen_share: float = 0.0
    before: Work = msgspec.field(default_factory=Work)
    after: Work = msgspec.field(default_factory=Work)
    samples: list[Sample] = []
    log_bytes: int | None = None


class Beside(Protocol):
    """What else a profile does while the load fires."""

    kind: str  #: of its questions; see `checks/questions.sql`

    async def run(self, place: Place, start_us: Instant, end_us: Instant) -> None:
        """Do it, for as long as the window lasts."""
        ...

    def values(self) -> Values:
        """Return what its questions need to know."""
        ...

    def checks(self) -> Sequence[Check]:
        """Judge what it saw itself."""
        ...

    def fill(self, repeat: Repeat) -> None:
        """Add its figures, and what made it invalid."""
        ...


class SteadyMeasure:
    """Each repeat on a fresh store with fresh processes."""

    def __init__(
        self,
        spec: SteadySpec,
        backend: Backend,
        *,
        repeats: int,
        clock: Clock,
        progress: Callable[[str], None],
        watch: Watch | None = None,
    ) -> None:
        self._watch = watch or Watch()
        self._spec = spec
        self._backend = backend
        self._repeats = repeats
        self._clock = clock
        self._progress = progress

    async def __call__(self, result: Result) -> None:
        """Fill in repeats."""
        for index in range(self._repeats):
            result.repeats.append(await self._repeat(index, Watch(sample_waits=self._watch.sample_waits)))
        for kind in self._watch.profiles:
            repeat = await self._repeat(self._repeats, Watch(profiles=[kind]))
            result.flames += repeat.flames
            keep_faults(result.repeats[-1], repeat)

    async def _repeat(self, index: int, watch: Watch) -> Repeat:
        return await steady_repeat(
            index, self._spec, self._backend, self._clock, self._progress, looked_at=True, watch=watch
        )


async def steady_repeat(  # noqa: PLR0913 - what profiles of this family differ in
    index: int,
    spec: SteadySpec,
    backend: Backend,
    clock: Clock,
    progress: Callable[[str], None],
    *,
    gives_up: bool = False,
    beside: Beside | None = None,
    looked_at: bool = False,
    watch: Watch | None = None,
) -> Repeat:
    """Measure one window.

    Args:
        index: of the repeat.
        spec: the load.
        backend: brings the store.
        clock: the time.
        progress: told what a person may want to know.
        gives_up: end the window as soon as it can't be met any more; then only what must never happen is checked.
        beside: what else happens in the window.
        looked_at: nodes keep where the time of their threads goes, at about 1 % of a core.
        watch: how closely else it is watched.
    """
    with tempfile.TemporaryDirectory(prefix="luciole-bench-") as name:
        async with fresh_place(backend) as place:
            one = SteadyRepeat(
                spec,
                place,
                Path(name),
                backend.folder,
                clock=clock,
                beside=beside,
                looked_at=looked_at,
                watch=watch or Watch(),
            )
            repeat = await one.run(index, gives_up=gives_up)
    lag = repeat.distributions["start_lag"]
    progress(
        f"{spec.schedules:,} schedules of {spec.period_s} s: {repeat.figures['on_time_share']:.3%} on time, "
        f"p99 {lag.p99 / limits.MS_US:,.0f} ms, {repeat.figures.get('cores', 0.0):.2f} cores"
    )
    return repeat


class SteadyRepeat:
    """One repeat."""

    def __init__(
        self,
        spec: SteadySpec,
        place: Place,
        folder: Path,
        data_folder: Path,
        *,
        clock: Clock,
        beside: Beside | None,
        looked_at: bool,
        watch: Watch,
    ) -> None:
        self._spec = spec
        self._place = place
        self._folder = folder
        self._data_folder = data_folder
        self._clock = clock
        self._beside = beside
        self._looked_at = looked_at
        self._watch = watch
        self._waits = SampledWaits(place, clock, asked=watch.sample_waits)
        self._flames: list[Flame] = []
        self._profiles_failed: list[str] = []

    async def run(self, index: int, *, gives_up: bool) -> Repeat:
        """Run it all and judge it."""
        spec = self._spec
        size = Size(
            nodes=spec.nodes,
            executors=spec.executors,
            slots=spec.slots,
            shards=spec.shards,
            plan_ahead_us=spec.plan_ahead_us,
            looked_at=self._looked_at,
        )
        store = await open_fresh(self._place, shards=spec.shards)
        try:
            async with Rig(self._place, self._folder, self._data_folder, size, self._clock) as rig:
                await prepare_counting(self._place)
                await rig.phase("start", rig.start())
                async with self._profiled(rig):  # A profiler takes seconds to begin: before the load is due.
                    begun_us = self._clock.monotonic_us()
                    start_us = await load.register(store, spec, load.job_of(read_handler(spec.handler)), self._clock)
                    register_us = self._clock.monotonic_us() - begun_us
                    await quiesce(self._place)
                    window = await self._window(rig, start_us, gives_up=gives_up)
                if window.given_up:
                    await rig.kill()
        finally:
            await store.close()
        repeat = await self._judged(index, rig, window)
        repeat.figures["register_rate"] = spec.schedules * limits.SECOND_US / register_us
        return repeat

    async def _window(self, rig: Rig, start_us: Instant, *, gives_up: bool) -> Window:
        spec = self._spec
        window = Window(start_us=start_us, end_us=start_us + spec.duration_s * limits.SECOND_US)
        if self._clock.now_us() > start_us:
            raise InvalidRun("the store had not come to rest when the window should have begun")
        await rig.sleep_until(start_us - limits.SECOND_US)
        window.before = await read_work(self._place)
        stolen = cpu_clock()

        async def fire(sampler: Sampler) -> None:
            window.samples = sampler.samples
            while self._clock.now_us() < window.end_us:
                await rig.sleep_until(min(window.end_us, self._clock.now_us() + limits.SECOND_US))
                if gives_up and sampler.samples and sampler.samples[-1].oldest_us > _HOPELESS_US:
                    window.given_up = True
                    return

        async def close() -> None:
            await rig.until("all that was due is done", lambda: self._closed(rig, window))

        async def both(sampler: Sampler) -> None:
            if self._beside is None:
                await fire(sampler)
            else:
                await asyncio.gather(fire(sampler), self._beside.run(self._place, window.start_us, window.end_us))

        async with self._waits:
            await rig.phase("window", rig.sampled(both))
        if not window.given_up:
            await rig.phase("close", close())
            window.after = await read_work(self._place)
            window.log_bytes = log.bytes if (log := await read_log(self._place, window.before, window.after)) else None
        window.stolen_share = stolen_share(stolen, cpu_clock())
        return window

    @asynccontextmanager
    async def _profiled(self, rig: Rig) -> AsyncIterator[None]:
        """Profile nodes and executors, where that was asked for."""
        pids = {name: pid for name, pid in rig.pids.items() if name != "database"}
        async with AsyncExitStack() as stack:
            profilers = [await stack.enter_async_context(Profiler(pids, kind)) for kind in self._watch.profiles]
            yield
        for profiler in profilers:
            self._flames += profiler.flames
            self._profiles_failed += profiler.failed

    async def _closed(self, rig: Rig, window: Window) -> bool:
        due = f"SELECT count(*) FROM cursor WHERE due_us < {window.end_us}"  # noqa: S608 - a number of our own
        return await rig.store.number(due) == 0 and await rig.store.number("SELECT count(*) FROM entry") == 0

    async def _judged(self, index: int, rig: Rig, window: Window) -> Repeat:
        spec = self._spec
        since_us = window.start_us + spec.warmup_s * limits.SECOND_US
        # Requests have no schedule; their lateness is none of the load's.
        starts = (start for start in read_starts(rig.ledgers) if start.schedule_id)
        found = punctuality(
            starts, since_us=since_us, until_us=window.end_us, period_us=spec.period_s * limits.SECOND_US
        )
        missed = (await ask(self._place, ["fires_missed"], {}))["fires_missed"]
        repeat = Repeat(
            index=index,
            phases=rig.phases,
            figures={
                "starts": found.starts,
                "start_rate": found.starts / (spec.duration_s - spec.warmup_s),
                "on_time_share": found.on_time_share,
                "late_starts": found.starts - found.on_time,
                "missed": missed,
                **resources(window.samples),
            },
            distributions={"start_lag": found.lag.percentiles()},
            checks=await self._checks(rig, window),
            actual={
                **self._actual(rig, window),
                "lag_p99_by_time": [
                    (at_us, piece.percentiles().p99) for at_us, piece in sorted(found.lag_by_time.items())
                ],
            },
            objective=unmet(spec, found, missed=missed),
        )
        self._explain(repeat, rig, window)
        repeat.flames = self._flames
        repeat.notes += self._profiles_failed
        repeat.invalid += self._waits.lost
        if window.given_up:
            repeat.objective.append(f"backlog: something was due for over {_HOPELESS_US // limits.SECOND_US} s")
        if window.stolen_share > STOLEN_MAX:
            repeat.invalid.append(f"the hypervisor took {window.stolen_share:.0%} of the CPU time of the window")
        if spec.nodes > NODES_PROVEN:
            repeat.notes.append(f"{spec.nodes} nodes: unproven, measured only up to {NODES_PROVEN}")
        if self._beside:
            self._beside.fill(repeat)
        repeat.figures |= self._costs(window, repeat.figures)
        return repeat

    def _explain(self, repeat: Repeat, rig: Rig, window: Window) -> None:
        """Say what the load leaves free, or what is full, and how it went over time."""
        names = {pid: name for name, pid in rig.pids.items()}
        wall_clock_us = self._clock.now_us() - self._clock.monotonic_us()
        end_us = min(window.end_us, self._clock.now_us())
        load = Load(
            start_us=window.start_us,
            end_us=end_us,
            starts=read_starts(rig.ledgers),
            samples=window.samples,
            beats={names.get(pid, f"process {pid}"): beats for pid, beats in read_beats(rig.ledgers)},
            looks=rig.looks(),
            cores=os.cpu_count() or 1,
            wall_clock_us=wall_clock_us,
            waits=self._waits.between(window.start_us - wall_clock_us, end_us - wall_clock_us),
        )
        explained = load.explain()
        repeat.attribution = [explained] if explained else []
        if explained:
            repeat.stages_us = {stage.name: stage.exclusive_us for stage in explained.stages}
        repeat.series = load.series()

    async def _checks(self, rig: Rig, window: Window) -> list[Check]:
        spec = self._spec
        firing = spec.firing
        values: dict[str, int | str] = {
            "jobs": firing,
            "namespace": subject.NAMESPACE,
            "prefix": load.PREFIX,
            "start_us": window.start_us,
            "end_us": window.end_us,
            "fires": firing * spec.fires_each,
            "fires_each": spec.fires_each,
            "shards": spec.shards,
        }
        kind = self._beside.kind if self._beside else "steady-overrun" if window.given_up else "steady"
        own: Sequence[Check] = ()
        if self._beside:
            values |= self._beside.values()
            own = self._beside.checks()
        of_store = await check(self._place, kind, values)
        if not window.given_up:
            of_store += await effective(self._place, spec)
        return [*of_store, *own, *await reconciled(self._place, rig.ledgers, spec.shards)]

    def _actual(self, rig: Rig, window: Window) -> dict[str, object]:
        spec = self._spec
        return {
            **rig.actual,
            "schedules_that_fire": spec.firing,
            "fires_each": spec.fires_each,
            "rate": spec.rate,
            "nodes": sum(name.startswith("node") for name in rig.pids),
            "executors": sum(name.startswith("executor") for name in rig.pids),
            "busiest": _busiest(window.samples),
            "statements": statements_between(window.before, window.after),
            "samples": [msgspec.to_builtins(sample) for sample in thinned(window.samples)],
        }

    def _costs(self, window: Window, figures: dict[str, float]) -> dict[str, float]:
        """Return what one execution cost, of what was counted over the window."""
        if window.given_up or not window.samples:
            return {}
        fires = self._spec.firing * self._spec.fires_each
        seconds = (window.samples[-1].at_us - window.samples[0].at_us) / limits.SECOND_US
        costs = {
            f"{part}_cpu_us": figures[f"{part}_cores"] * seconds * limits.SECOND_US / fires
            for part in ("database", "node", "executor")
            if f"{part}_cores" in figures
        }
        if costs:
            costs["cpu_us"] = sum(costs.values())
        for name, before, after in (
            ("commits_per_execution", window.before.commits, window.after.commits),
            ("statements_per_execution", window.before.statements, window.after.statements),
        ):
            if before is not None and after is not None:
                costs[name] = (after - before) / fires
        if window.log_bytes is not None:
            costs["wal_bytes_per_execution"] = window.log_bytes / fires
        return costs


def _busiest(samples: Sequence[Sample]) -> dict[str, float]:
    """Return how much of a core each process used over a window."""
    if len(samples) <= SHORT_LOOKS:
        return {}
    first, last = samples[0], samples[-1]
    return {name: (last.cpu_us[name] - first.cpu_us[name]) / (last.at_us - first.at_us) for name in first.cpu_us}
