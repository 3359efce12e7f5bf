"""The contract suite sees what it is there for: each store that is broken in one way turns it red.

The cases that must see it are named: they fail against the twin, and none of them against the memory store itself.
"""

import pytest

from luciole.store.memory import MemoryStore
from luciole.store.spi import Store
from luciole.testing import contract
from luciole.testing.contract.harness import MemoryHarness
from tests.store import twins

#: Each twin, and the cases that must turn red.
GUARDS: dict[type[MemoryStore], tuple[str, ...]] = {
    twins.FenceForgotten: (  # I3: holder and fence guard every write of a holder.
        "TestPlans.test_a_stale_fence_writes_nothing",
        "TestPlans.test_an_expired_lease_writes_nothing_though_nobody_took_it",
        "TestPlans.test_a_refused_shard_does_not_hold_up_the_others",
        "TestDeliveries.test_recording_is_guarded",
        "TestParking.test_parking_is_guarded",
    ),
    twins.HolderForgotten: (
        "TestPlans.test_a_stale_fence_writes_nothing",
        "TestLeases.test_holder_and_fence_are_compared_together",
    ),
    twins.ExpiredRenewed: ("TestLeases.test_an_expired_lease_of_ones_own_is_taken_anew",),
    twins.HalfATick: (  # I2: cursor, execution and entry commit together.
        "TestPlans.test_a_plan_makes_executions_and_entries_and_moves_cursors",
        "TestLeases.test_a_take_over_sees_all_that_the_former_holder_committed",
    ),
    twins.CursorUnmoved: (
        "TestPlans.test_a_plan_makes_executions_and_entries_and_moves_cursors",
        "TestPlans.test_the_same_plan_again_changes_nothing",
    ),
    twins.FireLost: ("TestPlans.test_a_plan_makes_executions_and_entries_and_moves_cursors",),
    twins.DeliveredTwice: (  # I6: one token goes to one session only.
        "TestDeliveries.test_a_delivery_is_recorded_for_one_executor",
        "TestRunning.test_an_attempt_runs_in_one_executor",
    ),
    twins.StaleReportAccepted: (  # I5: the attempt token guards the outcome.
        "TestTries.test_a_report_of_an_earlier_attempt_is_refused",
        "TestEnds.test_an_early_token_is_refused",
    ),
    twins.TerminalRewritten: ("TestEnds.test_the_same_report_again_is_confirmed",),
    twins.SkipUnrecorded: (  # I4: each due fire time has an outcome.
        "TestForbidAndAllow.test_forbid_leaves_out_a_fire_while_one_is_open",
        "TestSteps.test_a_step_may_fire_nothing",
    ),
    twins.OneBlocksAll: ("TestPlans.test_a_cursor_that_moved_does_not_hold_up_the_others",),
    twins.ManualUnseen: ("TestManualOverlap.test_a_plan_that_read_before_a_run_by_hand_loses",),
    twins.SuccessorForgotten: (
        "TestQueueOne.test_the_end_of_one_releases_the_waiting_one",
        "TestReplace.test_the_open_one_is_asked_to_end_and_the_new_one_waits",
    ),
    twins.CancelForgotten: ("TestCancel.test_a_cancelled_execution_is_not_delivered",),
    twins.OnlyTheTopSeen: ("TestReadyRoutes.test_what_a_backlog_hides_is_found_by_its_route",),
    twins.RouteForgotten: ("TestReadyRoutes.test_what_was_in_memory_has_a_route_once_it_is_polled",),
    twins.KeyForgotten: ("TestEnqueue.test_a_request_key_outlives_the_end_of_its_execution",),
    twins.BytesMangled: ("TestBytes.test_results_come_back_byte_for_byte",),
    twins.PrunesTheOpen: ("TestPrune.test_open_executions_stay_whatever_their_age",),
    twins.EditFiresAgain: (  # I1: an instant that has an execution never gets a second one.
        "TestPlans.test_an_execution_that_exists_brings_no_second_entry",
        "TestEdits.test_an_edit_never_fires_twice_for_one_instant",
    ),
    twins.PlannedAheadKept: (
        "TestEdits.test_an_edit_withdraws_what_was_planned_ahead",
        "TestStates.test_pausing_and_deleting_withdraw_what_was_planned_ahead",
    ),
}


class TwinHarness(MemoryHarness):
    """Puts a twin in the memory store's place."""

    twin: type[MemoryStore] = MemoryStore

    def _client(self, shards: int | None) -> Store:
        return self.twin(self.state, self.clock, shards=shards)


async def red(twin: type[MemoryStore], cases: tuple[str, ...]) -> list[str]:
    """Run cases, each on a fresh store; return those that failed."""
    harness: type[TwinHarness] = type(twin.__name__, (TwinHarness,), {"twin": twin})
    failed = []
    for case in cases:
        class_name, _, name = case.partition(".")
        made = await harness.make()
        try:
            await getattr(getattr(contract, class_name)(), name)(made)
        except (AssertionError, ValueError):
            failed.append(case)
        await made.close()
    return failed


@pytest.mark.parametrize("twin", GUARDS, ids=lambda twin: twin.__name__)
async def test_a_broken_twin_turns_its_guards_red(twin: type[MemoryStore]) -> None:
    assert await red(MemoryStore, GUARDS[twin]) == []
    assert await red(twin, GUARDS[twin]) == [*GUARDS[twin]]
