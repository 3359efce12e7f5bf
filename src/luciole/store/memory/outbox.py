"""Open entries: found, delivered, settled."""

from collections.abc import Sequence
from itertools import islice

from luciole import limits
from luciole.model.execution import AttemptView, ExecutionState
from luciole.model.ids import ExecutionKey, RouteId, Shard
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.outbox import (
    AttemptOutcome,
    Delivery,
    Entry,
    EntryState,
    Running,
    Settled,
    Settlement,
    Withdrawals,
)
from luciole.model.plan import ReadyBatch, ReadyRoute, RouteBatch
from luciole.store.bounds import (
    check_batch,
    check_limit,
    check_settlements,
    check_shards,
    check_trusted,
    seen_routes,
    stored_text,
)
from luciole.store.memory.client import MemoryClient
from luciole.store.memory.state import EntryRow, ExecutionRow

#: What an entry becomes when its execution goes on.
_ENTRY_STATES = {
    ExecutionState.READY: EntryState.READY,
    ExecutionState.RETRY_WAIT: EntryState.READY,
    ExecutionState.PARKED: EntryState.PARKED,
}

_FAILURES = frozenset({AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT})

#: Entries that may be delivered.
_DELIVERABLE = frozenset({EntryState.HELD, EntryState.READY})


class MemoryOutbox(MemoryClient):
    """The `OutboxStore` role."""

    async def ready_entries(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> ReadyBatch:
        """Return READY entries that are due, top priority first in each shard, and cancels."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_limit("limit", limit, limits.HELD_MAX)
        entries: list[Entry] = []
        cancels: list[Entry] = []
        later: list[Instant] = []
        with self._transaction():
            check_shards(shards, self._state.shards)
            for shard in sorted(set(shards)):
                rows = list(self._state.entries_of([shard]))
                ready = [row for row in rows if row.state is EntryState.READY]
                due = [row for row in ready if row.due_us <= before_us and not row.cancel]
                due.sort(key=lambda row: (-row.priority, row.due_us, row.key))
                ended = sorted((row for row in rows if row.cancel), key=lambda row: row.key)
                entries += (row.entry() for row in due[:limit])
                cancels += (row.entry() for row in ended[:limit])
                later += (row.due_us for row in ready if row.due_us > before_us)
        return ReadyBatch(entries=tuple(entries), next_due_us=min(later, default=None), cancels=tuple(cancels))

    async def ready_routes(
        self, shards: Sequence[Shard], before_us: Instant, *, after: RouteId, limit: int
    ) -> RouteBatch:
        """Return what the READY entries that are due ask of executors, bounded for each shard and priority."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_limit("limit", limit, limits.ROUTES_MAX)
        firsts: dict[ReadyRoute, Instant] = {}
        with self._transaction():
            check_shards(shards, self._state.shards)
            for row in self._state.entries_of(shards):
                if row.state is EntryState.READY and row.route > after:
                    place = ReadyRoute(row.key.shard, row.priority, row.route)
                    firsts[place] = min(row.due_us, firsts.get(place, row.due_us))
        return seen_routes(sorted((*place, due_us) for place, due_us in firsts.items()), before_us, limit)

    async def route_entries(self, routes: Sequence[ReadyRoute], before_us: Instant, *, limit: int) -> tuple[Entry, ...]:
        """Return READY entries of some routes that are due, the first of each."""
        check_batch("routes", routes, limits.PAGE_MAX)
        check_limit("limit", limit, limits.HELD_MAX)
        check_shards([route.shard for route in routes], self._state.shards)
        found: dict[ReadyRoute, list[EntryRow]] = {route: [] for route in sorted(set(routes))}
        with self._transaction():
            for row in self._state.entries_of({route.shard for route in routes}):
                rows = found.get(ReadyRoute(row.key.shard, row.priority, row.route))
                if rows is not None and row.state is EntryState.READY and row.due_us <= before_us and not row.cancel:
                    rows.append(row)
            for rows in found.values():
                rows.sort(key=lambda row: (row.due_us, row.key))
            return tuple(row.entry() for rows in found.values() for row in rows[:limit])

    async def open_entries(
        self, shards: Sequence[Shard], *, after: ExecutionKey | None, limit: int
    ) -> tuple[Entry, ...]:
        """Return HELD entries, and READY ones whose delivery is recorded, in key order after `after`."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_limit("limit", limit, limits.HELD_MAX)
        with self._transaction():
            check_shards(shards, self._state.shards)
            rows = [
                row
                for row in self._state.entries_of(shards)
                if row.state is EntryState.HELD or (row.state is EntryState.READY and row.delivered)
            ]
            rows = sorted((row for row in rows if after is None or row.key > after), key=lambda row: row.key)
            return tuple(row.entry() for row in islice(rows, limit))

    async def withdrawals(self, shards: Sequence[Shard]) -> Withdrawals:
        """Count how often something planned ahead was withdrawn from shards."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        with self._transaction() as now_us:
            check_shards(shards, self._state.shards)
            return Withdrawals(now_us, {shard: self._state.withdrawals[shard] for shard in shards})

    async def record_deliveries(
        self, leases: Sequence[Lease], deliveries: Sequence[Delivery]
    ) -> tuple[ExecutionKey, ...]:
        """Record deliveries before they are sent; return the keys that may be sent."""
        check_batch("deliveries", deliveries, limits.DELIVER_BATCH_MAX)
        by_shard = {lease.shard: lease for lease in leases}
        allowed: dict[ExecutionKey, None] = {}
        with self._transaction() as now_us:
            check_trusted(leases, self._clock.monotonic_us())
            for delivery in deliveries:
                row = self._state.entry(delivery.key)
                if row is None or not self._state.holds(by_shard.get(delivery.key.shard), now_us):
                    continue  # I3: only the shard's holder delivers.
                if _may_run(row, delivery.attempt, delivery.executor_id) and not row.cancel:
                    row.delivered, row.executor_id = True, delivery.executor_id
                    allowed[delivery.key] = None
        return tuple(allowed)

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Write the outcomes of attempts: executions, entries, attempt rows, released successors."""
        check_settlements(settlements)
        with self._transaction():
            return tuple(self._settle(settlement) for settlement in settlements)

    async def mark_running(self, running: Sequence[Running]) -> tuple[ExecutionKey, ...]:
        """Record that attempts run; return the keys to cancel."""
        check_batch("running", running, limits.REPORT_BATCH_MAX)
        ended: dict[ExecutionKey, None] = {}
        with self._transaction():
            for mark in running:
                row = self._state.entry(mark.key)
                if row is None or not _may_run(row, mark.attempt, mark.executor_id):
                    ended[mark.key] = None  # I5: an old token changes nothing.
                    continue
                execution = self._state.executions[row.group][row.key]
                execution.move(ExecutionState.RUNNING)
                execution.started_us = mark.started_us
                execution.executor_id = row.executor_id = mark.executor_id
                if mark.progress is not None:
                    execution.progress = stored_text(mark.progress, limits.PROGRESS_LENGTH_MAX)
                if row.cancel:
                    ended[mark.key] = None
        return tuple(ended)

    def _settle(self, settlement: Settlement) -> Settled:
        execution = self._state.execution(settlement.key)
        if execution is None:
            return Settled.REFUSED
        entry = self._state.entry(settlement.key)
        # I5, I6: the attempt token alone guards the write, and the entry is settled once.
        if entry is None or entry.state is EntryState.WAITING or entry.attempt != settlement.attempt:
            recorded = _recorded_outcome(execution, settlement.attempt)
            return Settled.CONFIRMED if recorded == settlement.outcome else Settled.REFUSED
        if settlement.outcome is not AttemptOutcome.SUCCEEDED:
            execution.attempts.append(
                AttemptView(
                    attempt=settlement.attempt,
                    outcome=settlement.outcome.value,
                    error=stored_text(settlement.error, limits.ERROR_TEXT_LENGTH_MAX),
                    executor_id=settlement.executor_id,
                    started_us=settlement.started_us,
                    finished_us=settlement.finished_us,
                )
            )
        if settlement.state.terminal:
            self._end(execution, entry, settlement)
        else:
            self._go_on(execution, entry, settlement)
        return Settled.SETTLED

    def _end(self, execution: ExecutionRow, entry: EntryRow, settlement: Settlement) -> None:
        execution.move(settlement.state)
        execution.started_us = settlement.started_us
        execution.finished_us = settlement.finished_us
        execution.troubled_us = settlement.finished_us
        execution.executor_id = settlement.executor_id
        execution.result = settlement.result  # I8: opaque bytes.
        execution.result_type = stored_text(settlement.result_type, limits.NAME_LENGTH_MAX)
        execution.error = stored_text(settlement.error, limits.ERROR_TEXT_LENGTH_MAX)
        self._state.close_entry(entry, releases=settlement.releases)

    def _go_on(self, execution: ExecutionRow, entry: EntryRow, settlement: Settlement) -> None:
        execution.move(settlement.state)
        # Also a parked attempt is over: what runs after the repair is the next one.
        execution.attempt = entry.attempt = settlement.attempt + 1
        execution.started_us = execution.executor_id = execution.progress = None
        execution.troubled_us = settlement.finished_us
        execution.error = stored_text(settlement.error, limits.ERROR_TEXT_LENGTH_MAX)
        entry.state = _ENTRY_STATES[settlement.state]
        entry.delivered, entry.executor_id = False, None
        entry.route = entry.route or self._state.route_of_job(entry.job_id)
        entry.failures += settlement.outcome in _FAILURES
        entry.losses += settlement.counts_loss
        if settlement.due_us is not None:
            execution.due_us = entry.due_us = settlement.due_us
        if entry.state is EntryState.READY:
            self._state.hint([entry.key.shard])


def _may_run(row: EntryRow, attempt: int, executor_id: str) -> bool:
    """Whether an executor may have this attempt: it is the current one, and no other executor's."""
    return row.state in _DELIVERABLE and row.attempt == attempt and row.executor_id in {None, executor_id}


def _recorded_outcome(execution: ExecutionRow, attempt: int) -> AttemptOutcome | None:
    """Return how an attempt ended, None when that is not recorded."""
    for view in execution.attempts:
        if view.attempt == attempt:
            return AttemptOutcome(view.outcome)
    if execution.state is ExecutionState.SUCCEEDED and execution.attempt == attempt:
        return AttemptOutcome.SUCCEEDED
    return None
