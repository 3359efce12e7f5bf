"""New rules of zones: cursors that step to where these put their fire times."""

from luciole.limits import SECOND_US
from luciole.model.plan import LedgerRow, Realigned
from luciole.model.schedule import Cursor, Reason, ScheduleState
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    StoreContract,
    cursor_of,
    executions,
    fire,
    lease_all,
    register,
    scheduled,
    set_state,
)
from luciole.testing.factories import NODE_B, a_move, a_plan, a_schedule

HOUR_US = 3_600 * SECOND_US


class TestRealigning(StoreContract):
    """Moves that count as an edit."""

    async def test_a_cursor_steps_forward_and_back(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        for shift_us in (HOUR_US, -HOUR_US):
            before = await scheduled(a, f"by {shift_us}", in_us=5 * HOUR_US, jitter_us=3)
            fire_us = before.fire_us + shift_us
            assert await b.realign(leases, [Realigned(before, fire_us, fire_us + 2)], rules=None) == 1
            after = await cursor_of(a, f"by {shift_us}")
            assert (after.fire_us, after.due_us) == (fire_us, fire_us + 2)
            assert after.revision > before.revision
            # A plan of before loses, and the same step again changes nothing.
            assert (await a.commit_plan(a_plan(leases, before))).lost == (before.schedule_id,)
            assert await b.realign(leases, [Realigned(before, fire_us, fire_us)], rules=None) == 0
            assert await cursor_of(a, f"by {shift_us}") == after

    async def test_a_fire_time_that_has_its_outcome_never_comes_again(self, harness: StoreHarness) -> None:
        """I1, I4: neither one that ran nor one that is in the ledger."""
        a, _ = harness.clients
        leases = await lease_all(a)
        ran, skipped = await scheduled(a, "ran"), await scheduled(a, "skipped")
        entry = await fire(a, leases, a_move(ran, next_fire_us=ran.fire_us + HOUR_US))
        row = LedgerRow(skipped.fire_us, skipped.fire_us, 1, Reason.OVERLAP)
        move = a_move(skipped, fires=(), ledger=[row], next_fire_us=skipped.fire_us + HOUR_US)
        await a.commit_plan(a_plan(leases, move))
        for name in ("ran", "skipped"):
            before = await cursor_of(a, name)
            first_us = before.fire_us - HOUR_US
            assert await a.realign(leases, [Realigned(before, first_us, first_us)], rules=None) == 0
            assert await a.realign(leases, [Realigned(before, first_us - 1, first_us - 1)], rules=None) == 0
            assert await cursor_of(a, name) == before
            assert await a.realign(leases, [Realigned(before, first_us + 1, first_us + 1)], rules=None) == 1
        assert list(await executions(a)) == [entry.key]

    async def test_a_stale_fence_moves_and_records_nothing(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        stale = await lease_all(a)
        before = await scheduled(a, in_us=HOUR_US)
        assert await a.zone_rules() == {}
        await a.release_leases(stale[:3])
        fresh = await b.acquire_leases(NODE_B, [lease.shard for lease in stale[:3]], ttl_us=60 * SECOND_US)
        moved = await a.realign(stale, [Realigned(before, before.fire_us + 1, before.fire_us + 1)], rules="2026.1")
        # I3: of the shards that changed hands nothing is written.
        assert moved == int(before.shard == 3)
        assert await b.zone_rules() == {3: "2026.1"}
        await b.realign(fresh[:2], (), rules="2026.10")
        assert await a.zone_rules() == {0: "2026.10", 1: "2026.10", 3: "2026.1"}

    async def test_active_cursors_are_read_in_pages(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        fire_us = await a.now_us() + HOUR_US
        await register(a, *(a_schedule(f"n{number}", fire_us=fire_us) for number in range(20)))
        await set_state(a, ScheduleState.PAUSED, "n3")
        found: list[Cursor] = []
        for shard in range(a.shards):
            after = 0
            while page := await b.active_cursors(shard, after=after, limit=2):
                assert len(page) <= 2
                assert {cursor.shard for cursor in page} == {shard}
                assert [cursor.schedule_id for cursor in page] == sorted(cursor.schedule_id for cursor in page)
                after = page[-1].schedule_id
                found += page
        assert len({cursor.schedule_id for cursor in found}) == len(found) == 19
        assert await cursor_of(a, "n5") in found
