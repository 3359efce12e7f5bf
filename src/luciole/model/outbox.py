"""Outbox entries: the durable intent to run something, and how each comes to its end."""

from enum import IntEnum, StrEnum
from typing import NamedTuple

from luciole import limits
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey, ExecutorId, JobId, RouteId, Shard
from luciole.model.instant import Instant


class EntryState(IntEnum):
    """Who looks after an open entry; the number is what stores keep."""

    HELD = 0  #: its shard's holder has it in memory; a new holder loads it when it takes over
    READY = 1  #: found by polling once it is due
    WAITING = 2  #: released when its predecessor is settled
    PARKED = 3  #: waits for repair


class Entry(NamedTuple):
    """One open entry as the dispatcher holds it.

    A tuple, because a burst makes tens of thousands of them. The four fields from `payload` on are None for executions
    of a schedule, whose job version says it all.
    """

    key: ExecutionKey
    due_us: Instant
    priority: int
    attempt: int  #: the token of the attempt to deliver next, or of the one under way (from 1)
    failures: int  #: attempts that failed or timed out by themselves: what a retry limit counts
    job_id: JobId
    flags: int  #: bits of `EntryFlag`
    state: EntryState = EntryState.HELD
    losses: int = 0
    delivered: bool = False  #: the delivery of this attempt is recorded
    cancel: bool = False  #: somebody asked for its end
    payload: bytes | None = None
    content_type: str | None = None
    labels: tuple[tuple[str, str], ...] | None = None
    deadline_us: Instant | None = None
    route: RouteId = 0  #: what it asks of an executor; 0 also for what the planner made and nobody ever polled


def under_way(state: EntryState, due_us: Instant, now_us: Instant, *, delivered: bool) -> bool:
    """Whether somebody may be running what an open entry is about, or be about to: its end can only be asked for.

    Args:
        state: the entry's.
        due_us: when its attempt is due.
        now_us: the store's clock, read under the entry's lock.
        delivered: somebody has it, on record.
    """
    if state in {EntryState.WAITING, EntryState.PARKED}:
        return False
    # I11: nothing starts before its due time. What is planned ahead is sent only once it can't be withdrawn any more.
    margin_us = 0 if state is EntryState.HELD else limits.CANCEL_MARGIN_US
    return delivered or due_us <= now_us + margin_us


class AttemptOutcome(StrEnum):
    """How one attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"  #: its executor is gone
    #: Handed back (drain): counts as no failure. With `started_us` the handler was interrupted, which an
    #: at-most-once execution can't survive; without it the handler never started.
    RETURNED = "returned"
    UNKNOWN_HANDLER = "unknown_handler"


class Report(NamedTuple):
    """What an executor says about one attempt; guarded by its attempt token alone (I5)."""

    key: ExecutionKey
    attempt: int
    outcome: AttemptOutcome
    started_us: Instant | None
    finished_us: Instant
    result: bytes | None = None
    result_type: str | None = None
    error: str | None = None
    retry_after_us: int | None = None  #: the handler's own delay before the next attempt
    retryable: bool = True  #: False: the handler said that trying again is no use


class Settlement(NamedTuple):
    """A report after the retry decision: what one guarded write does to an execution and its entry.

    A terminal `state` deletes the entry. READY or RETRY_WAIT make attempt + 1 due at `due_us` as a READY entry,
    with one failure more when the outcome is FAILED or TIMED_OUT, and one loss more when `counts_loss`;
    PARKED keeps the entry aside. An attempt that did not succeed leaves a row of its own.
    """

    key: ExecutionKey
    attempt: int  #: the write happens only while this is the entry's current attempt
    state: ExecutionState
    outcome: AttemptOutcome
    started_us: Instant | None
    finished_us: Instant
    executor_id: ExecutorId | None
    result: bytes | None = None
    result_type: str | None = None
    error: str | None = None
    due_us: Instant | None = None  #: of the next attempt
    counts_loss: bool = False
    releases: bool = False  #: the entry has EntryFlag.RELEASES


class Settled(IntEnum):
    """What became of one settlement."""

    SETTLED = 0
    CONFIRMED = 1  #: the same was already recorded; nothing changed
    REFUSED = 2  #: the attempt token is not the current one; nothing changed


class Withdrawals(NamedTuple):
    """What a holder compares to know whether all that it planned ahead still stands."""

    now_us: Instant  #: the store's clock: what is due by then can't be withdrawn any more
    #: How often something planned ahead was taken back in each shard, up to `now_us`; absent: nobody can tell.
    revisions: dict[Shard, int]


class Delivery(NamedTuple):
    """A delivery that must be recorded before it is sent (attempt >= 2, or at-most-once)."""

    key: ExecutionKey
    attempt: int
    executor_id: ExecutorId
    at_us: Instant


class Running(NamedTuple):
    """An attempt that has been running for a while, as the batched heartbeat records it."""

    key: ExecutionKey
    attempt: int
    executor_id: ExecutorId
    started_us: Instant
    progress: str | None = None
