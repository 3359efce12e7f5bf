"""Planning: what becomes of each due cursor, decided without reading or writing anything.

Every due fire time gets exactly one outcome (I4): an execution, or a place in a ledger row. Fire times that are late
by more than the policy allows are missed and counted without being listed; the others that are due each become
an execution, unless overlap, which the store decides, turns them into ledger rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from luciole import limits
from luciole.errors import LucioleError
from luciole.model.ids import ScheduleId, Shard, TriggerId
from luciole.model.instant import Instant
from luciole.model.job import Misfire
from luciole.model.plan import Fire, LedgerRow, Move
from luciole.model.schedule import Cursor, OverlapCode, Reason, unpack_entry_traits, unpack_policy
from luciole.model.stride import DueGroup, Step
from luciole.model.trigger import Trigger, jitter_us

#: Gives a trigger's first fire time strictly after an instant, remembered or computed.
NextFire = Callable[[Trigger, Instant], Instant | None]


class Parked(NamedTuple):
    """A schedule that can't be planned, and why (I7)."""

    schedule_id: ScheduleId
    shard: Shard
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TickPlan:
    """What one pass decided: each cursor that is due either moves or is parked."""

    moves: tuple[Move, ...]  #: in the order of the cursors
    parked: tuple[Parked, ...]
    later_us: Instant | None = None  #: the earliest due time of those that must not be planned ahead


class _Rules(NamedTuple):
    """A packed policy, taken apart once for all cursors that carry it."""

    misfire: Misfire
    catch_up_limit: int
    missed_before_us: Instant  #: a fire that was due before it is missed
    overlap: OverlapCode
    priority: int
    flags: int


def plan_tick(
    cursors: Sequence[Cursor],
    *,
    now_us: Instant,
    horizon_us: Instant,
    triggers: Mapping[TriggerId, Trigger | str],
    next_fire: NextFire,
) -> TickPlan:
    """Decide the next step of each due cursor.

    Args:
        cursors: due ones (`due_us <= horizon_us`), any order, each schedule once.
        now_us: the store's clock; lateness is judged by it.
        horizon_us: fires due until then are planned; `now_us`, or later when planning ahead. Overlap is decided by
            what is open, which nobody knows beforehand: only schedules that allow it are planned ahead here.
        triggers: by id; a text instead of a trigger says why it can't be read. Absent ones do not exist.
        next_fire: `Trigger.next_us` behind a memo.
    """
    moves: list[Move] = []
    parked: list[Parked] = []
    later_us: Instant | None = None
    rules_by_policy: dict[int, _Rules] = {}
    next_by_fire: dict[tuple[TriggerId, Instant], Instant | None] = {}  # A burst asks the same again and again.
    for cursor in cursors:
        fire_us = cursor.fire_us
        if cursor.due_us > horizon_us:  # I11: a timer that woke early plans nothing early.
            continue
        try:
            trigger = triggers[cursor.trigger_id]
            if isinstance(trigger, str):
                parked.append(Parked(cursor.schedule_id, cursor.shard, trigger))
                continue
            rules = rules_by_policy.get(cursor.policy_id)
            if rules is None:
                rules = rules_by_policy[cursor.policy_id] = _rules(cursor.policy_id, now_us)
            until_us = horizon_us if rules.overlap is OverlapCode.ALLOW else now_us
            if cursor.due_us > until_us:
                later_us = cursor.due_us if later_us is None else min(later_us, cursor.due_us)
                continue
            memo_key = cursor.trigger_id, fire_us
            if memo_key in next_by_fire:
                next_us = next_by_fire[memo_key]
            else:
                next_us = next_by_fire[memo_key] = next_fire(trigger, fire_us)
            next_due_us = next_us
            if next_us is not None and (bound_us := trigger.jitter_us):
                next_due_us = next_us + jitter_us(bound_us, cursor.schedule_id, next_us)
            if cursor.due_us >= rules.missed_before_us and (next_due_us is None or next_due_us > until_us):
                fires: tuple[Fire, ...] = (Fire(fire_us, cursor.due_us),)
                ledger: tuple[LedgerRow, ...] = ()
            else:
                fires, ledger, next_us, next_due_us = _plan_backlog(cursor, trigger, rules, until_us, next_fire)
        except Exception as problem:  # noqa: BLE001 - I7: whatever one row provokes, it does not stop the others
            parked.append(Parked(cursor.schedule_id, cursor.shard, _reason(cursor, problem)))
            continue
        moves.append(
            Move(
                cursor,
                fires,
                next_us,
                next_due_us,
                rules.overlap,
                rules.priority,
                rules.flags,
                ledger,
            )
        )
    return TickPlan(moves=tuple(moves), parked=tuple(parked), later_us=later_us)


