"""The backlog profile as a run: fire times pass while no node runs, then nodes come."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import msgspec

from luciole import limits
from luciole.bench.backends import Place
from luciole.bench.ceiling.whole import measure_executions
from luciole.bench.check import Values, check
from luciole.bench.fresh import FreshRepeats
from luciole.bench.percentiles import Distribution
from luciole.bench.result import Repeat
from luciole.bench.steady import subject
from luciole.bench.steady.ledger import Start, read_starts, reconciled
from luciole.bench.steady.load import declare_in_chunks
from luciole.bench.steady.rig import Rig, Size
from luciole.bench.steady.sampler import Sampler, resources
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import InvalidRun
from luciole.bench.work import prepare_counting, quiesce
from luciole.model.instant import Instant, to_datetime
from luciole.model.schedule import Policy
from luciole.model.trigger import every
from luciole.runtime.clock import Clock
from luciole.service.schedules import Declaration, read_policy
from luciole.store.spi import Store

#: Fire times that each overdue schedule has missed, one after another.
MISSED_EACH = 10
_MISSED_PERIOD_US = limits.SECOND_US

#: A fire later than this counts as missed; the nodes come later than that.
_MISFIRE_AFTER = "1s"

#: How many missed fires run late under `catch_up`.
CAUGHT_EACH = 3

_POLICIES = ("once", "skip", "catch")

#: New fires come evenly; each schedule of them once in this time.
_FRESH_PERIOD_S = 10

_PREFIX = "overdue-"
_MARGIN_US = 5 * limits.SECOND_US
_PATIENCE_US = 300 * limits.SECOND_US


class BacklogSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters, as requested."""

    overdue: int  #: schedules, in equal parts under the three misfire policies
    fresh_rate: int  #: fires a second that become due from the start of the nodes on
    fresh_s: int  #: for so long; whole periods of 10 s
    nodes: int = 1
    executors: int = 1
    slots: int = 2_000
    shards: int = 32

    def of_policy(self, number: int) -> int:
        """Return how many overdue schedules have a policy."""
        return len(range(number, self.overdue, len(_POLICIES)))


class BacklogMeasure(FreshRepeats[BacklogSpec]):
    """Each repeat on a fresh store with fresh processes."""

    def _line(self, repeat: Repeat) -> str:
        lag = repeat.distributions["fresh_lag"]
        return (
            f"caught up after {repeat.figures['catch_up_us'] / limits.SECOND_US:.1f} s, new fires meanwhile "
            f"p99 {lag.p99 / limits.MS_US:,.0f} ms"
        )

    async def _ceilings(self) -> Mapping[str, float]:
        rate = await measure_executions(self._backend, self._clock)
        runs = self._spec.of_policy(0) + self._spec.of_policy(2) * CAUGHT_EACH
        return {
            "late_runs_ceiling_rate": rate,
            # Those that do not run cost the server next to nothing: they come with the others.
            "decided_ceiling_rate": rate * self._spec.overdue * MISSED_EACH / runs,
        }

    async def _repeat(self, index: int, place: Place, folder: Path) -> Repeat:
        one = BacklogRepeat(self._spec, place, folder, self._backend.folder, clock=self._clock)
        return await one.run(index)


