"""Who is alive, and who holds which shard."""

import asyncio
from dataclasses import replace

from luciole import limits
from luciole.errors import FenceError, InvalidValue, StoreCorrupt
from luciole.limits import SECOND_US
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import Delivery
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    TTL_US,
    StoreContract,
    cursor_of,
    lease_all,
    open_keys,
    raises,
    scheduled,
    shards_of,
)
from luciole.testing.factories import NODE_A, NODE_B, a_node, a_plan

EXECUTOR = "e" * 16
NODE_TTL_US = 10 * SECOND_US


class TestNodes(StoreContract):
    """Heartbeats."""

    async def test_a_heartbeat_tells_who_is_alive_and_who_holds_what(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        before_us = await a.now_us()
        await b.beat(a_node(NODE_B, seen_us=1, telemetry='{"lag": 1}'), node_ttl_us=NODE_TTL_US)
        (lease,) = await b.acquire_leases(NODE_B, [1], ttl_us=TTL_US)
        cluster = await a.beat(a_node(NODE_A), node_ttl_us=NODE_TTL_US)
        assert [node.node_id for node in cluster.nodes] == [NODE_A, NODE_B]
        assert [row.shard for row in cluster.leases] == list(shards_of(a))
        assert [row.holder for row in cluster.leases] == [None, NODE_B, None, None]
        assert (cluster.leases[1].fence, cluster.leases[1].expires_us) == (lease.fence, lease.expires_us)
        assert cluster.leases[0].expires_us == 0
        assert all(before_us <= node.seen_us <= cluster.now_us for node in cluster.nodes)
        assert cluster.nodes[1] == a_node(NODE_B, seen_us=cluster.nodes[1].seen_us, telemetry='{"lag": 1}')

    async def test_a_node_that_is_silent_is_left_out_until_it_is_heard_again(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        await b.beat(a_node(NODE_B), node_ttl_us=NODE_TTL_US)
        await harness.advance(NODE_TTL_US)
        silent = await a.beat(a_node(NODE_A), node_ttl_us=NODE_TTL_US)
        await b.beat(a_node(NODE_B), node_ttl_us=NODE_TTL_US)
        again = await a.beat(a_node(NODE_A), node_ttl_us=NODE_TTL_US)
        assert [node.node_id for node in silent.nodes] == [NODE_A]
        assert [node.node_id for node in again.nodes] == [NODE_A, NODE_B]

    async def test_a_node_that_is_silent_for_ten_times_as_long_is_forgotten(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        await b.beat(a_node(NODE_B), node_ttl_us=NODE_TTL_US)
        await harness.advance(9 * NODE_TTL_US)
        await a.beat(a_node(NODE_A), node_ttl_us=NODE_TTL_US)
        kept = await a.cluster(node_ttl_us=100 * NODE_TTL_US)
        await harness.advance(NODE_TTL_US)
        await a.beat(a_node(NODE_A), node_ttl_us=NODE_TTL_US)
        forgotten = await a.cluster(node_ttl_us=100 * NODE_TTL_US)
        assert [node.node_id for node in kept.nodes] == [NODE_A, NODE_B]
        assert [node.node_id for node in forgotten.nodes] == [NODE_A]

    async def test_who_is_no_node_sees_the_cluster_too(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        await a.beat(a_node(NODE_A), node_ttl_us=NODE_TTL_US)
        await lease_all(a)
        beat = await a.beat(a_node(NODE_A), node_ttl_us=NODE_TTL_US)
        seen = await b.cluster(node_ttl_us=NODE_TTL_US)
        assert (seen.nodes, seen.leases) == (beat.nodes, beat.leases)

    async def test_a_node_that_leaves_frees_its_leases_and_their_fences_stay(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        await a.beat(a_node(NODE_A), node_ttl_us=NODE_TTL_US)
        before = await a.acquire_leases(NODE_A, [0, 1], ttl_us=TTL_US)
        (other,) = await b.acquire_leases(NODE_B, [2], ttl_us=TTL_US)
        await a.leave(NODE_A)
        await a.leave(NODE_A)
        cluster = await b.cluster(node_ttl_us=NODE_TTL_US)
        assert cluster.nodes == ()
        assert [row.holder for row in cluster.leases] == [None, None, NODE_B, None]
        assert [row.fence for row in cluster.leases] == [before[0].fence, before[1].fence, other.fence, 0]

    async def test_missing_lease_rows_stop_everybody(self, harness: StoreHarness) -> None:
        """Goal: after a partial restore nobody fires everything because nobody seems to hold it."""
        a, b = harness.clients
        await harness.lose_lease_row(2)
        with raises(StoreCorrupt):
            await a.beat(a_node(NODE_A), node_ttl_us=NODE_TTL_US)
        with raises(StoreCorrupt):
            await b.cluster(node_ttl_us=NODE_TTL_US)
        assert await b.acquire_leases(NODE_B, [2], ttl_us=TTL_US) == ()

    async def test_a_lost_lease_row_comes_back_in_doubt_and_under_a_higher_fence(self, harness: StoreHarness) -> None:
        """Goal: repair lets nodes start again, and gives nobody a lease that somebody had before (I3).

        Method: `a` holds all shards when one row is lost; it is restored, and `b` takes it.
        """
        a, b = harness.clients
        held = await lease_all(a, NODE_A)
        before = await a.cluster(node_ttl_us=NODE_TTL_US)
        await harness.lose_lease_row(2)
        (repaired,) = await b.repair()
        assert repaired.subject == "lease"
        assert "1 of 4 rows were missing (shards 2)" in repaired.text
        after = await a.cluster(node_ttl_us=NODE_TTL_US)
        assert [row for row in after.leases if row.shard != 2] == [row for row in before.leases if row.shard != 2]
        restored = after.leases[2]
        assert restored.holder not in {None, NODE_A}  # It ran out: what ran under it is in doubt.
        assert restored.expires_us <= after.now_us
        assert restored.fence > held[2].fence
        assert [lease.shard for lease in await a.renew_leases(held, ttl_us=TTL_US)] == [0, 1, 3]
        (taken,) = await b.acquire_leases(NODE_B, [2], ttl_us=TTL_US)
        # I3: no holder can meet a (holder, fence) of its past.
        assert taken.fence == restored.fence + 1

    async def test_a_repair_changes_nothing_where_nothing_is_missing(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        assert await a.repair() == ()
        await lease_all(a, NODE_A)
        for shard in (0, 3):
            await harness.lose_lease_row(shard)
        answers = await asyncio.gather(a.repair(), b.repair())
        assert sorted(len(answer) for answer in answers) == [0, 1]
        before = await a.cluster(node_ttl_us=NODE_TTL_US)
        assert await b.repair() == ()
        assert (await b.cluster(node_ttl_us=NODE_TTL_US)).leases == before.leases

    async def test_clients_see_one_clock(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        before_us = await a.now_us()
        await harness.advance(5 * SECOND_US)
        after_us = await b.now_us()
        assert 5 * SECOND_US <= after_us - before_us < 60 * SECOND_US


class TestLeases(StoreContract):
    """Holds of shards."""

    async def test_free_shards_are_taken_with_a_higher_fence(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        before_us = await a.now_us()
        leases = await a.acquire_leases(NODE_A, [3, 1, 1], ttl_us=TTL_US)
        assert [(lease.shard, lease.holder, lease.fence) for lease in leases] == [(1, NODE_A, 1), (3, NODE_A, 1)]
        after_us = await b.now_us()
        assert all(before_us <= lease.expires_us - TTL_US <= after_us for lease in leases)

    async def test_a_held_shard_is_not_taken(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        await a.acquire_leases(NODE_A, [0, 1], ttl_us=TTL_US)
        taken = await b.acquire_leases(NODE_B, shards_of(b), ttl_us=TTL_US)
        again = await a.acquire_leases(NODE_A, shards_of(a), ttl_us=TTL_US)
        assert [lease.shard for lease in taken] == [2, 3]
        assert again == ()

    async def test_an_expired_lease_is_taken_over(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        (stale,) = await a.acquire_leases(NODE_A, [0], ttl_us=10 * SECOND_US)
        await harness.advance(10 * SECOND_US)
        (fresh,) = await b.acquire_leases(NODE_B, [0], ttl_us=TTL_US)
        assert (fresh.holder, fresh.fence) == (NODE_B, stale.fence + 1)

    async def test_an_expired_lease_of_ones_own_is_taken_anew(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        (stale,) = await a.acquire_leases(NODE_A, [0], ttl_us=10 * SECOND_US)
        await harness.advance(10 * SECOND_US)
        # I3: time decides when a new hold may start, never that an old one goes on.
        assert await a.renew_leases([stale], ttl_us=TTL_US) == ()
        (fresh,) = await a.acquire_leases(NODE_A, [0], ttl_us=TTL_US)
        assert (fresh.holder, fresh.fence) == (NODE_A, stale.fence + 1)

    async def test_a_renewed_lease_outlives_its_first_end(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await a.acquire_leases(NODE_A, [0, 1], ttl_us=300 * SECOND_US)
        await harness.advance(200 * SECOND_US)
        before_us = await a.now_us()
        renewed = await a.renew_leases([*reversed(leases)], ttl_us=300 * SECOND_US)
        repeated = await a.renew_leases(leases, ttl_us=300 * SECOND_US)
        await harness.advance(200 * SECOND_US)
        assert [(lease.shard, lease.fence) for lease in renewed] == [(0, 1), (1, 1)]
        assert [lease.shard for lease in repeated] == [0, 1]
        assert all(lease.expires_us >= before_us + 300 * SECOND_US for lease in renewed)
        assert await b.acquire_leases(NODE_B, [0, 1], ttl_us=TTL_US) == ()

    async def test_holder_and_fence_are_compared_together(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        (stale,) = await a.acquire_leases(NODE_A, [0], ttl_us=10 * SECOND_US)
        await harness.advance(10 * SECOND_US)
        (fresh,) = await b.acquire_leases(NODE_B, [0], ttl_us=TTL_US)
        forged = [stale, replace(stale, fence=fresh.fence), replace(stale, holder=NODE_B), replace(fresh, fence=0)]
        for lease in forged:
            assert await a.renew_leases([lease], ttl_us=TTL_US) == ()
        assert [lease.shard for lease in await b.renew_leases([fresh], ttl_us=TTL_US)] == [0]

    async def test_past_the_holders_own_deadline_nothing_is_sent(self, harness: StoreHarness) -> None:
        """Goal: a process that was stopped after its look at its leases writes nothing, though the store would let it.

        Method: leases that the store holds for good, and whose holder trusts them no more.
        """
        # I3: the store's fence is the last guard, not the first.
        a, b = harness.clients
        cursor = await scheduled(a)
        leases = await lease_all(a)
        over = [replace(lease, trusted_until_us=0) for lease in leases]
        (entry,) = (await a.commit_plan(a_plan(leases, cursor))).entries
        again = await cursor_of(a)
        before = await open_keys(b)
        delivery = Delivery(entry.key, entry.attempt, EXECUTOR, entry.due_us)
        for guarded in (
            lambda: a.commit_plan(a_plan(over, again)),
            lambda: b.commit_plan(a_plan(over, again)),
            lambda: a.record_deliveries(over, [delivery]),
            lambda: a.park_schedules(over, [(again.schedule_id, again.shard, "unreadable")]),
            lambda: a.renew_leases(over, ttl_us=2 * TTL_US),
        ):
            with raises(FenceError):
                await guarded()
        assert (await a.open_entries(shards_of(a), after=None, limit=10))[0].delivered is False
        assert (await cursor_of(b), await open_keys(b)) == (again, before)
        # Trusted, the same is written.
        assert await a.record_deliveries(leases, [delivery]) == (entry.key,)

    async def test_a_lost_lease_is_absent_among_the_renewed(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        kept, lost, other = await a.acquire_leases(NODE_A, [0, 1, 2], ttl_us=TTL_US)
        await a.release_leases([lost])
        await b.acquire_leases(NODE_B, [1], ttl_us=TTL_US)
        renewed = await a.renew_leases([other, lost, kept], ttl_us=TTL_US)
        assert [lease.shard for lease in renewed] == [0, 2]

    async def test_a_released_shard_is_free_at_once(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await a.acquire_leases(NODE_A, [0, 1], ttl_us=TTL_US)
        await a.release_leases(leases)
        taken = await b.acquire_leases(NODE_B, [0, 1], ttl_us=TTL_US)
        assert [lease.fence for lease in taken] == [lease.fence + 1 for lease in leases]

    async def test_a_lease_that_was_lost_is_not_released(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        (stale,) = await a.acquire_leases(NODE_A, [0], ttl_us=10 * SECOND_US)
        await harness.advance(10 * SECOND_US)
        (fresh,) = await b.acquire_leases(NODE_B, [0], ttl_us=TTL_US)
        await a.release_leases([stale, replace(stale, fence=fresh.fence), replace(fresh, fence=stale.fence)])
        assert [lease.shard for lease in await b.renew_leases([fresh], ttl_us=TTL_US)] == [0]

    async def test_two_nodes_that_race_share_the_shards(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        of_a, of_b = await asyncio.gather(lease_all(a, NODE_A), lease_all(b, NODE_B))
        assert sorted(lease.shard for lease in (*of_a, *of_b)) == list(shards_of(a))

    async def test_a_take_over_sees_all_that_the_former_holder_committed(self, harness: StoreHarness) -> None:
        """Goal: no entry is committed behind the back of the new holder, who loads the open ones once.

        Method: the plan of `a` is held just before its commit while its lease ends and `b` takes over.
        """
        a, b = harness.clients
        cursor = await scheduled(a)
        leases = await a.acquire_leases(NODE_A, [cursor.shard], ttl_us=10 * SECOND_US)

        async def take_over_and_load() -> tuple[list[int], list[ExecutionKey]]:
            taken = await b.acquire_leases(NODE_B, [cursor.shard], ttl_us=TTL_US)
            return [lease.fence for lease in taken], await open_keys(b)

        outcome, (fences, loaded) = await harness.interleave(
            a.commit_plan(a_plan(leases, cursor)), take_over_and_load(), between_us=10 * SECOND_US
        )
        assert fences == [2]
        assert loaded == [entry.key for entry in outcome.entries]

    async def test_shards_that_do_not_exist_are_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for shards in ([a.shards], [-1], [0] * (limits.SHARDS_MAX + 1)):
            with raises(InvalidValue):
                await a.acquire_leases(NODE_A, shards, ttl_us=TTL_US)
