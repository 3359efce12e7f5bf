"""Open entries over SQL: found, delivered, marked as running. How they are settled stands in `settling`."""

from collections.abc import Sequence

from luciole import limits
from luciole.model.execution import MOVES, ExecutionState
from luciole.model.ids import ExecutionKey, RouteId, Shard
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.outbox import Delivery, Entry, EntryState, Running, Settled, Settlement, Withdrawals
from luciole.model.plan import ReadyBatch, ReadyRoute, RouteBatch
from luciole.store.bounds import check_batch, check_limit, check_settlements, check_shards, seen_routes, stored_text
from luciole.store.sql.dialect import Lane, Role
from luciole.store.sql.leases import check_fences
from luciole.store.sql.listing import labels_of
from luciole.store.sql.script import Query, Row, Script
from luciole.store.sql.settling import settle

#: Entries that may be delivered.
_DELIVERABLE = frozenset({EntryState.HELD, EntryState.READY})

_PRIORITIES = range(limits.PRIORITY_MAX, limits.PRIORITY_MIN - 1, -1)

#: Before every key of a shard.
_START = (-1, limits.INSTANT_MIN_US, -(1 << 63))


#: Asked for each report of a burst: a property would compute it each time.
_TERMINAL = frozenset(state for state in ExecutionState if state.terminal)