def plan_steps(
    groups: Iterable[DueGroup],
    *,
    now_us: Instant,
    horizon_us: Instant,
    triggers: Mapping[TriggerId, Trigger | str],
    next_fire: NextFire,
) -> tuple[Step, ...]:
    """Decide the next step of groups of due cursors; arguments as for `plan_tick`.

    Only of those where every cursor takes the same plain step: one fire, in time, without jitter. `plan_tick` decides
    the others, cursor by cursor. Where overlap forbids, a step may be taken ahead, too: the store leaves the cursors
    that something is open of, and those are decided when they are due.
    """
    steps = []
    for group in groups:
        trigger = triggers.get(group.trigger_id)
        if trigger is None or isinstance(trigger, str) or trigger.jitter_us:
            continue
        try:
            rules = _rules(group.policy_id, now_us)
            next_us = next_fire(trigger, group.fire_us)
        except Exception:  # noqa: BLE001, S112 - I7: `plan_tick` meets it again, and parks the schedules one by one
            continue
        # What queues or replaces is decided at its due time: an earlier run may have ended by then.
        until_us = horizon_us if rules.overlap in {OverlapCode.ALLOW, OverlapCode.FORBID} else now_us
        is_plain = rules.missed_before_us <= group.due_us <= until_us and (next_us is None or next_us > until_us)
        if is_plain:
            steps.append(Step(group, next_us, next_us, rules.overlap, rules.priority, rules.flags))
    return tuple(steps)


def _rules(policy_id: int, now_us: Instant) -> _Rules:
    policy = unpack_policy(policy_id)
    overlap, priority, flags = unpack_entry_traits(policy_id)
    missed_before_us = now_us - policy.misfire_after_us
    return _Rules(policy.misfire, policy.catch_up_limit, missed_before_us, overlap, priority, flags)


def _reason(cursor: Cursor, problem: Exception) -> str:
    if isinstance(problem, KeyError) and problem.args == (cursor.trigger_id,):
        return f"trigger {cursor.trigger_id} does not exist; define the schedule again"
    if isinstance(problem, LucioleError):
        return f"{problem.code}: {problem}"
    return f"the trigger failed: {type(problem).__name__}: {problem}"


def _due(trigger: Trigger, schedule_id: ScheduleId, fire_us: Instant) -> Instant:
    return fire_us + jitter_us(trigger.jitter_us, schedule_id, fire_us)


def _plan_backlog(
    cursor: Cursor, trigger: Trigger, rules: _Rules, horizon_us: Instant, next_fire: NextFire
) -> tuple[tuple[Fire, ...], tuple[LedgerRow, ...], Instant | None, Instant | None]:
    """Decide several due fire times of one cursor: the missed ones first, then those that are in time."""
    fires: list[Fire] = []
    ledger: list[LedgerRow] = []
    at_us: Instant | None = cursor.fire_us  # The first fire time that has no outcome yet.
    last_missed_us = _last_missed(cursor, trigger, rules.missed_before_us)
    if last_missed_us is not None:
        fires, ledger = _plan_missed(cursor, trigger, rules, last_missed_us)
        at_us = next_fire(trigger, last_missed_us)
    while at_us is not None and len(fires) < limits.CATCH_UP_MAX:
        due_us = cursor.due_us if at_us == cursor.fire_us else _due(trigger, cursor.schedule_id, at_us)
        if due_us > horizon_us:
            return tuple(fires), tuple(ledger), at_us, due_us
        fires.append(Fire(at_us, due_us))
        at_us = next_fire(trigger, at_us)
    # Exhausted, or more than one move may hold (I10): the rest is due at once and planned by the next pass.
    due_next_us = None if at_us is None else _due(trigger, cursor.schedule_id, at_us)
    return tuple(fires), tuple(ledger), at_us, due_next_us


def _last_missed(cursor: Cursor, trigger: Trigger, missed_before_us: Instant) -> Instant | None:
    """Return the last fire time, from the cursor on, that was due before an instant."""
    if cursor.due_us >= missed_before_us:
        return None
    last_us = trigger.previous_us(missed_before_us)
    # Jitter moves a fire by less than the least spacing, so at most the latest one is not missed after all.
    if last_us is not None and _due(trigger, cursor.schedule_id, last_us) >= missed_before_us:
        last_us = trigger.previous_us(last_us)
    # The cursor's own fire is missed, whatever a trigger that was edited or upgraded makes of it today.
    return cursor.fire_us if last_us is None else max(last_us, cursor.fire_us)


def _plan_missed(
    cursor: Cursor, trigger: Trigger, rules: _Rules, last_us: Instant
) -> tuple[list[Fire], list[LedgerRow]]:
    """Apply the misfire policy to the fire times from the cursor's to the last missed one."""
    first_us = cursor.fire_us
    missed = 1 + trigger.count(first_us, last_us)
    run_max = {Misfire.FIRE_ONCE: 1, Misfire.SKIP: 0, Misfire.CATCH_UP: rules.catch_up_limit}[rules.misfire]
    run: list[Instant] = []
    at_us: Instant | None = last_us
    while len(run) < min(run_max, missed) and at_us is not None:
        run.append(at_us)
        at_us = first_us if len(run) == missed - 1 else trigger.previous_us(at_us)
    run.reverse()
    fires = [Fire(fire_us, _due(trigger, cursor.schedule_id, fire_us)) for fire_us in run]
    skipped = missed - len(run)
    if not skipped:
        return fires, []
    last_skipped_us = last_us if not run else first_us if skipped == 1 else trigger.previous_us(run[0])
    assert last_skipped_us is not None  # The cursor's own fire is at or before it.
    reason = Reason.COALESCED if rules.misfire is Misfire.FIRE_ONCE else Reason.MISFIRE
    return fires, [LedgerRow(first_us, last_skipped_us, skipped, reason)]
