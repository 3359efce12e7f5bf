"""Executions: one run each, the table of its legal states, and what is recorded of its attempts."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import NamedTuple

from luciole import limits
from luciole.model.ids import NO_SCHEDULE, ExecutionKey, ExecutorId, JobId, RouteId, Shard
from luciole.model.instant import Instant, to_datetime
from luciole.model.sharding import shard_of_id, shard_of_key


class ExecutionState(IntEnum):
    """Where an execution stands; the number is what stores keep, the lower-case name what people see."""

    READY = 0  #: waits in the store for its due time or a free slot
    HELD = 1  #: planned, waits in its holder's memory
    RUNNING = 2
    RETRY_WAIT = 3
    QUEUED = 4  #: waits for the previous execution of its schedule (overlap)
    PARKED = 5  #: can't be run by anybody here (I7); repairable
    SUCCEEDED = 10
    FAILED = 11
    CANCELLED = 12
    TIMED_OUT = 13
    LOST = 14  #: at-most-once, and nobody knows how it ended
    QUARANTINED = 15  #: lost too often

    @property
    def terminal(self) -> bool:
        """Whether it never changes again (I5)."""
        return self >= ExecutionState.SUCCEEDED


#: Legal moves; terminal states have none.
MOVES: dict[ExecutionState, frozenset[ExecutionState]] = {
    state: frozenset(
        {other for other in ExecutionState if other.terminal or other is not ExecutionState.QUEUED}
        if state is not ExecutionState.QUEUED
        else {ExecutionState.READY, ExecutionState.CANCELLED, ExecutionState.PARKED}
    )
    for state in ExecutionState
    if not state.terminal
}


class Origin(IntEnum):
    """Who asked for an execution."""

    SCHEDULE = 0
    ENQUEUE = 1
    MANUAL = 2  #: a schedule was triggered by hand
    REPLAY = 3  #: a finished execution was retried by hand
    BACKFILL = 4


class EnqueueRequest(NamedTuple):
    """One execution by request, ready to be stored.

    Its key is `(shard, schedule_id, fire_us, -request_id)`, where the store fills in `fire_us` when it is None:
    the store's clock plus `delay_us`. A tuple, because a caller in a hurry waits until one is made.
    """

    request_id: int  #: from an id segment, > 0
    shard: Shard
    job_id: JobId
    payload: bytes | None  #: None: the job version's own payload
    namespace: str = "default"
    content_type: str = "application/json"
    fire_us: Instant | None = None
    delay_us: int = 0
    priority: int = limits.PRIORITY_DEFAULT
    flags: int = 0  #: bits of `EntryFlag`
    key: str | None = None  #: request key: the same key is the same execution
    labels: tuple[tuple[str, str], ...] = ()
    deadline_us: Instant | None = None  #: not started after it, cancelled when still running at it
    origin: Origin = Origin.ENQUEUE
    replay_of: ExecutionKey | None = None
    parent: ExecutionKey | None = None
    schedule_id: int = NO_SCHEDULE
    route: RouteId = 0  #: what it asks of an executor (`route_of`), told by who knows the job; 0: the store looks it up


def request_shard(namespace: str, key: str | None, request_id: int, shards: int) -> Shard:
    """Return the shard of a request: the hash of its request key, else of the run of ids that its id lies in.

    Neighbours share a shard: what commits together then lies together, in a page of each table instead of one for
    each request.
    """
    if key is None:
        return shard_of_id(request_id // limits.REQUEST_RUN, shards)
    return shard_of_key(namespace, key, shards)


class Enqueued(NamedTuple):
    """The answer to one request."""

    key: ExecutionKey
    created: bool  #: False: the request key existed, `key` is the execution that it names


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt that did not simply succeed, as it was recorded."""

    attempt: int
    outcome: str
    error: str | None
    executor_id: ExecutorId | None
    started_us: Instant | None
    finished_us: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionView:
    """One execution as people and programs read it."""

    key: ExecutionKey
    namespace: str
    handler: str
    job_id: JobId
    state: ExecutionState
    attempt: int
    due_us: Instant
    priority: int
    origin: Origin
    created_us: Instant
    started_us: Instant | None
    finished_us: Instant | None
    executor_id: ExecutorId | None
    payload: bytes  #: its own, else that of its job version
    content_type: str
    result: bytes | None
    result_type: str | None
    error: str | None
    progress: str | None
    request_key: str | None
    replay_of: ExecutionKey | None
    parent: ExecutionKey | None
    labels: tuple[tuple[str, str], ...]
    deadline_us: Instant | None
    cancel_requested: bool
    attempts: tuple[AttemptView, ...] = ()  #: filled by `get_execution` only

    @property
    def fire_time(self) -> datetime:
        """The nominal instant, UTC."""
        return to_datetime(self.key.fire_us)

    @property
    def due_time(self) -> datetime:
        """When it may start, or might have, UTC."""
        return to_datetime(self.due_us)
