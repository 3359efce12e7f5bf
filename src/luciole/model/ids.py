"""Identities: what names a schedule, an execution and a node, and how the public text of each looks."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from luciole import limits
from luciole.errors import InvalidValue
from luciole.model.instant import Instant

ScheduleId: TypeAlias = int  #: positive, from an id segment
JobId: TypeAlias = int  #: one immutable version of a job
TriggerId: TypeAlias = int  #: one interned trigger text
NodeId: TypeAlias = str  #: 16 hex digits, random for each start of a process
ExecutorId: TypeAlias = str  #: 16 hex digits, random for each start of a process
Shard: TypeAlias = int
RouteId: TypeAlias = int  #: what entries ask of an executor, as a number; 0: not known

#: The `schedule_id` of an execution that belongs to no schedule.
NO_SCHEDULE: ScheduleId = 0

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
#: What a store keeps of an id has 64 bits.
_NUMBER_MAX = 2**63 - 1


class ExecutionKey(NamedTuple):
    """What makes an execution unique (I1).

    The planner alone writes keys with `part >= 0`; an execution by request (an enqueue, a manual run, a
    replay, a backfill) has `part = -request_id`, so that the two can never meet. An execution by request
    without a schedule has `schedule_id = 0`. The tuple's order is the order of every index and every lock.
    """

    shard: Shard
    schedule_id: ScheduleId
    fire_us: Instant  #: the fire time; for a request the nominal time that it asked for
    part: int

    def text(self) -> str:
        """Return the public id: four base-36 numbers, the shard first, so that a look-up touches one shard."""
        return "-".join(_base36(number) for number in self).replace("--", "-_")


def parse_execution_key(text: str) -> ExecutionKey:
    """Return the key of a public execution id.

    Raises:
        InvalidValue: the text is no execution id.
    """
    fields = text.strip().lower().split("-")
    try:
        key = ExecutionKey(*(int(field.replace("_", "-"), 36) for field in fields))
    except (TypeError, ValueError):
        key = None
    if key is None or not (0 <= key.shard < limits.SHARDS_MAX and all(abs(number) <= _NUMBER_MAX for number in key)):
        raise InvalidValue(
            f"execution id: {text[:80]!r} is not one; it looks like '7-2s-iq3k9x2-0' (see `luciole executions list`)"
        )
    return key


def _base36(number: int) -> str:
    digits = ""
    rest = abs(number)
    while rest or not digits:
        rest, digit = divmod(rest, 36)
        digits = _DIGITS[digit] + digits
    return f"-{digits}" if number < 0 else digits


@dataclass(frozen=True, slots=True, kw_only=True)
class IdSegment:
    """A run of ids that only its taker uses: `first` to `first + count - 1`."""

    first: int
    count: int
