"""Strides: the same next step for many cursors at once.

In a burst tens of thousands of cursors differ in nothing but their schedule. What decides their next step is then
read, decided and sent once for each group; the rows themselves never leave the store.
"""

from dataclasses import dataclass
from typing import NamedTuple

from luciole.model.ids import ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.outbox import Entry
from luciole.model.plan import Fire, Move
from luciole.model.schedule import Cursor, OverlapCode


class DueGroup(NamedTuple):
    """Due cursors that share all that decides their next step."""

    trigger_id: TriggerId
    fire_us: Instant
    due_us: Instant
    policy_id: int


class Share(NamedTuple):
    """The most overdue cursors of one shard: those up to a due time, and up to a schedule within that time."""

    shard: Shard
    cursors: int  #: how many there were when they were counted
    through_us: Instant  #: the last due time
    through_id: ScheduleId  #: the last schedule of the last due time


class Step(NamedTuple):
    """The next step of one group: each of its cursors brings one execution and moves on."""

    group: DueGroup
    next_fire_us: Instant | None  #: None: the trigger is exhausted
    next_due_us: Instant | None
    overlap: OverlapCode
    priority: int
    flags: int  #: bits of `EntryFlag` for the entries


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBatch:
    """What is due, by groups."""

    shares: tuple[Share, ...]  #: ordered by shard; shards where nothing is due are absent
    groups: dict[DueGroup, int]  #: the groups in the shares, and how many cursors each has there
    more: bool  #: a shard has more that is due


@dataclass(frozen=True, slots=True, kw_only=True)
class Stride:
    """One chunk: steps for the cursors of some shares, under the leases that guard them."""

    steps: tuple[Step, ...]  #: each group once
    shares: tuple[Share, ...]  #: each shard once
    ready: frozenset[Shard] = frozenset()  #: leave the entries of these READY in the store: memory is full
    leases: tuple[Lease, ...]  #: one for each shard among the shares

    def cursors(self, refused: frozenset[Shard]) -> int:
        """Return how many cursors were counted in the shares, those of refused shards apart."""
        return sum(share.cursors for share in self.shares if share.shard not in refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrideOutcome:
    """What one chunk did."""

    entries: tuple[Entry, ...]  #: created by this very call and to be held in memory, ordered by shard
    created: int  #: executions created, those that stay ready in the store included
    left: int = 0  #: counted cursors that it did not move: somebody else had, or they are not plain
    refused: frozenset[Shard] = frozenset()  #: fence refused: nothing of theirs was written


def group_of(cursor: Cursor) -> DueGroup:
    """Return the group of a cursor."""
    return DueGroup(cursor.trigger_id, cursor.fire_us, cursor.due_us, cursor.policy_id)


def step_move(cursor: Cursor, step: Step, *, ready: bool) -> Move:
    """Return a step as the move of one of its cursors."""
    fires = (Fire(cursor.fire_us, cursor.due_us),)
    return Move(
        cursor, fires, step.next_fire_us, step.next_due_us, step.overlap, step.priority, step.flags, ready=ready
    )
