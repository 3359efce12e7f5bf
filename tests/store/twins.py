"""Stores that are broken: each is the memory store with one promise not kept."""

from collections.abc import Sequence
from dataclasses import replace

from luciole.model.execution import Enqueued, EnqueueRequest
from luciole.model.ids import ExecutionKey, RouteId, Shard
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.outbox import Delivery, Entry, EntryState, Settled, Settlement
from luciole.model.plan import Plan, PlanOutcome, ReadyBatch, ReadyRoute, RouteBatch
from luciole.model.schedule import Cursor
from luciole.runtime.clock import Clock
from luciole.store.memory import MemoryState, MemoryStore
from luciole.store.reads import Page


class FenceForgotten(MemoryStore):
    """Whoever had the lease once may write for ever."""

    def __init__(self, state: MemoryState, clock: Clock, *, shards: int | None = None) -> None:
        super().__init__(state, clock, shards=shards)
        state.holds = lambda lease, now_us: lease is not None  # type: ignore[method-assign]  # noqa: ARG005 - its contract


class HolderForgotten(MemoryStore):
    """The fence is compared, its holder is not."""

    def __init__(self, state: MemoryState, clock: Clock, *, shards: int | None = None) -> None:
        super().__init__(state, clock, shards=shards)
        state.holds = lambda lease, now_us: (  # type: ignore[method-assign]  # noqa: ARG005 - its contract
            lease is not None and lease.fence == state.leases[lease.shard].fence
        )


class ExpiredRenewed(MemoryStore):
    """An expired lease is renewed when nobody has taken it."""

    async def renew_leases(self, leases: Sequence[Lease], *, ttl_us: int) -> tuple[Lease, ...]:
        for lease in leases:
            row = self._state.leases[lease.shard]
            if (row.holder, row.fence) == (lease.holder, lease.fence):
                self._state.leases[lease.shard] = replace(row, expires_us=row.expires_us + 10**12)
        return await super().renew_leases(leases, ttl_us=ttl_us)


class HalfATick(MemoryStore):
    """Executions are committed, the entries of every second one are not."""

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        outcome = await super().commit_plan(plan)
        for entry in outcome.entries[::2]:
            del self._state.entries[entry.key[:2]][entry.key]
        return outcome


class DeliveredTwice(MemoryStore):
    """A delivery is recorded for every executor that asks."""

    async def record_deliveries(
        self, leases: Sequence[Lease], deliveries: Sequence[Delivery]
    ) -> tuple[ExecutionKey, ...]:
        for delivery in deliveries:
            entry = self._state.entry(delivery.key)
            if entry:
                entry.executor_id = None
        return await super().record_deliveries(leases, deliveries)


class StaleReportAccepted(MemoryStore):
    """The outcome of any attempt is taken for that of the current one."""

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        entries = [self._state.entry(settlement.key) for settlement in settlements]
        return await super().settle(
            [
                settlement if entry is None else settlement._replace(attempt=entry.attempt)
                for settlement, entry in zip(settlements, entries, strict=True)
            ]
        )


class TerminalRewritten(MemoryStore):
    """The last report wins."""

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        answers = await super().settle(settlements)
        for settlement in settlements:
            execution = self._state.execution(settlement.key)
            if execution and execution.state.terminal and settlement.state.terminal:
                execution.state, execution.error = settlement.state, settlement.error
        return answers


class CursorUnmoved(MemoryStore):
    """A fire is committed, its cursor stays."""

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        before = {row.schedule_id: (row.fire_us, row.due_us, row.revision) for row in self._state.schedules.values()}
        outcome = await super().commit_plan(plan)
        for row in self._state.schedules.values():
            row.fire_us, row.due_us, row.revision = before[row.schedule_id]
        return outcome


class FireLost(MemoryStore):
    """A cursor moves, its fire is not committed."""

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        moves = tuple(move._replace(fires=()) for move in plan.moves)
        return await super().commit_plan(replace(plan, moves=moves))


class SkipUnrecorded(MemoryStore):
    """What overlap leaves out has no outcome."""

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        before = {group: list(rows) for group, rows in self._state.ledger.items()}
        outcome = await super().commit_plan(plan)
        for group in self._state.ledger:
            self._state.ledger[group] = before.get(group, [])
        return outcome


