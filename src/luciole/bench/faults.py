"""Faults that exist only when they are asked for: how the bench shows that it can fail.

A process of the bench looks at one variable of its environment when it starts. Without it the product is measured as
it is: nothing stands between it and the bench, and this module does nothing.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event
from typing import Any, Literal, TypeVar, cast, get_args

from luciole import limits
from luciole.bench.burst.load import NAMESPACE, PREFIX
from luciole.bench.verdict import Usage
from luciole.model.ids import Shard
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.outbox import Settled, Settlement
from luciole.model.plan import Plan, PlanOutcome
from luciole.model.stride import Stride, StrideOutcome
from luciole.runtime.clock import SystemClock
from luciole.store.spi import Store

#: The variable that names the fault.
VARIABLE = "LUCIOLE_BENCH_FAULT"

Fault = Literal[
    "slow-step",
    "slow-batch",
    "statement-per-job",
    "commit-per-job",
    "doubled-dispatch",
    "dropped-job",
    "unmoved-cursor",
    "stale-fence-accepted",
    "starved-generator",
    "lost-sampler",
]

#: How long what is slow takes longer.
SLOW_US = 10 * limits.MS_US

#: How late a starved generator wakes up.
STARVED_US = 400 * limits.MS_US

#: The step of the micro layer that is slow.
SLOW_STEP = "digest_4k_us"

OutcomeT = TypeVar("OutcomeT", PlanOutcome, StrideOutcome)


def asked() -> Fault | None:
    """Return the fault that this process was asked for; None: none.

    Raises:
        Usage: there is none of that name.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return None
    if name not in get_args(Fault):
        raise Usage(f"{VARIABLE}: {name!r} is no fault; there are {', '.join(get_args(Fault))}")
    return cast("Fault", name)


def around(store: Store) -> Store:
    """Return the store with the fault that was asked for, or the store itself."""
    fault = asked()
    return store if fault is None else cast("Store", FaultyStore(store, fault))


def slow_step(name: str, step: Callable[[], int]) -> Callable[[], int]:
    """Return a step of the micro layer, slowed down when that was asked for."""
    if asked() != "slow-step" or name != SLOW_STEP:
        return step
    never = Event()

    def slow() -> int:
        never.wait(SLOW_US / limits.SECOND_US)
        return step()

    return slow


def fail_look() -> None:
    """Fail as a sampler does whose source is gone, when that was asked for.

    Raises:
        OSError: it was.
    """
    if asked() == "lost-sampler":
        raise OSError("its source is gone, on purpose")


def clock() -> SystemClock:
    """Return the clock of a process that opens a gate at an instant: one that oversleeps when that was asked for."""
    return OversleepingClock() if asked() == "starved-generator" else SystemClock()


class OversleepingClock(SystemClock):
    """A clock whose process gets no CPU when it is due."""

    async def sleep(self, duration_us: int) -> None:
        """Sleep longer than was asked for."""
        await super().sleep(duration_us + STARVED_US if duration_us > 0 else duration_us)


class FaultyStore:
    """A store that commits as the fault has it; all else passes through."""

    def __init__(self, store: Store, fault: Fault) -> None:
        self._store = store
        self._fault = fault
        self._clock = SystemClock()
        self._fences: dict[Shard, Lease] = {}
        self._warmed = False  #: the throw-away jobs are settled
        self._done = False  #: a fault that happens once has happened
        self._fired_us: Instant | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the store has it
        return getattr(self._store, name)

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        """Commit a chunk."""
        await self._before()
        self._fences |= {lease.shard: self._current(lease) for lease in plan.leases}
        if self._fault == "stale-fence-accepted":
            plan = replace(plan, leases=tuple(self._current(lease) for lease in plan.leases))
        return await self._after(await self._store.commit_plan(plan))

    async def commit_stride(self, stride: Stride) -> StrideOutcome:
        """Commit a stride."""
        await self._before()
        self._fences |= {lease.shard: self._current(lease) for lease in stride.leases}
        return await self._after(await self._store.commit_stride(stride))

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Settle; the first time, that is the end of the warm-up."""
        self._warmed = True
        return await self._store.settle(settlements)

    async def close(self) -> None:
        """Close the store, after a cursor was put back to where it stood when that was asked for."""
        if self._fault == "unmoved-cursor" and self._fired_us is not None:
            await self._store.reschedule(NAMESPACE, f"{PREFIX}0000000", self._fired_us)
        await self._store.close()

    async def _before(self) -> None:
        if self._fault == "slow-batch":
            await self._clock.sleep(SLOW_US)

    async def _after(self, outcome: OutcomeT) -> OutcomeT:
        if outcome.entries:
            self._fired_us = outcome.entries[-1].due_us
        for _ in range(outcome.created):
            if self._fault == "statement-per-job":
                await self._store.now_us()
            elif self._fault == "commit-per-job":
                await self._store.take_ids(1)
        if not self._in_burst(outcome):
            return outcome
        self._done = True
        if self._fault == "doubled-dispatch":
            return replace(outcome, entries=(*outcome.entries, outcome.entries[0]))
        if self._fault == "dropped-job":
            return replace(outcome, entries=outcome.entries[1:])
        return outcome

    def _in_burst(self, outcome: PlanOutcome | StrideOutcome) -> bool:
        """Return whether a fault that happens once may happen now: with a chunk after the warm-up."""
        return not self._done and self._warmed and bool(outcome.entries)

    def _current(self, lease: Lease) -> Lease:
        """Return a lease with the fence that counts now, as a store without a guard would take any."""
        return max(lease, self._fences.get(lease.shard, lease), key=lambda one: one.fence)