class SqlOutbox(Role):
    """The role `OutboxStore`."""

    async def ready_entries(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> ReadyBatch:
        """Return READY entries that are due, top priority first in each shard, and cancels."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_limit("limit", limit, limits.HELD_MAX)
        check_shards(shards, self.shards)
        return await self._db.read(Lane.SETTLE, ready_entries, sorted(set(shards)), before_us, limit)

    async def ready_routes(
        self, shards: Sequence[Shard], before_us: Instant, *, after: RouteId, limit: int
    ) -> RouteBatch:
        """Return what the READY entries that are due ask of executors, bounded for each shard and priority."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_limit("limit", limit, limits.ROUTES_MAX)
        check_shards(shards, self.shards)
        return await self._db.read(Lane.SETTLE, ready_routes, sorted(set(shards)), before_us, after, limit)

    async def route_entries(self, routes: Sequence[ReadyRoute], before_us: Instant, *, limit: int) -> tuple[Entry, ...]:
        """Return READY entries of some routes that are due, the first of each."""
        check_batch("routes", routes, limits.PAGE_MAX)
        check_limit("limit", limit, limits.HELD_MAX)
        check_shards([route.shard for route in routes], self.shards)
        return await self._db.read(Lane.SETTLE, route_entries, sorted(set(routes)), before_us, limit)

    async def open_entries(
        self, shards: Sequence[Shard], *, after: ExecutionKey | None, limit: int
    ) -> tuple[Entry, ...]:
        """Return HELD entries, and READY ones whose delivery is recorded, in key order after `after`."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_limit("limit", limit, limits.HELD_MAX)
        check_shards(shards, self.shards)
        return await self._db.read(Lane.SETTLE, _open_entries, sorted(set(shards)), after, limit)

    async def withdrawals(self, shards: Sequence[Shard]) -> Withdrawals:
        """Count how often something planned ahead was withdrawn from shards."""
        check_batch("shards", shards, limits.SHARDS_MAX)
        check_shards(shards, self.shards)
        return await self._db.write(Lane.SETTLE, _withdrawals, sorted(set(shards)))

    async def record_deliveries(
        self, leases: Sequence[Lease], deliveries: Sequence[Delivery]
    ) -> tuple[ExecutionKey, ...]:
        """Record deliveries before they are sent; return the keys that may be sent."""
        check_batch("deliveries", deliveries, limits.DELIVER_BATCH_MAX)
        return await self._db.write(Lane.SETTLE, _record_deliveries, leases, deliveries)

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Write the outcomes of attempts: executions, entries, attempt rows, released successors."""
        check_settlements(settlements)
        answers = await self._db.write(Lane.SETTLE, settle, settlements)
        wake = {item.key.shard for item in settlements if item.releases or item.state not in _TERMINAL}
        if wake:
            self._db.hint(frozenset(wake))
        return answers

    async def mark_running(self, running: Sequence[Running]) -> tuple[ExecutionKey, ...]:
        """Record that attempts run; return the keys to cancel."""
        check_batch("running", running, limits.REPORT_BATCH_MAX)
        return await self._db.write(Lane.SETTLE, _mark_running, running)


def ready_entries(shards: Sequence[Shard], before_us: Instant, limit: int) -> Script[ReadyBatch]:
    """Return ready entries and cancels; see `OutboxStore.ready_entries`."""
    binds = {"before_us": before_us}
    # What changes between these questions is found by the next poll: an idle one asks the first only.
    probes = [(shard, priority) for shard in shards for priority in _PRIORITIES]
    heads = yield Query("ready_heads", binds, probes, alone=True)
    due = [(row[0], row[1]) for row in heads if row[2] is not None and row[2] <= before_us]
    rows = yield Query("ready_entries", {**binds, "limit": limit}, due, alone=True)
    cancelled = sorted({row[0] for row in heads if row[4]})
    cancels = yield Query("cancelled_entries", {"limit": limit}, [(shard,) for shard in cancelled], alone=True)
    room = dict.fromkeys(shards, limit)
    entries = []
    for row in rows:
        room[row[0]] -= 1
        if room[row[0]] >= 0:
            entries.append(_entry(row))
    return ReadyBatch(
        entries=tuple(entries),
        next_due_us=min((row[3] for row in heads if row[3] is not None), default=None),
        cancels=tuple(map(_entry, cancels)),
    )


def ready_routes(shards: Sequence[Shard], before_us: Instant, after: RouteId, limit: int) -> Script[RouteBatch]:
    """Return what ready entries ask of executors; see `OutboxStore.ready_routes`."""
    probes = [(shard, priority) for shard in shards for priority in reversed(_PRIORITIES)]
    rows = yield Query("ready_routes", {"after": after, "limit": limit}, probes, alone=True)
    return seen_routes(sorted((row[0], row[1], row[2], row[3]) for row in rows), before_us, limit)


def route_entries(routes: Sequence[ReadyRoute], before_us: Instant, limit: int) -> Script[tuple[Entry, ...]]:
    """Return ready entries of some routes; see `OutboxStore.route_entries`."""
    rows = yield Query("route_entries", {"before_us": before_us, "limit": limit}, routes, alone=True)
    return tuple(map(_entry, rows))


def _open_entries(shards: Sequence[Shard], after: ExecutionKey | None, limit: int) -> Script[tuple[Entry, ...]]:
    entries: list[Entry] = []
    for shard in shards:
        if after is not None and shard < after.shard:
            continue
        start = after[1:] if after is not None and after.shard == shard else _START
        binds = {"shard": shard, "limit": limit - len(entries)}
        binds |= dict(zip(("schedule_id", "fire_us", "part"), start, strict=True))
        entries += map(_entry, (yield Query("open_entries", binds)))
        if len(entries) >= limit:
            break
    return tuple(entries)


#: States of entries by what a row keeps.
_STATES = tuple(EntryState)


def _entry(row: Row) -> Entry:
    # By place: a drain makes tens of thousands a second, and by name each would take twice as long.
    labels = row[17]
    return Entry(
        ExecutionKey(row[0], row[1], row[2], row[3]),
        row[4],  # due_us
        row[5],  # priority
        row[6],  # attempt
        row[7],  # failures
        row[8],  # job_id
        row[9],  # flags
        _STATES[row[10]],
        row[11],  # losses
        bool(row[12]),  # delivered
        bool(row[13]),  # cancel
        row[15],  # payload
        row[16],  # content_type
        None if labels is None else labels_of(labels) or None,
        row[18],  # deadline_us
        row[14],  # route
    )


class _Locked:
    """Open entries as a script found them under its lock."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {ExecutionKey(*row[:4]): row for row in rows}

    def may_run(self, key: ExecutionKey, attempt: int, executor_id: str) -> bool:
        """Whether an executor may have this attempt: it is the current one, and no other executor's."""
        row = self._rows.get(key)
        return row is not None and row[4] == attempt and row[5] in _DELIVERABLE and row[8] in {None, executor_id}

    def is_cancelled(self, key: ExecutionKey) -> bool:
        """Whether somebody asked for its end."""
        return bool(self._rows[key][7])

    def take(self, key: ExecutionKey, executor_id: str) -> None:
        """Note whose it is, for the rest of the batch."""
        self._rows[key] = (*self._rows[key][:8], executor_id, *self._rows[key][9:])

    def may_move(self, key: ExecutionKey, state: ExecutionState) -> bool:
        """Whether the table of moves lets its execution become this."""
        return state in MOVES[ExecutionState(self._rows[key][9])]


def _withdrawals(shards: Sequence[Shard]) -> Script[Withdrawals]:
    rows = [(shard,) for shard in shards]
    found = yield Query("lock_withdrawals", rows=rows)
    if len(found) < len(rows):
        # One that is missing can't be locked: made here, or by a withdrawal under way, which this waits for.
        yield Query("begin_withdrawals", rows=rows)
        found = yield Query("lock_withdrawals", rows=rows)
    # After the locks: a withdrawal that waits for them judges by a later clock.
    clock = yield Query("clock")
    return Withdrawals(clock[0][0], {row[0]: row[1] for row in found})


def _record_deliveries(leases: Sequence[Lease], deliveries: Sequence[Delivery]) -> Script[tuple[ExecutionKey, ...]]:
    held = yield from check_fences(leases)  # I3: only the shard's holder delivers.
    wanted = [delivery for delivery in deliveries if delivery.key.shard in held]
    locked = _Locked((yield Query("lock_entries", rows=sorted({delivery.key for delivery in wanted}))))
    allowed: dict[ExecutionKey, str] = {}
    for key, attempt, executor_id, _ in wanted:
        if locked.may_run(key, attempt, executor_id) and not locked.is_cancelled(key):
            locked.take(key, executor_id)
            allowed[key] = executor_id
    yield Query("deliver_entries", rows=[(*key, executor_id) for key, executor_id in sorted(allowed.items())])
    return tuple(allowed)


def _mark_running(running: Sequence[Running]) -> Script[tuple[ExecutionKey, ...]]:
    locked = _Locked((yield Query("lock_entries", rows=sorted({mark.key for mark in running}))))
    ended: dict[ExecutionKey, None] = {}
    rows: dict[ExecutionKey, tuple[int | str | None, ...]] = {}
    for key, attempt, executor_id, started_us, progress in running:
        if not locked.may_run(key, attempt, executor_id) or not locked.may_move(key, ExecutionState.RUNNING):
            ended[key] = None  # I5: an old token changes nothing.
            continue
        locked.take(key, executor_id)
        text = stored_text(progress, limits.PROGRESS_LENGTH_MAX)
        before = rows.get(key)
        rows[key] = (*key, executor_id, started_us, before[6] if before and text is None else text)
        if locked.is_cancelled(key):
            ended[key] = None
    yield Query("run_entries", rows=[rows[key] for key in sorted(rows)])
    return tuple(ended)