class OneBlocksAll(MemoryStore):
    """A batch with one row that lost its race is dropped."""

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        stale = [move for move in plan.moves if not self._is_current(move.cursor)]
        return await super().commit_plan(replace(plan, moves=tuple(stale)) if stale else plan)

    def _is_current(self, cursor: Cursor) -> bool:
        row = self._state.schedules.get(cursor.schedule_id)
        return row is not None and (row.fire_us, row.revision) == (cursor.fire_us, cursor.revision)


class ManualUnseen(MemoryStore):
    """A run by hand does not bump the cursor's revision."""

    async def trigger_schedule(self, request: EnqueueRequest) -> Enqueued | None:
        row = self._state.schedules.get(request.schedule_id)
        answer = await super().trigger_schedule(request)
        if row and answer and answer.created:
            row.revision -= 1
        return answer


class SuccessorForgotten(MemoryStore):
    """Nobody lets the waiting one go."""

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        return await super().settle([settlement._replace(releases=False) for settlement in settlements])


class CancelForgotten(MemoryStore):
    """A request to end does not keep an entry from being delivered."""

    async def ready_entries(self, shards: Sequence[Shard], before_us: Instant, *, limit: int) -> ReadyBatch:
        batch = await super().ready_entries(shards, before_us, limit=limit)
        cancelled = [entry for entry in batch.cancels if entry.state is EntryState.READY]
        return replace(batch, entries=tuple(sorted([*batch.entries, *cancelled], key=_order)))


class OnlyTheTopSeen(MemoryStore):
    """What ready entries ask is judged by the one that is due first."""

    async def ready_routes(
        self, shards: Sequence[Shard], before_us: Instant, *, after: RouteId, limit: int
    ) -> RouteBatch:
        top = (await self.ready_entries(shards, before_us, limit=1)).entries
        known = {ReadyRoute(entry.key.shard, entry.priority, entry.route) for entry in top}
        batch = await super().ready_routes(shards, before_us, after=after, limit=limit)
        return replace(batch, routes=tuple(place for place in batch.routes if place in known))


class RouteForgotten(MemoryStore):
    """What was in memory once is polled without its route."""

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        unknown = [row for item in settlements if (row := self._state.entry(item.key)) and not row.route]
        answers = await super().settle(settlements)
        for row in unknown:
            row.route = 0
        return answers


class KeyForgotten(MemoryStore):
    """A request key names an execution until that has ended."""

    async def enqueue(self, requests: Sequence[EnqueueRequest]) -> tuple[Enqueued, ...]:
        for name, key in list(self._state.request_keys.items()):
            execution = self._state.execution(key)
            if execution and execution.state.terminal:
                del self._state.request_keys[name]
        return await super().enqueue(requests)


class BytesMangled(MemoryStore):
    """A result is text, as long as nobody looks."""

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        return await super().settle(
            [
                settlement._replace(result=settlement.result and settlement.result.decode(errors="replace").encode())
                for settlement in settlements
            ]
        )


class PrunesTheOpen(MemoryStore):
    """Whatever is old is deleted."""

    async def prune(
        self, shard: Shard, before_us: Instant, *, after: ExecutionKey | None, limit: int
    ) -> Page[ExecutionKey]:
        for group, rows in self._state.executions.items():
            for key, row in list(rows.items()):
                if group[0] == shard and row.created_us < before_us and not row.state.terminal:
                    del rows[key]
        return await super().prune(shard, before_us, after=after, limit=limit)


class EditFiresAgain(MemoryStore):
    """An execution that has ended does not keep its instant from firing again."""

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        for move in plan.moves:
            group = (move.cursor.shard, move.cursor.schedule_id)
            for key, row in list(self._state.executions.get(group, {}).items()):
                if row.state.terminal and key.fire_us in {fire.fire_us for fire in move.fires}:
                    del self._state.executions[group][key]
        return await super().commit_plan(plan)


class PlannedAheadKept(MemoryStore):
    """An edit, a pause or a deletion leaves what was planned ahead."""

    def __init__(self, state: MemoryState, clock: Clock, *, shards: int | None = None) -> None:
        super().__init__(state, clock, shards=shards)
        state.withdraw = lambda *_: None  # type: ignore[method-assign]


def _order(entry: Entry) -> tuple[int, int, int, ExecutionKey]:
    return entry.key.shard, -entry.priority, entry.due_us, entry.key
