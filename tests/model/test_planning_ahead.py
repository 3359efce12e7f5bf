"""Planning ahead of the due time."""

import pytest

from luciole.limits import SECOND_US
from luciole.model.job import JobSpec, Overlap
from luciole.model.planning import TickPlan, plan_tick
from luciole.model.schedule import Cursor, Policy, pack_policy
from luciole.model.trigger import every

NOW_US = 1_767_225_600 * SECOND_US
AHEAD_US = 5 * SECOND_US


def tick(overlap: Overlap, *, due_in_us: int) -> TickPlan:
    due_us = NOW_US + due_in_us
    policy_id = pack_policy(Policy(overlap=overlap), JobSpec(handler="report"))
    cursor = Cursor(0, 1, 0, due_us, due_us, 1, 1, policy_id)
    return plan_tick(
        [cursor],
        now_us=NOW_US,
        horizon_us=NOW_US + AHEAD_US,
        triggers={1: every("1s")},
        next_fire=lambda trigger, after_us: trigger.next_us(after_us),
    )


def test_what_may_overlap_is_planned_up_to_the_horizon() -> None:
    planned = tick(Overlap.ALLOW, due_in_us=2 * SECOND_US)
    (move,) = planned.moves
    assert [fire.due_us - NOW_US for fire in move.fires] == [n * SECOND_US for n in (2, 3, 4, 5)]
    assert planned.later_us is None


@pytest.mark.parametrize("overlap", [Overlap.FORBID, Overlap.QUEUE_ONE, Overlap.REPLACE])
def test_what_must_not_overlap_waits_for_its_due_time(overlap: Overlap) -> None:
    """Goal: a run that ends before the next is due keeps nothing from running, and is not replaced early."""
    early = tick(overlap, due_in_us=2 * SECOND_US)
    due = tick(overlap, due_in_us=0)
    (move,) = due.moves
    assert (early.moves, early.later_us) == ((), NOW_US + 2 * SECOND_US)
    assert [fire.due_us for fire in move.fires] == [NOW_US]
    assert move.next_due_us == NOW_US + SECOND_US
