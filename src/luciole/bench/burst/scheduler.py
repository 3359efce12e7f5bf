"""One scheduler of a burst: the engine's planner over the product's store, behind a gate.

Run as `python -m luciole.bench.burst.scheduler`; the coordinator speaks to it line by line.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import msgspec

from luciole import limits
from luciole.bench import faults
from luciole.bench.attribution.traces import Ways
from luciole.bench.attribution.watching import Watching
from luciole.bench.burst.spec import BurstSpec, Closed, Drained, SchedulerOrders
from luciole.bench.cpu import own_cpu_us, own_written_bytes
from luciole.bench.loops import run_here
from luciole.bench.percentiles import Distribution
from luciole.bench.processes import Message, answer_lines
from luciole.bench.spans import Spans
from luciole.bench.stores import make_store
from luciole.bench.verdict import InvalidRun, Usage
from luciole.engine.planner import Planner
from luciole.model.execution import ExecutionState
from luciole.model.ids import Shard
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.outbox import AttemptOutcome, Delivery, Entry, Settled, Settlement
from luciole.model.plan import DueBatch, Plan, PlanOutcome
from luciole.model.planning import plan_tick
from luciole.model.stride import StrideOutcome
from luciole.runtime.chance import new_process_id, system_chance
from luciole.runtime.loop import Loop
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.capabilities import Capabilities
from luciole.store.spi import Store

_CLOCK_LOOKS = 8

#: Where the time of a drain goes; the first that is under way has it.
STAGES = ("commit_stride", "commit_plan", "load_triggers", "due_groups", "due_cursors")


#: The least chunks of each scheduler that the disturbances of `flap` fall between.
_FLAP_CHUNKS = 64

#: The verbs that create executions.
COMMITS = ("commit_stride", "commit_plan")


class _Chunk(NamedTuple):
    """What is kept of a chunk's outcome."""

    created: int
    skipped: int
    lost: int
    refused: int
    entries: int


def _chunk(outcome: PlanOutcome) -> _Chunk:
    return _Chunk(outcome.created, outcome.skipped, len(outcome.lost), len(outcome.refused), len(outcome.entries))


def _stride(outcome: StrideOutcome) -> _Chunk:
    return _Chunk(outcome.created, 0, outcome.left, len(outcome.refused), len(outcome.entries))


def _due_count(batch: DueBatch) -> int:
    return len(batch.cursors)


_KEPT: dict[str, Callable[[Any], Any]] = {
    "commit_plan": _chunk,
    "commit_stride": _stride,
    "due_groups": lambda batch: len(batch.groups),
    "load_triggers": len,
    "due_cursors": _due_count,
    "settle": len,
}


@dataclass(slots=True)
class GrantedLeases:
    """Leases that the coordinator took and handed out; in contention several schedulers share them.

    No deadline of a holder's own is checked here, and a zombie's leases are not even forgotten when the store refuses
    them: the test hook that leaves the fence alone between two holders.
    """

    held: dict[Shard, Lease]
    zombie: bool = False

    def trusted(self) -> tuple[Lease, ...]:
        """Return the leases that no write has been refused under."""
        return tuple(self.held.values())

    def forget(self, shards: Iterable[Shard]) -> None:
        """Forget leases that the store refused."""
        for shard in () if self.zombie else shards:
            self.held.pop(shard, None)


class _BoundedStore:
    """A store that takes smaller chunks, or fewer at once, than it could."""

    def __init__(self, store: Store, capabilities: Capabilities) -> None:
        self._store = store
        self.capabilities = capabilities

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


