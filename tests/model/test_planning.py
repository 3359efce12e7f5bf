"""What becomes of due fire times, against an oracle that lists them one by one."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luciole import limits
from luciole.errors import InvalidTrigger
from luciole.limits import HOUR_US, SECOND_US
from luciole.model.bounds import make_bounds
from luciole.model.elapsed_trigger import IntervalTrigger, OnceTrigger
from luciole.model.instant import to_datetime
from luciole.model.job import JobSpec, Misfire, Overlap
from luciole.model.plan import Move
from luciole.model.planning import TickPlan, plan_tick
from luciole.model.schedule import Cursor, Policy, Reason, pack_policy
from luciole.model.trigger import Trigger, cron, every, jitter_us

NOW_US = 1_767_225_600 * SECOND_US


def a_cursor(fire_us: int, policy: Policy, *, due_us: int | None = None, schedule_id: int = 1) -> Cursor:
    return Cursor(
        shard=0,
        schedule_id=schedule_id,
        revision=0,
        fire_us=fire_us,
        due_us=fire_us if due_us is None else due_us,
        trigger_id=1,
        job_id=1,
        policy_id=pack_policy(policy, JobSpec(handler="report")),
    )


def plan(
    cursors: Iterable[Cursor], triggers: Mapping[int, Trigger | str], *, now_us: int = NOW_US, ahead_us: int = 0
) -> TickPlan:
    return plan_tick(
        tuple(cursors),
        now_us=now_us,
        horizon_us=now_us + ahead_us,
        triggers=triggers,
        next_fire=lambda trigger, after_us: trigger.next_us(after_us),
    )


def listed(trigger: Trigger, first_us: int, schedule_id: int, until_us: int) -> list[tuple[int, int]]:
    """List all due fire times from a cursor's on, with their due times."""
    fires = []
    at_us: int | None = first_us
    while at_us is not None:
        due_us = at_us + jitter_us(trigger.jitter_us, schedule_id, at_us)
        if due_us > until_us:
            break
        fires.append((at_us, due_us))
        at_us = trigger.next_us(at_us)
    return fires


def outcomes_of(trigger: Trigger, move: Move) -> list[tuple[int, str]]:
    """Spell a move out: each fire time with what became of it."""
    found = [(fire.fire_us, "run") for fire in move.fires]
    for row in move.ledger:
        at_us: int | None = row.first_us
        times = []
        while at_us is not None and at_us <= row.last_us:
            times.append(at_us)
            at_us = trigger.next_us(at_us)
        assert len(times) == row.fires
        found += [(time_us, row.reason.value) for time_us in times]
    return sorted(found)


POLICIES = st.one_of(
    st.builds(
        Policy,
        misfire=st.sampled_from([Misfire.FIRE_ONCE, Misfire.SKIP]),
        misfire_after_us=st.sampled_from([0, SECOND_US, 60 * SECOND_US]),
    ),
    st.builds(
        Policy,
        misfire=st.just(Misfire.CATCH_UP),
        catch_up_limit=st.integers(1, 40),
        misfire_after_us=st.sampled_from([0, SECOND_US, 60 * SECOND_US]),
        overlap=st.just(Overlap.ALLOW),
    ),
)
TRIGGERS = st.sampled_from(
    [
        every("1s"),
        every("7s", jitter="5s"),
        every("60s", jitter="59s"),
        every("500ms"),
        cron("*/10 * * * * *", seconds="first"),
        cron("*/5 * * * *", tz="Europe/Berlin"),
        cron("* * * * *", jitter="30s"),
    ]
)


