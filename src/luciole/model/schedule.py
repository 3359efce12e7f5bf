"""Schedules: a job, a trigger, a shard and a state; and the cursor that says how far one is planned."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import NamedTuple

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.ids import JobId, ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.job import EntryFlag, JobSpec, Misfire, Overlap


class ScheduleState(StrEnum):
    """Whether a schedule fires."""

    ACTIVE = "active"
    PAUSED = "paused"  #: by a user; its fire times get the outcome `paused` when it is resumed
    PARKED = "parked"  #: by the engine, which can't read it (I7); the reason is kept
    EXHAUSTED = "exhausted"  #: its trigger has no further fire time
    DELETED = "deleted"  #: kept while executions refer to it


class Reason(StrEnum):
    """Why a due fire time did not become an execution (I4)."""

    MISFIRE = "misfire"  #: outside what the misfire policy runs
    COALESCED = "coalesced"  #: an adjacent, later fire time ran for it
    OVERLAP = "overlap"
    PAUSED = "paused"
    DISABLED = "disabled"


class OverlapCode(IntEnum):
    """The overlap policy as the cursor row stores it."""

    ALLOW = 0
    FORBID = 1
    QUEUE_ONE = 2
    REPLACE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a schedule treats late and overlapping fire times."""

    misfire: Misfire = Misfire.FIRE_ONCE
    misfire_after_us: int = limits.MINUTE_US
    catch_up_limit: int = 0  #: > 0 exactly for Misfire.CATCH_UP
    overlap: Overlap = Overlap.FORBID

    def __post_init__(self) -> None:
        if (self.misfire is Misfire.CATCH_UP) != (self.catch_up_limit > 0):
            raise InvalidValue("misfire: catch_up needs a limit of at least 1, the other policies take none")
        if self.catch_up_limit > limits.CATCH_UP_MAX:
            raise InvalidValue(f"misfire: a catch_up limit of {self.catch_up_limit} is over {limits.CATCH_UP_MAX}")
        if self.misfire is Misfire.CATCH_UP and self.overlap is Overlap.FORBID:
            raise InvalidValue(
                "overlap: 'forbid' with misfire catch_up would drop what it caught up; use 'allow' or 'queue_one'"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """What a user declares; unique by (namespace, name)."""

    namespace: str = "default"
    name: str
    owner: str = ""  #: the app that declared it; another owner may not overwrite it
    job: JobSpec
    trigger: str  #: canonical trigger text
    policy: Policy = Policy()


class Overdue(NamedTuple):
    """Fire times that a trigger left unplanned when another replaces it: a range and a count."""

    first_us: Instant
    last_us: Instant
    fires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A schedule ready to be stored: the pure part of registration is done."""

    spec: ScheduleSpec
    fire_us: Instant | None  #: first fire time after registration; None: exhausted at once
    due_us: Instant | None  #: fire time + jitter
    overdue: Overdue | None = None  #: what the trigger that it replaces leaves, from the cursor that was read


def left_by(fire_us: Instant, new: NewSchedule, now_us: Instant) -> Overdue | None:
    """Return what the old trigger leaves at a cursor's fire time, when a new definition replaces it at an instant.

    Whoever made the definition counted what was due then; where the cursor has moved since, that has its outcome.
    What fell due afterwards belongs to the new definition from its first fire time on.
    """
    if new.overdue and new.overdue.first_us == fire_us:
        return new.overdue
    if fire_us <= now_us and (new.fire_us is None or fire_us < new.fire_us):
        return Overdue(fire_us, fire_us, 1)
    return None


def is_over(state: ScheduleState, updated_us: Instant, fire_us: Instant, before_us: Instant) -> bool:
    """Whether a schedule has been over since before an instant: `fire_us` is where its cursor stopped."""
    if state is ScheduleState.DELETED:
        return updated_us < before_us
    return state is ScheduleState.EXHAUSTED and max(updated_us, fire_us) < before_us


class Cursor(NamedTuple):
    """How far one schedule has been planned: every fire time before `fire_us` has its outcome.

    It carries, as small numbers, all that planning needs, so that the hot path reads one narrow table. A tuple, because
    a burst makes tens of thousands of them.
    """

    shard: Shard
    schedule_id: ScheduleId
    revision: int  #: grows with every move; what compare-and-set compares
    fire_us: Instant  #: the fire time to plan next
    due_us: Instant  #: fire time + jitter
    trigger_id: TriggerId
    job_id: JobId
    policy_id: int  #: the `Policy`, and what entries inherit from the job, see `pack_policy`

    def advance(self, fire_us: Instant, due_us: Instant) -> "Cursor":
        """Return the cursor moved forward to its next fire time."""
        assert fire_us > self.fire_us  # I2: cursors only move forward.
        return self._replace(fire_us=fire_us, due_us=due_us, revision=self.revision + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """One schedule as people and programs read it."""

    schedule_id: ScheduleId
    shard: Shard
    spec: ScheduleSpec
    version: int  #: grows with every edit
    state: ScheduleState
    reason: str | None
    fire_us: Instant | None  #: the next fire time
    due_us: Instant | None
    revision: int
    created_us: Instant
    updated_us: Instant


_MISFIRE_CODES = (Misfire.FIRE_ONCE, Misfire.SKIP, Misfire.CATCH_UP)
_OVERLAPS = (Overlap.ALLOW, Overlap.FORBID, Overlap.QUEUE_ONE, Overlap.REPLACE)


#: Widths of the parts of a packed policy, lowest bits first.
_LATE_BITS = 40
_PRIORITY_SHIFT = 14 + _LATE_BITS
_AT_MOST_ONCE = 1 << _PRIORITY_SHIFT + 4


def pack_policy(policy: Policy, job: JobSpec) -> int:
    """Return a policy, and what entries inherit from the job, as one integer of 59 bits.

    Overlap (2 bits), misfire (2), limit (10), lateness in ms (40), priority (4), at-most-once (1): with it the
    planner needs no look at the job.
    """
    return _pack(policy, job.priority, job.at_most_once)


@lru_cache(maxsize=limits.POLICIES_KEPT)
def _pack(policy: Policy, priority: int, at_most_once: bool) -> int:  # noqa: FBT001 - a bit of the number
    late_ms = min(policy.misfire_after_us // limits.MS_US, (1 << _LATE_BITS) - 1)
    return (
        _OVERLAPS.index(policy.overlap)
        | _MISFIRE_CODES.index(policy.misfire) << 2
        | policy.catch_up_limit << 4
        | late_ms << 14
        | priority << _PRIORITY_SHIFT
        | (_AT_MOST_ONCE if at_most_once else 0)
    )


@lru_cache(maxsize=limits.POLICIES_KEPT)
def unpack_policy(policy_id: int) -> Policy:
    """Return the policy of `pack_policy`.

    Raises:
        InvalidValue: no policy packs to this number.
    """
    misfire = policy_id >> 2 & 3
    if not 0 <= policy_id < _AT_MOST_ONCE << 1 or misfire >= len(_MISFIRE_CODES):
        raise InvalidValue(f"policy: {policy_id} is not one that this version knows")
    return Policy(
        overlap=_OVERLAPS[policy_id & 3],
        misfire=_MISFIRE_CODES[misfire],
        catch_up_limit=policy_id >> 4 & 1023,
        misfire_after_us=(policy_id >> 14 & (1 << _LATE_BITS) - 1) * limits.MS_US,
    )


def unpack_entry_traits(policy_id: int) -> tuple[OverlapCode, int, int]:
    """Return what a packed policy says of the entries: overlap, priority, and bits of `EntryFlag`."""
    overlap = OverlapCode(policy_id & 3)
    flags = int(EntryFlag.AT_MOST_ONCE) if policy_id & _AT_MOST_ONCE else 0
    if overlap in {OverlapCode.QUEUE_ONE, OverlapCode.REPLACE}:
        flags |= EntryFlag.RELEASES
    return overlap, policy_id >> _PRIORITY_SHIFT & 15, flags