class Scheduler:
    """What the coordinator's verbs do here."""

    def __init__(self) -> None:
        self._clock = faults.clock()
        self._spans = Spans(self._clock)
        self._watching = Watching(self._clock)
        self._ways = Ways()
        self._store_clock = StoreClock(clock=self._clock)
        self._executor_id = new_process_id()
        self._entries: list[Entry] = []
        self._held: dict[Shard, int] = {}
        self._fire_lag = Distribution()
        self._loop: Loop | None = None
        self._running: asyncio.Task[None] | None = None
        self._unknown: set[Shard] = set()  #: shards that may have entries which this process has never seen

    async def open(self, **orders: object) -> Message:
        """Open the store, calibrate its clock and build the planner; answer with what is read back."""
        told = msgspec.convert(orders, SchedulerOrders)
        self._spec = told.spec
        self._plain = make_store(told.place, steps=self._watching.log, pool=told.spec.pool)
        await self._plain.open()
        for _ in range(_CLOCK_LOOKS):
            sent_us = self._clock.monotonic_us()
            store_us = await self._plain.now_us()
            self._store_clock.observe(store_us, sent_us=sent_us, received_us=self._clock.monotonic_us())
        self._store = self._spans.around(_bounded(self._plain, told.spec), _KEPT)
        self._leases = GrantedLeases({lease.shard: lease for lease in told.leases}, zombie=told.zombie)
        self._planner = Planner(
            store=self._store,
            leases=self._leases,
            store_clock=self._store_clock,
            telemetry=Telemetry(self._clock),
            begin=lambda: None,
            deliver=lambda _, entries: self._take(entries),
            steps=self._watching.log,
            room=lambda shard: limits.HELD_MAX - self._held.get(shard, 0),
            recover=self._recover,
            progress=lambda: None,
            plan_ahead_us=0,  # Until the burst: the throw-away jobs are due at once.
            batch_min=told.spec.batch or (1 if told.spec.path == "single" else limits.PLAN_BATCH_MIN),
        )
        capabilities = self._store.capabilities
        asked = {name: value for name, value in msgspec.to_builtins(told.spec).items() if value is not None}
        return {
            **asked,
            "shards": self._plain.shards,
            "leases": len(told.leases),
            "batch": self._planner.batch_min,
            "batch_max": capabilities.plan_batch_max,
            "connections": capabilities.plan_connections,
            "loop": type(asyncio.get_running_loop()).__module__.partition(".")[0],
        }

    async def warm_up(self) -> Message:
        """Plan and settle what is due, so that pools and statements are ready."""
        await self._drain()
        closed = await self.close_outbox()
        self._spans.clear()
        self._ways = Ways()
        self._fire_lag = Distribution()
        return {"settled": closed["settled"]}

    async def send_stale(self, at_us: Instant, moves: int) -> Message:
        """Send moves under outdated fences, before the instant; answer how many, and how many were accepted."""
        leases = self._leases.trusted()
        due = await self._plain.due_cursors([lease.shard for lease in leases], at_us, limit=moves)
        triggers = await self._planner.triggers.load(
            self._plain, Telemetry(self._clock), {cursor.trigger_id for cursor in due.cursors}
        )
        tick = plan_tick(
            due.cursors,
            now_us=at_us,
            horizon_us=at_us,
            triggers=triggers,
            next_fire=self._planner.triggers.memo.next_us,
        )
        shards = {move.cursor.shard for move in tick.moves}
        stale = tuple(replace(lease, fence=lease.fence - 1) for lease in leases if lease.shard in shards)
        outcome = await self._plain.commit_plan(Plan(moves=tick.moves, leases=stale))
        return {"attempted": len(tick.moves), "accepted": outcome.created, "refused_shards": len(outcome.refused)}

    async def drain(self, at_us: Instant) -> Message:
        """Open the gate at the instant and plan until nothing is due."""
        await self._wait_for(at_us)
        cpu_us = own_cpu_us()
        gate_us = self._store_clock.now_us()
        self._watch(at_us)
        await self._drain()
        return await self._drained(at_us, gate_us=gate_us, cpu_us=own_cpu_us() - cpu_us)

    async def begin(self, at_us: Instant) -> Message:
        """Let the product's plan loop run: at once when the start is warm, else from the instant on."""
        self._planner.plan_ahead_us = self._spec.plan_ahead_us
        self._loop = Loop(name="plan", tick=self._planner.tick, clock=self._clock, chance=system_chance())
        self._begun_cpu_us = own_cpu_us()
        self._gate_us = at_us
        self._watch(at_us)
        self._running = asyncio.create_task(self._run(self._loop, at_us))
        return {}

    async def progress(self) -> Message:
        """Answer how many entries of the burst this process has had from its commits."""
        return {"created": len(self._entries)}

    async def grant(self, leases: Sequence[Message]) -> Message:
        """Take shards over from another holder: plan them, and find what it had in memory in the store."""
        for lease in msgspec.convert(leases, list[Lease]):
            self._leases.held[lease.shard] = lease
            self._unknown.add(lease.shard)
        if self._loop:
            self._loop.poke()
        return {}

    async def finish(self, at_us: Instant, shards: Sequence[Shard]) -> Message:
        """Stop the plan loop; keep the entries of these shards, which are this process's in the end."""
        assert self._loop
        assert self._running
        self._loop.stop()
        await self._running
        drained = await self._drained(at_us, gate_us=self._gate_us, cpu_us=own_cpu_us() - self._begun_cpu_us)
        kept = set(shards) - self._unknown
        self._entries = [entry for entry in self._entries if entry.key.shard in kept]
        for shard in sorted(self._unknown & set(shards)):
            self._entries += await self._load(shard)
        return drained

    async def send_stale_deliveries(self, moves: int) -> Message:
        """Try to record deliveries of what others planned, under leases that are not this process's any more."""
        leases = self._leases.trusted()
        entries = await self._plain.open_entries([lease.shard for lease in leases], after=None, limit=moves)
        deliveries = [
            Delivery(entry.key, entry.attempt, self._executor_id, self._store_clock.now_us()) for entry in entries
        ]
        accepted = await self._plain.record_deliveries(leases, deliveries)
        return {"attempted": len(deliveries), "accepted": len(accepted)}

    async def _wait_for(self, at_us: Instant) -> None:
        """Wait for an instant of the store's clock; the last moment is spent awake, since a timer may oversleep."""
        await self._clock.sleep(self._store_clock.until_us(at_us) - 20 * limits.MS_US)
        while self._store_clock.until_us(at_us) > 0:
            await self._clock.sleep(0)

    async def _run(self, loop: Loop, at_us: Instant) -> None:
        if self._spec.start == "cold":
            await self._wait_for(at_us)
            self._gate_us = self._store_clock.now_us()
            self._watch(at_us)
        await loop.run()

    def _watch(self, at_us: Instant) -> None:
        assert self._store_clock.offset_us is not None
        self._ways.due_us = at_us - self._store_clock.offset_us
        self._watching.begin()

    async def _drained(self, at_us: Instant, *, gate_us: Instant, cpu_us: int) -> Message:
        offset_us = self._store_clock.offset_us
        assert offset_us is not None
        chunks = [span for span in self._spans.calls if span.verb in COMMITS]
        outcomes: list[_Chunk] = [span.note for span in chunks]
        decide_lag, commit_time = Distribution(), Distribution()
        for span in chunks:
            commit_time.add(span.ended_us - span.begun_us)
            decide_lag.add(span.begun_us + offset_us - at_us, span.note.created)
        opens_us = at_us - self._spec.plan_ahead_us
        commits_us = [span.ended_us + offset_us for span in chunks if span.note.created] or [opens_us]
        told = await self._watching.end(
            self._spans.calls, STAGES, begun_us=opens_us - offset_us, ended_us=max(commits_us) - offset_us
        )
        told.done = [(span.ended_us, span.note.created) for span in chunks]
        drained = Drained(
            created=sum(outcome.created for outcome in outcomes),
            skipped=sum(outcome.skipped for outcome in outcomes),
            lost=sum(outcome.lost for outcome in outcomes),
            refused=sum(outcome.refused for outcome in outcomes),
            entries=sum(outcome.entries for outcome in outcomes),
            chunks=len(chunks),
            gate_us=gate_us,
            first_commit_us=min(commits_us),
            last_commit_us=max(commits_us),
            cpu_us=cpu_us,
            fire_lag=self._fire_lag.percentiles(),
            decide_lag=decide_lag.percentiles(),
            commit_time=commit_time.percentiles(),
            told=told,
            verbs={verb: sum(span.verb == verb for span in self._spans.calls) for verb in STAGES},
            errors=self._loop.errors if self._loop else 0,
        )
        return msgspec.to_builtins(drained)  # type: ignore[no-any-return] # a struct becomes a dict

    async def _load(self, shard: Shard) -> list[Entry]:
        """Return the open entries of a shard, as its new holder reads them."""
        found: list[Entry] = []
        while True:
            page = await self._plain.open_entries(
                [shard], after=found[-1].key if found else None, limit=limits.PAGE_MAX
            )
            found += page
            if len(page) < limits.PAGE_MAX:
                return found

    def _recover(self, shards: Iterable[Shard]) -> None:
        if self._spec.topology != "flap":
            _fail_recovery(shards)
        self._unknown |= set(shards)

    async def close_outbox(self) -> Message:
        """Settle every entry that was delivered here, then what the store kept READY, with concurrent reporters."""
        begun_us, cpu_us = self._clock.monotonic_us(), own_cpu_us()
        self._spans.clear()
        self._watching.begin()
        lag = Distribution()
        answers: list[Settled] = []
        entries, self._entries = self._entries, []
        looked = False
        while entries or not looked:
            looked = True
            self._held.clear()
            batches = _batches(entries, 1 if self._spec.path == "single" else self._spec.report_batch)
            await asyncio.gather(*(self._report(batches, answers, lag) for _ in range(self._spec.reporters)))
            ready = await self._plain.ready_entries(
                [lease.shard for lease in self._leases.trusted()], self._store_clock.now_us(), limit=limits.HELD_MAX
            )
            entries = list(ready.entries)
        ended_us = self._clock.monotonic_us()
        told = await self._watching.end(self._spans.calls, ("settle",), begun_us=begun_us, ended_us=ended_us)
        told.done = [(span.ended_us, span.note) for span in self._spans.calls if span.verb == "settle"]
        closed = Closed(
            settled=answers.count(Settled.SETTLED),
            confirmed=answers.count(Settled.CONFIRMED),
            refused=answers.count(Settled.REFUSED),
            duration_us=ended_us - begun_us,
            cpu_us=own_cpu_us() - cpu_us,
            written_bytes=own_written_bytes(),
            batches=sum(span.verb == "settle" for span in self._spans.calls),
            settle_lag=lag.percentiles(),
            told=told,
        )
        return msgspec.to_builtins(closed)  # type: ignore[no-any-return] # a struct becomes a dict

    async def traces(self) -> Message:
        """Answer the ways of the slowest jobs and of random ones, once nobody watches any more."""
        return {"traces": msgspec.to_builtins(self._ways.traces())}

    async def written(self) -> Message:
        """Answer how many bytes this process has handed to the filesystem."""
        return {"bytes": own_written_bytes()}

    async def close(self) -> Message:
        """Close the store."""
        await self._plain.close()
        return {}

    async def _drain(self) -> None:
        """Tick until a pass finds nothing due; it does not pause in between, as the loop would not."""
        while True:
            before = len(self._spans.calls)
            await self._planner.tick()
            first_read = next(span for span in self._spans.calls[before:] if span.verb == "due_cursors")
            if not first_read.note:
                return

    async def _report(self, batches: Iterator[Sequence[Entry]], answers: list[Settled], lag: Distribution) -> None:
        for batch in batches:
            now_us = self._store_clock.now_us()
            settlements = [
                Settlement(
                    key=entry.key,
                    attempt=entry.attempt,
                    state=ExecutionState.SUCCEEDED,
                    outcome=AttemptOutcome.SUCCEEDED,
                    started_us=now_us,
                    finished_us=now_us,
                    executor_id=self._executor_id,
                )
                for entry in batch
            ]
            begun_us = self._clock.monotonic_us()
            answers += await self._store.settle(settlements)
            ended_us = self._clock.monotonic_us()
            lag.add(ended_us - begun_us, len(batch))
            self._ways.settled(batch, begun_us, ended_us)

    def _take(self, entries: Sequence[Entry]) -> None:
        """Take what a commit made durable, as the dispatcher does; delivery waits until the drain has ended."""
        begun_us = self._watching.log.begin()
        now_us = self._store_clock.now_us()
        self._ways.committed(entries, self._spans.calls[-1] if entries else None)
        self._entries += entries
        for entry in entries:
            shard = entry.key.shard
            self._held[shard] = self._held.get(shard, 0) + 1
        if entries:
            self._fire_lag.add(now_us - entries[0].due_us, len(entries))  # A chunk of a burst has one due time.
        self._watching.log.end("deliver", begun_us)


