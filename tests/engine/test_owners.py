"""Who owns a shard, and by whose clock: nodes that lose what they hold, and hosts whose clocks are set."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from luciole.limits import HOUR_US, MINUTE_US, SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.instant import Instant
from luciole.model.job import Overlap
from luciole.model.schedule import Policy, ScheduleState
from luciole.model.trigger import every
from luciole.node import Node, Surroundings
from luciole.runtime.chance import seeded_chance
from luciole.settings import Settings
from luciole.store.memory import MemoryStore
from luciole.testing.clock import FakeClock
from tests.engine.scripted import ScriptedExecutor, SmallCluster, linger

E1 = "1" * 16
YEAR_US = 365 * 24 * HOUR_US


@dataclass
class Host:
    """A host on the time of the test whose wall clock somebody sets."""

    clock: FakeClock
    shift_us: int = 0
    node: Node = field(init=False)

    def now_us(self) -> Instant:
        return self.clock.now_us() + self.shift_us

    def monotonic_us(self) -> int:
        return self.clock.monotonic_us()

    async def sleep(self, duration_us: int) -> None:
        await self.clock.sleep(duration_us)

    async def wait(self, event: asyncio.Event, timeout_us: int) -> bool:
        return await self.clock.wait(event, timeout_us)

    async def start(self, cluster: SmallCluster) -> None:
        """Start a node here; its store keeps the right time."""
        own = MemoryStore(cluster.state, cluster.clock, shards=cluster.shards)
        await own.open()
        self.node = Node(Settings(), own, Surroundings(clock=self, chance=seeded_chance(1)))
        cluster.nodes.append(self.node)
        await self.node.start()


@pytest.mark.parametrize("shift_us", [-YEAR_US, 174 * YEAR_US], ids=["a year back", "to 2200"])
async def test_a_host_whose_clock_is_set_while_it_runs_fires_as_before(shift_us: int) -> None:
    """Goal: neither does nothing fire, nor do millions: the store's clock alone decides."""
    cluster = SmallCluster()
    await cluster.reader.open()
    host = Host(cluster.clock)
    await host.start(cluster)
    await cluster.schedule("secondly", every("1s").to_spec(), policy=Policy(overlap=Overlap.ALLOW))
    executor = ScriptedExecutor(cluster.clock, E1)
    await executor.join(host.node)
    await cluster.clock.advance(5 * SECOND_US)
    host.shift_us = shift_us
    await cluster.clock.advance(20 * SECOND_US)
    views = await cluster.executions()
    held = host.node.engine.leases.trusted()
    await cluster.stop()
    assert len(held) == cluster.shards
    assert [(view.state, view.attempt) for view in views] == [(ExecutionState.SUCCEEDED, 1)] * 25
    assert max(view.created_us - view.key.fire_us for view in views) < SECOND_US


async def test_a_node_whose_lease_was_taken_gives_the_shard_up_with_its_next_renewal() -> None:
    # I3: holder and fence, never time: the lease in the store is as fresh as before.
    cluster = SmallCluster()
    node = await cluster.start()
    await cluster.clock.advance(2 * SECOND_US)
    taken = replace(cluster.state.leases[1], holder="f" * 16, fence=2, expires_us=cluster.clock.now_us() + HOUR_US)
    cluster.state.leases[1] = taken
    await cluster.clock.advance(node.settings.lease_ttl_us // 2)
    trusted = [lease.shard for lease in node.engine.leases.trusted()]
    await cluster.stop()
    assert trusted == [0, 2, 3]
    assert (cluster.state.leases[1], node.telemetry.counters["leases_lost"]) == (taken, 1)


async def test_each_start_of_a_node_has_an_identity_of_its_own() -> None:
    """Goal: processes that share a host's name, or a restarted one, are never taken for each other."""
    cluster = SmallCluster()
    await cluster.reader.open()
    nodes = [Node(Settings(), cluster.reader, Surroundings(clock=cluster.clock)) for _ in range(50)]
    assert len({node.node_id for node in nodes}) == 50
    cluster.nodes += nodes[:2]
    for node in cluster.nodes:
        await node.start()
    await cluster.clock.advance(5 * SECOND_US)
    shares = [{lease.shard for lease in node.engine.leases.trusted()} for node in cluster.nodes]
    await cluster.stop()
    assert [len(share) for share in shares] == [2, 2]
    assert shares[0].isdisjoint(shares[1])


async def test_a_run_lives_as_long_as_its_heartbeat_says() -> None:
    """Goal: no time-out of everybody's ends or repeats a healthy run, however long it takes."""
    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    await executor.join(node)
    key = await cluster.enqueue()
    await cluster.clock.advance(15 * MINUTE_US)
    assert (await cluster.view(key)).state is ExecutionState.RUNNING
    await executor.finish(key)
    await cluster.clock.advance(1 * SECOND_US)
    view = await cluster.view(key)
    await cluster.stop()
    assert (view.state, view.attempt, len(executor.starts)) == (ExecutionState.SUCCEEDED, 1, 1)


async def test_what_ended_is_deleted_by_itself_after_its_retention() -> None:
    """Goal: history is bounded unless somebody asks for more: the default deletes."""
    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1)
    await executor.join(node)
    old, fresh = await cluster.enqueue(), await cluster.enqueue()
    await cluster.clock.advance(1 * SECOND_US)
    assert {view.state for view in await cluster.executions()} == {ExecutionState.SUCCEEDED}
    row = cluster.state.executions[old.shard, old.schedule_id][old]
    assert row.finished_us is not None
    row.finished_us -= node.settings.retention_us
    over = [await cluster.schedule(name, fire_us=cluster.clock.now_us() + 24 * HOUR_US) for name in ("old", "fresh")]
    for schedule_id in over:
        await cluster.reader.set_schedule_state(
            schedule_id, ScheduleState.DELETED, reason=None, fire_us=None, due_us=None, revision=0
        )
    cluster.state.schedules[over[0]].updated_us -= node.settings.retention_us
    await executor.kill()
    await cluster.clock.advance(11 * MINUTE_US)
    kept = {view.key for view in await cluster.executions()}
    await cluster.stop()
    assert list(cluster.state.schedules) == over[1:]
    assert node.settings.retention_us <= 31 * 24 * HOUR_US
    assert kept == {fresh}
