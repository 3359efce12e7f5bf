"""The planner: due cursors in, executions out, in guarded chunks on several connections."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from luciole import limits
from luciole.engine.commits import Commits, Opening, Trusted
from luciole.engine.strides import Strider, Strode
from luciole.engine.suspects import Suspects
from luciole.engine.triggers import TriggerShelf
from luciole.errors import Fatal, FenceError, Unavailable
from luciole.model.ids import ExecutionKey, Shard
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.outbox import Entry
from luciole.model.plan import Move, Plan
from luciole.model.planning import Parked, plan_tick
from luciole.model.schedule import Cursor
from luciole.runtime.probe import Probe, Stage
from luciole.runtime.steps import Steps
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import Store

_log = logging.getLogger("luciole.planner")


class _Worked(NamedTuple):
    """How far a lane, or one look of it, came."""

    next_us: Instant | None  #: when the next of the planned schedules is due; None: none of them is
    more: bool  #: it stopped with more to do
    waits: bool  #: all that was read must not be planned before its due time


@dataclass(slots=True, kw_only=True)
class Planner:
    """Plans the due cursors of every shard that this node trusts itself to hold.

    One look finds what is due. When that is much, the shards are dealt to lanes, one for each plan connection: while
    one lane waits for its commit, another computes. A lane works off its shards by itself: what is alike in strides,
    the rest cursor by cursor, in chunks whose size follows the time that a commit takes.
    """

    store: Store
    leases: Trusted
    store_clock: StoreClock
    telemetry: Telemetry
    begin: Callable[[], Opening]  #: told before a chunk is committed
    deliver: Callable[[Opening, Sequence[Entry]], None]  #: takes what a chunk made durable; always called once for each
    room: Callable[[Shard], int]  #: how many more entries of a shard fit into memory
    recover: Callable[[Iterable[Shard]], None]  #: told of shards that may have entries which no memory knows
    progress: Callable[[], None]  #: told after each chunk
    batch_min: int = limits.PLAN_BATCH_MIN
    due_max: int = limits.DUE_MAX
    idle_pause_us: int = limits.IDLE_PAUSE_MAX_US
    plan_ahead_us: int = 0
    probe: Probe | None = None
    steps: Steps | None = None
    triggers: TriggerShelf = field(default_factory=TriggerShelf)
    suspects: Suspects = field(default_factory=Suspects)
    batch: int = 0  #: moves of the next full chunk
    running: bool = True  #: False: plan nothing (draining, or a bench that opens the gate at an instant)
    _commits: Commits = field(init=False)

    def __post_init__(self) -> None:
        self._commits = Commits(
            leases=self.leases,
            store_clock=self.store_clock,
            telemetry=self.telemetry,
            begin=self.begin,
            deliver=self.deliver,
            recover=self.recover,
            progress=self.progress,
            probe=self.probe,
        )

    async def tick(self) -> int:
        """Do one bounded pass; return the pause before the next, in microseconds."""
        leases = self.leases.trusted()
        if not leases or not self.running:
            return self.idle_pause_us
        begun_us = self.store_clock.now_us()
        due, cut, pause_us = await self._read(leases, min(self.due_max, limits.PLAN_LOOK_MAX))
        if not due:
            return pause_us
        lanes = self._deal(leases, due) if cut or len(due) > self.batch_min else [(leases, due)]
        done = await asyncio.gather(
            *(self._lane(held, cursors, more=cut, due_max=self.due_max // len(lanes)) for held, cursors in lanes),
            return_exceptions=True,
        )
        for failed in done:
            if isinstance(failed, BaseException):
                raise failed  # Every lane has ended; nothing is under way any more.
        worked = [lane for lane in done if isinstance(lane, _Worked)]
        if pause_us == 0 and any(lane.waits for lane in worked) and not any(lane.more for lane in worked):
            cut, pause_us = False, limits.PLAN_WAIT_US  # What is left of it must not be planned before its time.
        pause_us = min([pause_us, *(self._until_us(lane.next_us) for lane in worked if lane.next_us is not None)])
        # What comes due close together shares one commit: under load, as much of it as fits into the time of one.
        took_us = min(self.store_clock.now_us() - begun_us, limits.PLAN_PAUSE_LOADED_US)
        return 0 if cut else max(pause_us, took_us, limits.PLAN_PAUSE_MIN_US)

    async def _read(self, leases: Sequence[Lease], limit: int) -> tuple[tuple[Cursor, ...], bool, int]:
        """Return due cursors, whether the limit cut them, and the pause after them: 0 when more is due."""
        before_us = self.store_clock.now_us() + self.plan_ahead_us
        shards = [lease.shard for lease in leases]
        batch = await self.telemetry.timed("due_cursors", self.store.due_cursors(shards, before_us, limit=limit))
        if batch.next_due_us is None:
            return batch.cursors, False, self.idle_pause_us
        # What has become due since is no burst, or a load that is merely steady would be planned in small pieces.
        return batch.cursors, batch.next_due_us <= before_us, self._until_us(batch.next_due_us)

    def _until_us(self, due_us: Instant) -> int:
        """Return the pause until a due time is to be planned."""
        # I11: by the store's clock and rounded up, so that a timer never finds a due time still ahead of it.
        return max(0, min(self.store_clock.until_us(due_us - self.plan_ahead_us), self.idle_pause_us))

    def _deal(
        self, leases: Sequence[Lease], due: Sequence[Cursor]
    ) -> list[tuple[tuple[Lease, ...], tuple[Cursor, ...]]]:
        """Deal shards to lanes so that each has about as many due cursors; the same shard is never in two."""
        by_shard: dict[Shard, list[Cursor]] = {lease.shard: [] for lease in leases}
        for cursor in due:
            by_shard[cursor.shard].append(cursor)
        lanes: list[tuple[list[Lease], list[Cursor]]] = [
            ([], []) for _ in range(min(len(leases), self.store.capabilities.plan_connections))
        ]
        for lease in sorted(leases, key=lambda lease: -len(by_shard[lease.shard])):
            held, cursors = min(lanes, key=lambda lane: len(lane[1]))
            held.append(lease)
            cursors += by_shard[lease.shard]
        return [(tuple(held), tuple(cursors)) for held, cursors in lanes if held]

    async def _lane(self, leases: Sequence[Lease], due: Sequence[Cursor], *, more: bool, due_max: int) -> _Worked:
        """Work off what is due in some shards: what was read, then what the lane reads itself while there is more."""
        next_us: Instant | None = None
        strides, stride_max = more, due_max
        for _ in range(limits.PLAN_ROUNDS_MAX):
            held = {lease.shard for lease in leases}
            leases = [lease for lease in self.leases.trusted() if lease.shard in held]
            if not leases or not self.running:
                break
            if strides:
                strode = await self._stride(leases, stride_max)
                stride_max = max(due_max, self._stride_max(leases))
                next_us = _earlier(next_us, strode.next_us)
                if not strode.left:
                    if not strode.more:
                        break
                    continue
                strides = strode.gain
            if more:
                due, more, _ = await self._read(leases, due_max)
            planned = await self._plan(due)
            next_us = _earlier(next_us, planned.next_us)
            if planned.waits or not more:
                return _Worked(next_us, more=False, waits=planned.waits)
        else:
            return _Worked(next_us, more=more, waits=False)
        return _Worked(next_us, more=False, waits=False)

    def _stride_max(self, leases: Sequence[Lease]) -> int:
        """Return how many cursors a further round of strides takes from some shards.

        Of what is alike only groups are read. A smaller share would go through all of its shard each time: what is
        due at one instant has to be sorted before it can be parted. What finds no room in memory stays in the store.
        """
        rooms = (self.room(lease.shard) for lease in leases)
        share = min((room for room in rooms if room > 0), default=limits.PLAN_BATCH_MAX)
        return len(leases) * min(share, self.store.capabilities.plan_batch_max)

    async def _stride(self, leases: Sequence[Lease], due_max: int) -> Strode:
        """Move what is alike; see `Strider.round`."""
        strider = Strider(
            store=self.store, commits=self._commits, triggers=self.triggers, room=self.room, steps=self.steps
        )
        capabilities = self.store.capabilities
        shards = [lease.shard for lease in leases]
        try:
            return await strider.round(
                shards, plan_ahead_us=self.plan_ahead_us, limit=due_max, batch=capabilities.plan_batch_max
            )
        except (Unavailable, Fatal):
            raise
        except FenceError as held_back:
            self._hold_back(held_back)
            return Strode(left=True, more=True, gain=False, next_us=None)
        except Exception as problem:  # noqa: BLE001 - I7: what a row provokes is found one by one
            _log.warning("a stride failed, so its schedules are planned one by one: %s", problem)
            return Strode(left=True, more=True, gain=False, next_us=None)

    async def _plan(self, due: Sequence[Cursor]) -> _Worked:
        """Plan due cursors."""
        triggers = await self.triggers.load(self.store, self.telemetry, {cursor.trigger_id for cursor in due})
        now_us = self.store_clock.now_us()
        begun_us = 0 if self.steps is None else self.steps.begin()
        tick = plan_tick(
            due,
            now_us=now_us,
            horizon_us=now_us + self.plan_ahead_us,
            triggers=triggers,
            next_fire=self.triggers.memo.next_us,
        )
        if self.steps is not None:
            self.steps.end("decide", begun_us)
        if self.probe is not None:
            self.probe.stamp(Stage.DECIDE, _keys(tick.moves), now_us)
        if tick.parked:
            await self._park(tick.parked)
        at = 0
        moves = self._within_room(tick.moves)
        while at < len(moves):
            chunk = self._chunk(moves, at)
            await self._commit(chunk)
            at += len(chunk)
        next_us = min((move.next_due_us for move in moves if move.next_due_us is not None), default=None)
        if tick.later_us is None:
            return _Worked(next_us, more=False, waits=False)
        # Order is by due time: where nothing moved, what comes behind is not due yet either.
        return _Worked(_earlier(next_us, tick.later_us + self.plan_ahead_us), more=False, waits=not moves)

    def _within_room(self, moves: Sequence[Move]) -> Sequence[Move]:
        """Leave what memory has no room for READY in the store."""
        counts: dict[Shard, int] = {}
        for move in moves:
            shard = move.cursor.shard
            counts[shard] = counts.get(shard, 0) + len(move.fires)
        full = {shard: self.room(shard) for shard, count in counts.items() if count > self.room(shard)}
        if not full:
            return moves
        kept = []
        for move in moves:
            shard = move.cursor.shard
            if shard in full:
                full[shard] -= len(move.fires)
                kept.append(move._replace(ready=True) if full[shard] < 0 else move)
            else:
                kept.append(move)
        return kept

    def _chunk(self, moves: Sequence[Move], at: int) -> Sequence[Move]:
        capabilities = self.store.capabilities
        end = at + max(1, min(max(self.batch, self.batch_min), capabilities.plan_batch_max))
        chunk = moves[at:end]
        if (
            self.suspects
            and (first := next((i for i, move in enumerate(chunk) if move.cursor.schedule_id in self.suspects), None))
            is not None
        ):
            return chunk[:first] or chunk[:1]  # A row that may be poison goes alone.
        if not capabilities.spans_shards:
            shard = chunk[0].cursor.shard
            return chunk[: next((i for i, move in enumerate(chunk) if move.cursor.shard != shard), len(chunk))]
        return chunk

    async def _commit(self, moves: Sequence[Move]) -> None:
        """Commit one chunk; bisect it when a row of it can't be stored, so that one never blocks the others (I7)."""
        held = {lease.shard: lease for lease in self.leases.trusted()}
        moves = [move for move in moves if move.cursor.shard in held]  # I3: its new holder plans the rest.
        if not moves:
            return
        leases = tuple(held[shard] for shard in sorted({move.cursor.shard for move in moves}))
        begun_us = self.store_clock.now_us()
        plan = Plan(moves=tuple(moves), leases=leases)
        try:
            outcome = await self._commits.run(
                "commit_plan", [lease.shard for lease in leases], self.store.commit_plan(plan)
            )
        except (Unavailable, Fatal):
            raise
        except FenceError as held_back:
            self._hold_back(held_back)
        except Exception as problem:  # noqa: BLE001 - whatever a row provokes, the rows beside it go on
            await self._bisect(moves, problem)
        else:
            self.suspects.note_success()
            self.telemetry.count("overlaps", outcome.skipped)
            self._adapt(self.store_clock.now_us() - begun_us, len(moves))
            if outcome.lost:
                self.telemetry.count("plan_races_lost", len(outcome.lost))

    def _hold_back(self, reason: FenceError) -> None:
        """Note that a chunk was not sent; the next look at the leases gives up those that are over."""
        _log.warning("a plan was held back: %s", reason)
        self.telemetry.count("plans_held_back")

    async def _bisect(self, moves: Sequence[Move], problem: Exception) -> None:
        if len(moves) > 1:
            middle = len(moves) // 2
            await self._commit(moves[:middle])
            await self._commit(moves[middle:])
            return
        cursor = moves[0].cursor
        if self.suspects.convict(cursor.schedule_id, problem):
            reason = f"it can't be stored: {type(problem).__name__}: {problem}"
            await self._park([Parked(cursor.schedule_id, cursor.shard, reason[: limits.ERROR_TEXT_LENGTH_MAX])])

    async def _park(self, parked: Sequence[Parked]) -> None:
        for row in parked:
            _log.error("schedule %d is parked: %s", row.schedule_id, row.reason)
        held = {lease.shard: lease for lease in self.leases.trusted()}
        leases = [held[shard] for shard in sorted({row.shard for row in parked}) if shard in held]
        count = await self.telemetry.timed(
            "park_schedules",
            self.store.park_schedules(
                leases, [(row.schedule_id, row.shard, row.reason) for row in parked if row.shard in held]
            ),
        )
        self.telemetry.count("schedules_parked", count)

    def _adapt(self, took_us: int, moves: int) -> None:
        """Let the duration of a chunk say how large the next may be."""
        target = limits.PLAN_COMMIT_TARGET_US // max(1, took_us // moves)
        # Half way to what the last chunk suggests: one slow commit is no trend.
        self.batch = max(self.batch_min, (max(self.batch, self.batch_min) + target) // 2)
        self.batch = min(self.batch, self.store.capabilities.plan_batch_max)


def _keys(moves: Sequence[Move]) -> list[ExecutionKey]:
    return [
        ExecutionKey(move.cursor.shard, move.cursor.schedule_id, fire.fire_us, 0)
        for move in moves
        for fire in move.fires
    ]


def _earlier(one_us: Instant | None, other_us: Instant | None) -> Instant | None:
    return other_us if one_us is None else one_us if other_us is None else min(one_us, other_us)
