"""A plan: what one pass of a planner wants to make durable, and what the store made of it."""

from dataclasses import dataclass
from typing import NamedTuple

from luciole.model.ids import RouteId, ScheduleId, Shard
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.outbox import Entry
from luciole.model.schedule import Cursor, OverlapCode, Reason


class Fire(NamedTuple):
    """One execution to create."""

    fire_us: Instant
    due_us: Instant


class LedgerRow(NamedTuple):
    """Fire times that did not become executions: a range, a count, a reason (I4)."""

    first_us: Instant
    last_us: Instant
    fires: int  #: how many fire times the range stands for
    reason: Reason


class Move(NamedTuple):
    """One cursor's next step: the executions and ledger rows it brings, and where it stands afterwards.

    The store decides overlap, in the transaction, for each fire in order: with FORBID a fire that finds an open
    entry of its schedule becomes a ledger row; with QUEUE_ONE it waits (and becomes a ledger row when another
    already waits); with REPLACE the open ones are asked to end and it waits for them.
    """

    cursor: Cursor  #: as it was read; the move happens only while (fire_us, revision) are still these
    fires: tuple[Fire, ...]  #: ascending, at most `limits.CATCH_UP_MAX`; nearly always one
    next_fire_us: Instant | None  #: None: the trigger is exhausted
    next_due_us: Instant | None
    overlap: OverlapCode
    priority: int
    flags: int  #: bits of `EntryFlag` for the entries
    ledger: tuple[LedgerRow, ...] = ()
    ready: bool = False  #: leave the entries READY in the store: the holder's memory is full


class Realigned(NamedTuple):
    """A cursor whose fire time other rules of its zone put elsewhere."""

    cursor: Cursor  #: as it was read
    fire_us: Instant
    due_us: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One chunk: moves under the leases that guard them."""

    moves: tuple[Move, ...]
    leases: tuple[Lease, ...]  #: one for each shard among the moves


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOutcome:
    """What one chunk did."""

    entries: tuple[Entry, ...]  #: created by this very call and to be held in memory, in plan order
    created: int  #: executions created, those that wait or stay ready in the store included
    skipped: int  #: fires that overlap turned into ledger rows
    lost: tuple[ScheduleId, ...] = ()  #: their cursor had moved or changed; read them again
    refused: frozenset[Shard] = frozenset()  #: fence refused: nothing of theirs was written


@dataclass(frozen=True, slots=True, kw_only=True)
class DueBatch:
    """Due cursors, and when the next becomes due."""

    cursors: tuple[Cursor, ...]  #: ordered by due time within each shard
    next_due_us: Instant | None  #: the earliest not returned; in the past when the limit cut the read


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyBatch:
    """Ready entries, and when the next becomes due."""

    entries: tuple[Entry, ...]  #: by priority (highest first), due time, key within each shard
    next_due_us: Instant | None  #: the earliest due time after the horizon; None: none
    cancels: tuple[Entry, ...] = ()  #: open entries of these shards whose end was asked for


class ReadyRoute(NamedTuple):
    """Ready entries of one shard and priority that ask the same of an executor."""

    shard: Shard
    priority: int
    route: RouteId


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteBatch:
    """What ready entries ask of executors, and where a look that was cut goes on."""

    routes: tuple[ReadyRoute, ...]  #: those with an entry that is due, ordered
    after: RouteId | None  #: the route behind which a look that was cut goes on; None: all were seen
