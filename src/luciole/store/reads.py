"""Filters, pages and rows of the read-only verbs."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from luciole import limits
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey, JobId, ScheduleId
from luciole.model.instant import Instant
from luciole.model.schedule import Reason, ScheduleState

RowT = TypeVar("RowT")


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
    order: a full listing for programs.
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
