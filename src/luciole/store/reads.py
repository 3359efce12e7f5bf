"""Filters, pages and rows of the read-only verbs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey, JobId, ScheduleId, Shard
from luciole.model.instant import Instant
from luciole.model.job import JobSpec, job_spec_from_row
from luciole.model.schedule import Reason, ScheduleState

RowT = TypeVar("RowT")

OPEN_STATES = frozenset(state for state in ExecutionState if not state.terminal)
TROUBLED_STATES = frozenset(
    {
        ExecutionState.PARKED,
        ExecutionState.FAILED,
        ExecutionState.TIMED_OUT,
        ExecutionState.LOST,
        ExecutionState.QUARANTINED,
    }
)

#: Parked executions that `Backlog.keys` names at most.
SAMPLE_MAX = 10
#: What `Backlog` counts to.
COUNT_MAX = limits.PAGE_MAX * 100
#: Shards that a message names at most.
_LISTED_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[RowT]):
    """Rows, and the token that brings the next page (None: this was the last)."""

    rows: tuple[RowT, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFilter:
    """Which schedules, by namespace, name and state; at most `limit` a page."""

    namespace: str | None = None
    name_prefix: str = ""
    owner: str | None = None
    states: frozenset[ScheduleState] = frozenset(
        {
            ScheduleState.ACTIVE,
            ScheduleState.PAUSED,
            ScheduleState.PARKED,
            ScheduleState.EXHAUSTED,
        }
    )
    limit: int = limits.PAGE_MAX
    page: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFilter:
    """Which executions.

    With `schedule_id` (0: executions of no schedule) newest fire time first. With states that are all open, or all
    troubled (failed, timed out, lost, quarantined, parked), newest first from their small tables. Otherwise in key
    order: a full listing for programs. `listing_of` says which of them a filter asks for.
    """

    schedule_id: ScheduleId | None = None
    states: frozenset[ExecutionState] = field(default_factory=frozenset)  #: empty: any
    limit: int = limits.PAGE_MAX
    page: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """One ledger row of a schedule."""

    first_us: Instant
    last_us: Instant
    fires: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """The latest version of one job."""

    job_id: JobId
    namespace: str
    handler: str
    versions: int
    options: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Counts of open work, each bounded; `oldest_*` are None when there is none."""

    due_schedules: int
    oldest_due_us: Instant | None
    open_entries: int
    ready_due: int
    oldest_ready_us: Instant | None
    parked: int
    keys: tuple[ExecutionKey, ...] = ()  #: a sample of parked executions


@dataclass(frozen=True, slots=True, kw_only=True)
class Worry:
    """Something about the database itself, not about what we keep in it, that somebody should look at."""

    subject: str  #: one or two words
    text: str  #: what it is, for how long, and what to do about it


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """Rows of the store's own that were missing and are there again."""

    subject: str  #: the table
    text: str  #: which rows, and what stands in them now


def restored_leases(shards: Sequence[Shard], of: int, fence: int) -> Repair:
    """Say which lease rows were restored."""
    listed = ", ".join(map(str, shards[:_LISTED_MAX])) + (" …" if len(shards) > _LISTED_MAX else "")
    return Repair(
        subject="lease", text=f"{len(shards)} of {of} rows were missing (shards {listed}); restored with fence {fence}"
    )


def seen_job(namespace: str, handler: str, payload: bytes, content_type: str, options: str) -> JobSpec:
    """Return a job as people see it: options that this version can't read look like the defaults (I7)."""
    try:
        return job_spec_from_row(namespace, handler, payload, content_type, options)
    except InvalidValue:
        return JobSpec(namespace=namespace, handler=handler, payload=payload, content_type=content_type)


class Listing(Enum):
    """The orders in which executions are listed."""

    BY_SCHEDULE = "schedule"  #: one schedule (or none): fire time, shard, part, all descending
    OPEN = "open"  #: fire time, shard, schedule, part, all descending
    TROUBLED = "troubled"  #: when it ended or was parked, then the key, all descending
    BY_KEY = "key"  #: ascending


def listing_of(query: ExecutionFilter) -> Listing:
    """Return the order that a filter asks for."""
    if query.schedule_id is not None:
        return Listing.BY_SCHEDULE
    if query.states and query.states <= TROUBLED_STATES:
        return Listing.TROUBLED
    if query.states and query.states <= OPEN_STATES:
        return Listing.OPEN
    return Listing.BY_KEY