@given(TRIGGERS, POLICIES, st.integers(0, 700 * SECOND_US), st.integers(1, 50))
def test_each_due_fire_time_gets_exactly_one_outcome(
    trigger: Trigger, policy: Policy, late_us: int, schedule_id: int
) -> None:
    # I4: compared with all due fire times listed, and each judged by its own lateness.
    first_us = trigger.next_us(NOW_US - late_us)
    assert first_us is not None
    due_us = first_us + jitter_us(trigger.jitter_us, schedule_id, first_us)
    cursor = a_cursor(first_us, policy, due_us=due_us, schedule_id=schedule_id)
    tick = plan([cursor], {1: trigger})
    due = listed(trigger, first_us, schedule_id, NOW_US)
    if not due:
        assert tick == TickPlan(moves=(), parked=())  # I11: nothing before it is due.
        return
    missed = [time_us for time_us, at_us in due if at_us < NOW_US - policy.misfire_after_us]
    keep = {Misfire.FIRE_ONCE: 1, Misfire.SKIP: 0, Misfire.CATCH_UP: policy.catch_up_limit}[policy.misfire]
    run = set(missed[max(0, len(missed) - keep) :]) | {time_us for time_us, _ in due if time_us not in missed}
    reason = Reason.COALESCED if policy.misfire is Misfire.FIRE_ONCE else Reason.MISFIRE
    wanted = [(time_us, "run" if time_us in run else reason.value) for time_us, _ in due]
    (move,) = tick.moves
    planned = outcomes_of(trigger, move)
    assert planned == wanted[: len(planned)]
    if len(move.fires) < limits.CATCH_UP_MAX:
        assert len(planned) == len(wanted)
        assert move.next_fire_us == trigger.next_us(due[-1][0])
        assert move.next_due_us is not None
        assert move.next_due_us > NOW_US
    else:  # I10: the rest is planned by the next pass.
        assert move.next_fire_us == wanted[len(planned)][0]
    assert [fire.due_us - fire.fire_us for fire in move.fires] == [
        jitter_us(trigger.jitter_us, schedule_id, fire.fire_us) for fire in move.fires
    ]


class Counting(IntervalTrigger):
    """A trigger that counts how often it is asked."""

    asked: ClassVar[int] = 0

    def next_us(self, after_us: int) -> int | None:
        Counting.asked += 1
        return super().next_us(after_us)

    def previous_us(self, before_us: int) -> int | None:
        Counting.asked += 1
        return super().previous_us(before_us)


def test_six_hours_of_seconds_are_one_run_and_one_row_without_listing_them() -> None:
    trigger = Counting(interval_us=SECOND_US, anchor_us=0, bounds=make_bounds(start=None, end=None, jitter=None))
    first_us = NOW_US - 6 * HOUR_US
    policy = Policy(misfire=Misfire.FIRE_ONCE, misfire_after_us=500_000)
    (move,) = plan([a_cursor(first_us, policy)], {1: trigger}).moves
    assert [fire.fire_us for fire in move.fires] == [NOW_US - SECOND_US, NOW_US]
    assert move.ledger == ((first_us, NOW_US - 2 * SECOND_US, 21_599, Reason.COALESCED),)
    assert 0 < Counting.asked < 10


class Broken(OnceTrigger):
    """A trigger that fails whenever it is asked."""

    def next_us(self, after_us: int) -> int:
        raise RuntimeError(f"no fire after {after_us}")


def test_one_bad_row_is_parked_and_the_others_go_on() -> None:
    # I7: a trigger that can't be read, one that is gone, one that fails, a policy of the future.
    good = a_cursor(NOW_US, Policy())
    cursors = [good, *(good._replace(schedule_id=number, trigger_id=number) for number in (2, 3, 4))]
    cursors.append(good._replace(schedule_id=5, policy_id=3 << 2))
    unread = "invalid_trigger: cron: nobody understands it"
    broken = Broken(at_us=NOW_US)
    tick = plan(cursors, {1: every("60s"), 2: unread, 4: broken})
    reasons = {row.schedule_id: row.reason for row in tick.parked}
    assert reasons[2] == unread
    assert reasons[3].startswith("trigger 3 does not exist")
    assert reasons[4].startswith("the trigger failed: RuntimeError")
    assert reasons[5].startswith("invalid_value: policy")
    assert [move.cursor.schedule_id for move in tick.moves] == [1]


def test_an_early_wake_up_plans_nothing() -> None:
    # I11: a timer with 10 ms left.
    cursor = a_cursor(NOW_US + 10_000, Policy(overlap=Overlap.ALLOW))
    assert plan([cursor], {1: every("60s")}) == TickPlan(moves=(), parked=())
    assert len(plan([cursor], {1: every("60s")}, ahead_us=SECOND_US).moves) == 1


def test_two_schedules_of_one_trigger_and_job_both_fire() -> None:
    cursors = [a_cursor(NOW_US, Policy(), schedule_id=number) for number in (1, 2)]
    assert [move.cursor.schedule_id for move in plan(cursors, {1: every("60s")}).moves] == [1, 2]


@pytest.mark.parametrize("end", [True, False])
def test_an_exhausted_trigger_ends_its_schedule(*, end: bool) -> None:
    trigger = every("60s", end=None if not end else to_datetime(NOW_US))
    (move,) = plan([a_cursor(NOW_US, Policy())], {1: trigger}).moves
    assert (move.next_fire_us is None) == end
    assert (move.next_due_us is None) == end


def test_an_unreadable_trigger_says_why() -> None:
    with pytest.raises(InvalidTrigger):
        cron("nobody understands it")