class BacklogRepeat:
    """One repeat."""

    def __init__(self, spec: BacklogSpec, place: Place, folder: Path, data_folder: Path, *, clock: Clock) -> None:
        self._spec = spec
        self._place = place
        self._folder = folder
        self._data_folder = data_folder
        self._clock = clock

    async def run(self, index: int) -> Repeat:
        """Run it all and judge it."""
        spec = self._spec
        size = Size(nodes=spec.nodes, executors=spec.executors, slots=spec.slots, shards=spec.shards)
        store = await open_fresh(self._place, shards=spec.shards)
        try:
            async with Rig(self._place, self._folder, self._data_folder, size, self._clock) as rig:
                await prepare_counting(self._place)
                await rig.phase("register", self._register(store))
                await rig.sleep_until(self._back_us)
                sampler = Sampler({}, rig.store, self._data_folder, self._clock)
                await rig.phase("start", rig.start())
                ready_us = self._clock.now_us()

                async def all_done(looking: Sampler) -> None:
                    nonlocal sampler
                    sampler = looking
                    await rig.until("the backlog is worked off", lambda: self._caught_up(rig), patience_us=_PATIENCE_US)
                    self._caught_up_us = self._clock.now_us()
                    self._looks = len(looking.samples)  # What follows is only the rest of the new fires.
                    await rig.until("all is done", lambda: self._closed(rig), patience_us=_PATIENCE_US)

                await rig.phase("catch_up", rig.sampled(all_done))
                fresh = set(await rig.store.numbers("SELECT schedule_id FROM schedule WHERE name LIKE 'fresh-%'"))
        finally:
            await store.close()
        starts = list(read_starts(rig.ledgers))
        took_us = self._caught_up_us - self._back_us
        caught = [start for start in starts if start.schedule_id not in fresh]
        return Repeat(
            index=index,
            phases=rig.phases,
            figures={
                "catch_up_us": took_us,
                "ready_us": ready_us - self._back_us,
                "decided_rate": spec.overdue * MISSED_EACH * limits.SECOND_US / took_us,
                "late_runs_rate": len(caught) * limits.SECOND_US / took_us,
                **resources(sampler.samples[: self._looks]),
            },
            distributions={"fresh_lag": self._lag(starts, fresh, ready_us).percentiles()},
            checks=[
                *await check(self._place, "backlog", self._values()),
                *await reconciled(self._place, rig.ledgers, spec.shards),
            ],
            actual={
                **rig.actual,
                "fire_times_missed": spec.overdue * MISSED_EACH,
                "late_runs": len(caught),
                "samples": [msgspec.to_builtins(sample) for sample in sampler.samples],
            },
        )

    async def _register(self, store: Store) -> None:
        """Register what will be overdue, and what becomes due once the nodes come."""
        spec = self._spec
        begun_us = self._clock.monotonic_us()
        still = every(timedelta(seconds=1), start=to_datetime(await store.now_us() + limits.DAY_US))
        job = subject.noop.bind().spec
        probe = (Declaration(name=f"still-{number:07d}", job=job, trigger=still) for number in range(2_000))
        await declare_in_chunks(store, probe)
        took_us = (self._clock.monotonic_us() - begun_us) / 2_000
        count = spec.overdue + spec.fresh_rate * _FRESH_PERIOD_S
        wanted_us = await store.now_us() + round(2 * took_us * count) + _MARGIN_US
        missed_us = -(-wanted_us // limits.SECOND_US) * limits.SECOND_US
        self._back_us = missed_us + MISSED_EACH * _MISSED_PERIOD_US + 2 * limits.SECOND_US
        await declare_in_chunks(store, self._overdue(missed_us))
        await declare_in_chunks(store, self._fresh(self._back_us))
        if await store.now_us() > missed_us:
            raise InvalidRun("the load was not registered when its fire times began; is something else running?")
        await quiesce(self._place)

    def _overdue(self, missed_us: Instant) -> Iterator[Declaration]:
        job = subject.noop.bind().spec
        trigger = every(
            timedelta(microseconds=_MISSED_PERIOD_US),
            anchor=to_datetime(missed_us),
            start=to_datetime(missed_us),
            end=to_datetime(missed_us + MISSED_EACH * _MISSED_PERIOD_US - 1),
        )
        policies = {
            "once": read_policy(misfire="fire_once", misfire_after=_MISFIRE_AFTER),
            "skip": read_policy(misfire="skip", misfire_after=_MISFIRE_AFTER),
            "catch": read_policy(
                misfire="catch_up", misfire_after=_MISFIRE_AFTER, catch_up=CAUGHT_EACH, overlap="allow"
            ),
        }
        for number in range(self._spec.overdue):
            word = _POLICIES[number % len(_POLICIES)]
            yield Declaration(name=f"{_PREFIX}{word}-{number:07d}", job=job, trigger=trigger, policy=policies[word])

    def _fresh(self, from_us: Instant) -> Iterator[Declaration]:
        spec = self._spec
        job = subject.noop.bind().spec
        count = spec.fresh_rate * _FRESH_PERIOD_S
        end = to_datetime(from_us + spec.fresh_s * limits.SECOND_US - 1)
        for number in range(count):
            first = to_datetime(from_us + number * _FRESH_PERIOD_S * limits.SECOND_US // count)
            trigger = every(timedelta(seconds=_FRESH_PERIOD_S), anchor=first, start=first, end=end)
            # They may run as late as the backlog makes them: none of them is missed.
            yield Declaration(
                name=f"fresh-{number:07d}",
                job=job,
                trigger=trigger,
                policy=Policy(misfire_after_us=limits.HOUR_US, overlap=read_policy(overlap="allow").overlap),
            )

    async def _caught_up(self, rig: Rig) -> bool:
        """Whether nothing is overdue any more, neither planned nor run."""
        now_us = self._clock.now_us() - limits.SECOND_US
        due = f"SELECT count(*) FROM cursor WHERE due_us < {now_us}"  # noqa: S608 - a number of our own
        late = f"SELECT count(*) FROM entry WHERE due_us < {now_us}"  # noqa: S608 - same
        return await rig.store.number(due) == 0 and await rig.store.number(late) == 0

    async def _closed(self, rig: Rig) -> bool:
        end_us = self._back_us + self._spec.fresh_s * limits.SECOND_US
        if self._clock.now_us() < end_us:
            return False
        due = f"SELECT count(*) FROM cursor WHERE due_us < {end_us}"  # noqa: S608 - a number of our own
        return await rig.store.number(due) == 0 and await rig.store.number("SELECT count(*) FROM entry") == 0

    def _lag(self, starts: list[Start], fresh: set[int], ready_us: Instant) -> Distribution:
        lag = Distribution()
        for start in starts:
            if start.schedule_id in fresh and ready_us <= start.due_us <= self._caught_up_us:
                lag.add(start.started_us - start.due_us)
        return lag

    def _values(self) -> Values:
        spec = self._spec
        fresh = spec.fresh_rate * spec.fresh_s
        return {
            "namespace": subject.NAMESPACE,
            "prefix": _PREFIX,
            "fires": spec.overdue * MISSED_EACH + fresh,
            "fires_each": MISSED_EACH,
            "end_us": self._back_us + spec.fresh_s * limits.SECOND_US,
            "shards": spec.shards,
            "once": spec.of_policy(0),
            "caught": spec.of_policy(2) * CAUGHT_EACH,
            "fresh": fresh,
        }