def _bounded(store: Store, spec: BurstSpec) -> Store:
    """Return the store with the bounds that were asked for; they may only be tighter than its own.

    Raises:
        Usage: more connections or larger chunks than the store takes.
    """
    own = store.capabilities
    batch_max = 1 if spec.path == "single" else spec.batch_max or own.plan_batch_max
    if spec.topology == "flap" and not spec.batch_max:
        # So small that the burst has a middle to be disturbed in.
        batch_max = max(1, min(batch_max, spec.jobs // (_FLAP_CHUNKS * spec.schedulers)))
    connections = spec.connections or own.plan_connections
    if batch_max > own.plan_batch_max or connections > own.plan_connections:
        raise Usage(
            f"--batch-max, --connections: {own.name} takes at most {own.plan_batch_max} moves a chunk "
            f"on {own.plan_connections} connections"
        )
    bounds = replace(own, plan_batch_max=batch_max, plan_connections=connections)
    return cast("Store", _BoundedStore(store, bounds))


def _batches(entries: Sequence[Entry], size: int) -> Iterator[Sequence[Entry]]:
    return (entries[at : at + size] for at in range(0, len(entries), size))


def _fail_recovery(shards: Iterable[Shard]) -> None:
    raise InvalidRun(f"a commit broke off in shards {sorted(shards)}: what it did is unknown, so its time is worthless")


async def _serve() -> None:
    scheduler = Scheduler()
    await answer_lines(
        {
            "open": scheduler.open,
            "warm_up": scheduler.warm_up,
            "send_stale": scheduler.send_stale,
            "drain": scheduler.drain,
            "begin": scheduler.begin,
            "progress": scheduler.progress,
            "grant": scheduler.grant,
            "finish": scheduler.finish,
            "send_stale_deliveries": scheduler.send_stale_deliveries,
            "close_outbox": scheduler.close_outbox,
            "written": scheduler.written,
            "traces": scheduler.traces,
            "close": scheduler.close,
        }
    )


if __name__ == "__main__":
    run_here(_serve())
