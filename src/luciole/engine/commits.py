"""Commits of planned work: what must happen around each, whatever is committed."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from luciole.errors import Fatal, FenceError, StoreUnavailable, Unavailable
from luciole.model.ids import Shard
from luciole.model.lease import Lease
from luciole.model.outbox import Entry
from luciole.runtime.probe import Probe, Stage
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry

#: What the gateway wants back with the entries of a chunk; nobody here looks inside.
Opening: TypeAlias = object


class Trusted(Protocol):
    """What a planner asks of whoever holds its leases."""

    def trusted(self) -> tuple[Lease, ...]:
        """Return the leases that may be written under right now, ordered by shard."""
        ...

    def forget(self, shards: Iterable[Shard]) -> None:
        """Forget leases that the store refused."""
        ...


class Committed(Protocol):
    """What every outcome says."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries to hold in memory."""
        ...

    @property
    def created(self) -> int:
        """How many executions were created."""
        ...

    @property
    def refused(self) -> frozenset[Shard]:
        """The shards whose fence was refused."""
        ...


OutcomeT = TypeVar("OutcomeT", bound=Committed)


@dataclass(slots=True, kw_only=True)
class Commits:
    """Hands what a commit made durable to the gateway, and its doubts to whoever recovers from them."""

    leases: Trusted
    store_clock: StoreClock
    telemetry: Telemetry
    begin: Callable[[], Opening]
    deliver: Callable[[Opening, Sequence[Entry]], None]
    recover: Callable[[Iterable[Shard]], None]
    progress: Callable[[], None]
    probe: Probe | None

    async def run(self, verb: str, shards: Sequence[Shard], write: Awaitable[OutcomeT]) -> OutcomeT:
        """Await one guarded write of these shards, and do all that follows from its outcome."""
        opening = self.begin()
        entries: Sequence[Entry] = ()
        try:
            outcome = await self.telemetry.timed(verb, write)
            entries = outcome.entries
        except (StoreUnavailable, FenceError):
            raise  # Nothing was written.
        except (Unavailable, Fatal, asyncio.CancelledError):
            self.recover(shards)
            raise
        finally:
            self.deliver(opening, entries)
        self.progress()
        self._note(outcome)
        return outcome

    def _note(self, outcome: Committed) -> None:
        now_us = self.store_clock.now_us()
        self.telemetry.count("fired", outcome.created)
        for due_us, times in Counter(entry.due_us for entry in outcome.entries).items():
            self.telemetry.note("fire_lag", max(0, now_us - due_us), times)
        if self.probe is not None:
            self.probe.stamp(Stage.COMMIT, [entry.key for entry in outcome.entries], now_us)
        if outcome.refused:
            self.telemetry.count("plans_refused_stale", len(outcome.refused))
            self.leases.forget(outcome.refused)  # Their new holder plans them from here on.
