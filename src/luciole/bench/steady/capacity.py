"""How many schedules hold the objective of the steady profile here, and what binds."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from luciole import limits
from luciole.bench.backends import Backend
from luciole.bench.ceiling.whole import measure_executions
from luciole.bench.objective import Clause, unmet_clauses
from luciole.bench.result import Repeat, Result
from luciole.bench.steady.measure import steady_repeat
from luciole.bench.steady.sampler import part_of
from luciole.bench.steady.search import Confirmation, Search
from luciole.bench.steady.spec import SteadySpec
from luciole.bench.verdict import InvalidRun
from luciole.runtime.clock import Clock
from luciole.runtime.extras import require

with require("bench"):
    import psutil

#: A resource that is used to this share is full.
_FULL = 0.85

#: What a step tells of its figures.
_TOLD = (
    "on_time_share",
    "cores",
    "node_cores",
    "database_cores",
    "executor_cores",
    "cpu_us",
    "node_cpu_us",
    "database_cpu_us",
    "executor_cpu_us",
    "open_max",
    "oldest_max_us",
    "commits_per_execution",
    "statements_per_execution",
    "wal_bytes_per_execution",
)


class CapacitySpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters, as requested."""

    start: int  #: schedules of the first step
    most: int  #: never more
    precision: float
    confirm_s: int  #: length of a window that confirms
    budget_s: int  #: the search ends then, with the bounds that it has
    goal: int = 0  #: fewer fail the run; 0: whatever comes out is fine


class CapacityMeasure:
    """Steps of the steady profile, each on a fresh store with fresh processes."""

    def __init__(
        self,
        spec: CapacitySpec,
        load: SteadySpec,
        backend: Backend,
        *,
        repeats: int,
        clock: Clock,
        progress: Callable[[str], None],
        slo: Sequence[Clause] = (),
    ) -> None:
        """Prepare it.

        Args:
            spec: of the search.
            load: of each step, but for its schedules and its length.
            backend: brings the stores; it is up.
            repeats: searches.
            clock: the time.
            progress: told what a person may want to know.
            slo: what each step must meet besides the objective of the steady profile.
        """
        self._repeats = repeats
        self._spec = spec
        self._load = load
        self._backend = backend
        self._clock = clock
        self._progress = progress
        self._slo = slo
        self._steps: list[dict[str, Any]] = []
        self._checks: Repeat | None = None

    async def __call__(self, result: Result) -> None:
        """Fill in repeats: each is a search of its own, and holds all its steps."""
        for index in range(self._repeats):
            self._steps, self._checks = [], None
            repeat = await self._find(index)
            repeat.figures["execution_ceiling_rate"] = await measure_executions(self._backend, self._clock)
            result.repeats.append(repeat)

    async def _find(self, index: int) -> Repeat:
        spec = self._spec
        search = Search(start=spec.start, most=spec.most, precision=spec.precision)
        begun_us = self._clock.monotonic_us()
        met: Repeat | None = None
        unmet: Repeat | None = None
        notes: list[str] = []
        while (amount := search.next()) is not None:
            if self._clock.monotonic_us() - begun_us > spec.budget_s * limits.SECOND_US:
                notes.append(f"the search ended after {spec.budget_s} s, between {search.met:,} and {search.failed:,}")
                break
            step = await self._step("search", amount, self._load.duration_s)
            search.note(amount, met=not step.objective)
            if step.objective:
                unmet = step
            else:
                met = step
        if met is None:
            raise InvalidRun(f"not even {search.failed:,} schedules hold the objective: there is no capacity to find")
        confirmation = Confirmation(amount=search.met)
        while (amount := confirmation.next()) is not None:
            step = await self._step("confirm", amount, spec.confirm_s)
            confirmation.note(amount, met=not step.objective)
            if step.objective:
                unmet = step
            else:
                met = step
        if confirmation.amount < search.met:
            notes.append(f"short windows met {search.met:,} schedules, which longer ones did not confirm")
        return self._repeat(index, confirmation.met, met, unmet, notes)

    async def _step(self, why: str, schedules: int, duration_s: int) -> Repeat:
        load = msgspec.structs.replace(self._load, schedules=schedules, duration_s=duration_s)
        load.check()
        repeat = await steady_repeat(len(self._steps), load, self._backend, self._clock, self._progress, gives_up=True)
        repeat.objective += unmet_clauses(self._slo, repeat)
        lag = repeat.distributions["start_lag"]
        self._steps.append(
            {
                "why": why,
                "schedules": schedules,
                "rate": load.rate,
                "met": not repeat.objective,
                "clauses": repeat.objective,
                "start_lag_p50_us": lag.p50,
                "start_lag_p99_us": lag.p99,
                "start_lag_max_us": lag.max,
                **{name: repeat.figures[name] for name in _TOLD if name in repeat.figures},
            }
        )
        bad = [check for check in repeat.checks if not check.passed]
        if bad or repeat.invalid:
            names = ", ".join(f"{check.name} is {check.found}" for check in bad)
            self._progress(f"{schedules:,} schedules: {names or '; '.join(repeat.invalid)}")
        self._checks = repeat if self._checks is None else _joined(self._checks, repeat)
        return repeat

    def _repeat(self, index: int, confirmed: int, met: Repeat, unmet: Repeat | None, notes: list[str]) -> Repeat:
        assert self._checks is not None
        binds = binding(met, unmet, cores=psutil.cpu_count() or 1)
        self._progress(binds)
        objective = []
        if confirmed < max(1, self._spec.goal):
            objective.append(f"capacity: {confirmed:,} schedules were confirmed; the goal is {self._spec.goal:,}")
        return Repeat(
            index=index,
            figures={
                **met.figures,
                "capacity": confirmed,
                "capacity_rate": confirmed / self._load.period_s,
            },
            distributions=met.distributions,
            attribution=(unmet or met).attribution or met.attribution,
            series=met.series,
            checks=self._checks.checks,
            invalid=self._checks.invalid,
            objective=objective,
            actual={"steps": self._steps, "binds": binds, **{k: v for k, v in met.actual.items() if k != "samples"}},
            notes=[binds, *notes],
        )


def binding(met: Repeat, unmet: Repeat | None, *, cores: int) -> str:
    """Return the sentence that names the clause that failed first, and the resource that was full then."""
    if unmet is None:
        return "nothing bound: the most that was asked for was met"
    figures = unmet.figures if "cores" in unmet.figures else met.figures
    processes = {name: value for name, value in unmet.actual.get("busiest", {}).items() if value > _FULL}
    used = figures.get("cores", 0.0)
    if used > _FULL * cores:
        parts = ", ".join(
            f"{part} {figures[f'{part}_cores']:.2f}"
            for part in ("node", "database", "executor")
            if f"{part}_cores" in figures
        )
        full = f"the {cores} cores of this machine are full ({parts})"
    elif processes:
        name = max(processes, key=lambda one: processes[one])
        full = f"the interpreter of the {part_of(name)} is full ({processes[name]:.2f} of one core)"
    else:
        full = f"nothing is full: {used:.2f} of {cores} cores are used, so parts wait for each other"
    return f"binds: {unmet.objective[0].split(':')[0]}; {full}"


def _joined(one: Repeat, other: Repeat) -> Repeat:
    """Return the worse of each check of two steps, and what made either invalid."""
    checks = {check.name: check for check in one.checks}
    for check in other.checks:
        if check.name not in checks or not check.passed:
            checks[check.name] = check
    return Repeat(index=0, checks=list(checks.values()), invalid=[*one.invalid, *other.invalid])
