"""Polling while the shards come and go."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from luciole.gateway.flights import Flights
from luciole.gateway.hidden import Hidden
from luciole.gateway.holds import Holds
from luciole.gateway.jobs import JobShelf
from luciole.gateway.poller import Poller
from luciole.limits import SECOND_US
from luciole.model.ids import ExecutionKey, Shard
from luciole.model.instant import Instant
from luciole.model.job import JobSpec
from luciole.model.lease import Lease
from luciole.model.outbox import Entry, EntryState
from luciole.model.plan import ReadyBatch
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.memory import MemoryState, MemoryStore
from luciole.testing.clock import FakeClock
from luciole.testing.factories import an_entry

CRASH_US = 1_000 * SECOND_US
ENTRY = an_entry(ExecutionKey(0, 0, CRASH_US - 1, -1), state=EntryState.READY)


class SlowStore(MemoryStore):
    """Has one entry, and answers when it is let go."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(MemoryState(), clock, shards=4)
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def ready_entries(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> ReadyBatch:
        del shards, before_us, limit
        self.asked.set()
        await self.go.wait()
        return ReadyBatch(entries=(ENTRY,), next_due_us=None)


@dataclass
class Bench:
    """A poller over one shard whose former holder crashed, so that its first attempts are in doubt."""

    clock: FakeClock = field(default_factory=FakeClock)
    store: SlowStore = field(init=False)
    holds: Holds = field(init=False)
    jobs: JobShelf = field(init=False)
    seen: list[Entry] = field(default_factory=list)

    async def poller(self) -> Poller:
        self.store = SlowStore(self.clock)
        await self.store.open()
        await self.store.intern_jobs((JobSpec(handler="report"),))
        telemetry = Telemetry(self.clock)
        store_clock = StoreClock(clock=self.clock)
        store_clock.observe(CRASH_US + SECOND_US, sent_us=0, received_us=0)
        self.jobs = JobShelf(self.store, telemetry)
        self.holds = Holds(self.jobs, Flights())
        self.holds.open(self.lease(1), doubtful_before_us=CRASH_US, polled_from_us=0)
        self.holds.shards[0].complete = True
        return Poller(
            store=self.store,
            clock=self.clock,
            store_clock=store_clock,
            telemetry=telemetry,
            holds=self.holds,
            hidden=Hidden(store=self.store, telemetry=telemetry, holds=self.holds, jobs=self.jobs, sessions=lambda: ()),
            idle=lambda: False,
            trusted=lambda: [hold.lease for hold in self.holds.shards.values()],
            polled=self.look,
            add=lambda _: None,
            cancel=lambda _: None,
            wake=lambda: None,
        )

    def lease(self, fence: int) -> Lease:
        return Lease(shard=0, holder="a" * 16, fence=fence, expires_us=0)

    def look(self, entries: Iterable[Entry]) -> Collection[Entry]:
        self.seen += entries
        return ()


@pytest.mark.parametrize("given_up", [False, True])
async def test_a_doubt_ends_only_when_what_is_in_doubt_was_looked_at(*, given_up: bool) -> None:
    """Goal: a shard that is given up during a poll and taken again keeps the doubt about its first attempts.

    Two actors: a poll asks the store; meanwhile the lease runs out, so that the answer concerns nobody. Then the
    same node takes the shard again and goes on with it. Were the doubt gone, an attempt that may run in an executor of
    the crashed holder would be delivered a second time with its token.
    """
    # I6: one token goes to one session only.
    bench = Bench()
    poller = await bench.poller()
    tick = asyncio.create_task(poller.tick())
    await bench.store.asked.wait()
    if given_up:
        bench.holds.suspend([0], 0)
    bench.store.go.set()
    await tick
    if given_up:
        assert bench.holds.resume(bench.lease(2), CRASH_US)
    assert bench.seen == ([] if given_up else [ENTRY])
    assert bench.holds.shards[0].doubtful_before_us == (CRASH_US if given_up else None)
