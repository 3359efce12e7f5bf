"""Failures of the field, each played through on a small cluster whose time the test owns."""

import asyncio
from itertools import pairwise

import pytest

from luciole.errors import ClockSkew, StoreCorrupt
from luciole.limits import HOUR_US, MS_US, SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.instant import to_datetime
from luciole.model.job import EntryFlag, JobSpec, Overlap, Retry
from luciole.model.outbox import AttemptOutcome
from luciole.model.schedule import Policy, ScheduleState
from luciole.model.trigger import every, once
from luciole.node import Node, Surroundings
from luciole.runtime.chance import seeded_chance
from luciole.settings import Settings
from luciole.store.memory import MemoryStore
from luciole.store.reads import ScheduleFilter
from luciole.store.spi import Store
from luciole.testing.clock import FakeClock
from luciole.wire.messages import Delivered
from tests.engine.scripted import ScriptedExecutor, SmallCluster, crash, linger
from tests.engine.unreliable import Unreliables, UnreliableStore

E1, E2 = "1" * 16, "2" * 16


async def test_a_one_off_fires_once_however_often_its_node_restarts() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    moment_us = cluster.clock.now_us() + 2 * SECOND_US
    await cluster.schedule("once", once(to_datetime(moment_us)).to_spec())
    executor = ScriptedExecutor(cluster.clock, E1)
    await executor.join(node)
    await cluster.clock.advance(2 * SECOND_US)
    await crash(node)
    other = await cluster.start()
    await executor.join(other)
    await cluster.clock.advance(20 * SECOND_US)
    (view,) = await cluster.executions()
    (schedule,) = (await cluster.reader.list_schedules(ScheduleFilter())).rows
    assert (view.state, schedule.state) == (ExecutionState.SUCCEEDED, ScheduleState.EXHAUSTED)
    assert len(executor.starts) == 1


async def test_a_fire_time_between_two_holders_fires_late_and_once() -> None:
    # I4: the owner stops at 57.4 s, the next leads from 60.7 s on.
    cluster = SmallCluster()
    node = await cluster.start()
    schedule_id = await cluster.schedule("minutely")
    await cluster.clock.advance(57_400 * MS_US)
    await crash(node)
    other = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1)
    await executor.join(other)
    await cluster.clock.advance(8 * SECOND_US)
    views = await cluster.executions()
    assert [view.key.schedule_id for view in views] == [schedule_id]
    assert views[0].key.fire_us == cluster.clock.now_us() // (60 * SECOND_US) * 60 * SECOND_US
    assert views[0].state is ExecutionState.SUCCEEDED


async def test_a_killed_nodes_shards_fire_elsewhere_within_five_seconds() -> None:
    cluster = SmallCluster()
    first = await cluster.start(2)
    for number in range(12):
        await cluster.schedule(f"secondly-{number}", every("1s").to_spec())
    executor = ScriptedExecutor(cluster.clock, E1)
    for node in cluster.nodes:
        await executor.join(node, credits_=50)
    await cluster.clock.advance(5 * SECOND_US)
    await crash(first)
    died_us = cluster.clock.now_us()
    await cluster.clock.advance(10 * SECOND_US)
    fired = {view.key.schedule_id: 0 for view in await cluster.executions()}
    for view in await cluster.executions():
        if view.key.fire_us > died_us:
            fired[view.key.schedule_id] = max(fired[view.key.schedule_id], 1)
            assert view.created_us - max(view.key.fire_us, died_us) <= 5 * SECOND_US
    await cluster.stop()
    assert set(fired.values()) == {1}


async def test_a_newcomer_gets_its_share_in_about_two_seconds_and_nothing_moves_afterwards() -> None:
    cluster = SmallCluster(shards=32)
    await cluster.start()
    await cluster.clock.advance(3 * SECOND_US)
    await cluster.start(2)
    await cluster.clock.advance(2_500 * MS_US)
    shares = [len(node.engine.leases.trusted()) for node in cluster.nodes]
    fences = [state.fence for state in cluster.state.leases.values()]
    await cluster.clock.advance(30 * SECOND_US)
    assert sorted(shares) == [10, 11, 11]
    assert [state.fence for state in cluster.state.leases.values()] == fences
    await cluster.stop()


async def test_a_node_told_nothing_for_longer_than_its_lease_writes_nothing() -> None:
    """Method: its store hangs for three leases, another node takes over; then its verbs get through again."""
    cluster = SmallCluster()
    unreliable = Unreliables(cluster.clock)
    stalled = await cluster.start(store=unreliable.put)
    await cluster.schedule("secondly", every("1s").to_spec())
    await cluster.clock.advance(2 * SECOND_US)
    unreliable.stores[0].frozen = asyncio.Event()
    other = await cluster.start()
    await cluster.clock.advance(9 * SECOND_US)
    assert stalled.engine.leases.trusted() == ()
    assert len(other.engine.leases.trusted()) == cluster.shards
    unreliable.stores[0].frozen.set()
    unreliable.stores[0].frozen = None
    unreliable.stores[0].calls.clear()
    await cluster.clock.advance(1 * SECOND_US)
    calls = unreliable.stores[0].calls
    assert "commit_plan" not in calls[: calls.index("acquire_leases")]
    assert stalled.telemetry.counters["plans_refused_stale"] == 0
    # It lives, and gets its share again.
    await cluster.clock.advance(5 * SECOND_US)
    assert len(stalled.engine.leases.trusted()) == cluster.shards // 2
    await cluster.stop()


async def test_a_plan_that_is_stopped_on_its_way_to_the_store_is_held_back_and_fires_later() -> None:
    """Goal: a stop between the look at the leases and the store is noticed by the store's client, and loses nothing.

    Method: one plan hangs on its way for longer than its lease, while the lease is renewed beside it.
    """
    # I3: the deadline travels with the lease.
    cluster = SmallCluster()
    unreliable = Unreliables(cluster.clock)
    node = await cluster.start(store=unreliable.put)
    await cluster.schedule("secondly", every("1s").to_spec(), policy=Policy(overlap=Overlap.ALLOW))
    await cluster.clock.advance(2 * SECOND_US)
    unreliable.stores[0].frozen, unreliable.stores[0].freezes = (
        asyncio.Event(),
        frozenset({"commit_plan", "commit_stride"}),
    )
    await cluster.clock.advance(9 * SECOND_US)
    unreliable.stores[0].frozen.set()
    unreliable.stores[0].frozen = None
    await cluster.clock.advance(2 * SECOND_US)
    fired = sorted(view.key.fire_us for view in await cluster.executions())
    counters = node.telemetry.counters
    await cluster.stop()
    assert counters["plans_held_back"] == 1
    assert counters["plans_refused_stale"] == 0
    assert [later - one for one, later in pairwise(fired)] == [SECOND_US] * 12


async def test_without_its_own_deadline_every_stale_write_is_refused_and_counted() -> None:
    # I3: the fence alone stands between two holders.
    cluster = SmallCluster()
    await cluster.reader.open()
    own = MemoryStore(cluster.state, cluster.clock, shards=cluster.shards)
    await own.open()
    frozen = UnreliableStore(own, cluster.clock, seeded_chance(1))
    around = Surroundings(clock=cluster.clock, chance=seeded_chance(1), node_id="0" * 16, ignore_deadline=True)
    zombie = Node(Settings(), frozen.as_store(), around)
    cluster.nodes.append(zombie)
    await zombie.start()
    for number in range(8):
        await cluster.schedule(f"secondly-{number}", every("1s").to_spec(), policy=Policy(overlap=Overlap.ALLOW))
    await cluster.clock.advance(2 * SECOND_US)
    frozen.frozen = asyncio.Event()

    def slow(store: Store) -> Store:
        slowed = UnreliableStore(store, cluster.clock, seeded_chance(2))
        slowed.latency_max_us = 20 * MS_US
        return slowed.as_store()

    starting = asyncio.create_task(cluster.start(store=slow))
    await cluster.clock.advance(9 * SECOND_US)
    await starting
    fences = {shard: state.fence for shard, state in cluster.state.leases.items()}
    held = zombie.engine.leases.trusted()
    assert len(held) == cluster.shards
    assert all(lease.fence < fences[lease.shard] for lease in held)
    zombie.loops["leases"].stop()  # It does not even try to renew, which would tell it.
    frozen.frozen.set()
    frozen.frozen = None
    await cluster.clock.advance(2 * SECOND_US)
    refused = zombie.telemetry.counters["plans_refused_stale"]
    views = await cluster.executions()
    assert len({view.key for view in views}) == len(views)
    await cluster.stop()
    assert zombie.telemetry.counters["leases_lost"] == refused > 0


async def test_a_store_that_is_away_for_a_while_finds_everything_back_at_work() -> None:
    cluster = SmallCluster()
    unreliable = Unreliables(cluster.clock)
    node = await cluster.start(store=unreliable.put)
    await cluster.schedule("secondly", every("1s").to_spec())
    executor = ScriptedExecutor(cluster.clock, E1)
    await executor.join(node)
    await cluster.clock.advance(3 * SECOND_US)
    unreliable.stores[0].down = True
    await cluster.clock.advance(20 * SECOND_US)
    unreliable.stores[0].down = False
    back_us = cluster.clock.now_us()
    await cluster.clock.advance(10 * SECOND_US)
    views = await cluster.executions()
    late = [view for view in views if view.key.fire_us > back_us + 5 * SECOND_US]
    await cluster.stop()
    # Each second has its run: those of the cut came late, the latest ones in time.
    assert len(views) == 33
    assert max(view.created_us - view.key.fire_us for view in late) < 100 * MS_US
    assert {view.state for view in views} == {ExecutionState.SUCCEEDED}


async def test_missing_lease_rows_refuse_the_start_with_the_repair() -> None:
    cluster = SmallCluster()
    await cluster.reader.open()
    del cluster.state.leases[2]
    with pytest.raises(StoreCorrupt, match="run `luciole migrate --repair`"):
        await cluster.start()


@pytest.mark.parametrize("skew_us", [-365 * 24 * HOUR_US, 174 * 365 * 24 * HOUR_US])
async def test_a_host_whose_clock_is_absurd_does_not_start_and_one_set_later_fires_as_before(skew_us: int) -> None:
    cluster = SmallCluster()
    await cluster.reader.open()
    wrong = FakeClock(cluster.clock.now_us() + skew_us)
    with pytest.raises(ClockSkew):
        await Node(Settings(), cluster.reader, Surroundings(clock=wrong)).start()


async def test_a_killed_executors_runs_are_redelivered_within_ten_seconds() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    dying = ScriptedExecutor(cluster.clock, E1, script=linger)
    await dying.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    key = await cluster.enqueue()
    await cluster.clock.advance(2 * SECOND_US)
    await dying.kill()
    other = ScriptedExecutor(cluster.clock, E2)
    await other.join(node)
    died_us = cluster.clock.now_us()
    await cluster.clock.advance(10 * SECOND_US)
    view = await cluster.view(key)
    await cluster.stop()
    assert view.state is ExecutionState.SUCCEEDED
    assert [attempt.outcome for attempt in view.attempts] == [AttemptOutcome.LOST]
    ((started_key, attempt, at_us),) = other.starts
    assert (started_key, attempt) == (key, 2)
    assert at_us - died_us <= 10 * SECOND_US


@pytest.mark.parametrize("phase", range(4))
async def test_the_runs_of_a_host_that_falls_silent_are_redelivered_within_ten_seconds(phase: int) -> None:
    """Goal: a host that is cut off says no goodbye; the default times to notice it and to wait for it fit together."""
    cluster = SmallCluster()
    node = await cluster.start()
    silent = ScriptedExecutor(cluster.clock, E1, script=linger)
    await silent.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    await cluster.enqueue()
    await cluster.clock.advance(2 * SECOND_US + phase * 500 * MS_US + 1)
    silent.mute = True
    silent_us = cluster.clock.now_us()
    other = ScriptedExecutor(cluster.clock, E2)
    await other.join(node)
    await cluster.clock.advance(12 * SECOND_US)
    await cluster.stop()
    ((_, attempt, at_us),) = other.starts
    assert attempt == 2
    assert at_us - silent_us <= 10 * SECOND_US


async def test_an_executor_that_falls_silent_loses_its_runs_after_its_session() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    silent = ScriptedExecutor(cluster.clock, E1, script=linger)
    await silent.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    key = await cluster.enqueue()
    await cluster.clock.advance(1 * SECOND_US)
    silent.mute = True
    other = ScriptedExecutor(cluster.clock, E2)
    await other.join(node)
    await cluster.clock.advance(12 * SECOND_US)
    assert (await cluster.view(key)).state is ExecutionState.SUCCEEDED
    # I5: the first executor's late report is refused, counted, and changes nothing.
    silent.mute = False
    link = await silent.join(node)
    await silent.finish(key, AttemptOutcome.FAILED)
    await cluster.clock.advance(1 * SECOND_US)
    await link.close()
    view = await cluster.view(key)
    refused = node.telemetry.counters["settled.refused"]
    await cluster.stop()
    assert (view.state, view.attempt, refused) == (ExecutionState.SUCCEEDED, 2, 1)


async def test_an_executor_that_comes_back_in_time_keeps_what_it_runs() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    link = await executor.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    key = await cluster.enqueue()
    await cluster.clock.advance(1 * SECOND_US)
    await link.sever()
    await cluster.clock.advance(2 * SECOND_US)
    await executor.join(node)
    await cluster.clock.advance(20 * SECOND_US)
    assert (key, 1) in executor.kept
    await executor.finish(key)
    await cluster.clock.advance(1 * SECOND_US)
    view = await cluster.view(key)
    await cluster.stop()
    assert (view.state, view.attempt, executor.starts[1:]) == (ExecutionState.SUCCEEDED, 1, [])


@pytest.mark.parametrize("end", ["crash", "drain"])
async def test_a_run_outlives_the_node_that_delivered_it(end: str) -> None:
    """Goal: the shard's next holder learns from the executor what runs, and leaves it alone."""
    cluster = SmallCluster()
    first = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    await executor.join(first)
    await cluster.clock.advance(1 * SECOND_US)
    await cluster.schedule("once", once(to_datetime(cluster.clock.now_us() + SECOND_US)).to_spec())
    await cluster.enqueue()
    await cluster.clock.advance(2 * SECOND_US)
    assert len(executor.running) == 2
    second = await cluster.start()
    await executor.join(second)
    if end == "crash":
        await crash(first)
    else:
        draining = asyncio.create_task(_drain(first))
        await cluster.clock.advance(4 * SECOND_US)
        await draining
    await cluster.clock.advance(20 * SECOND_US)
    assert {key for key, _ in executor.kept} == set(executor.running)
    for key in list(executor.running):
        await executor.finish(key)
    await cluster.clock.advance(1 * SECOND_US)
    views = await cluster.executions()
    cluster.nodes.remove(first)
    await cluster.stop()
    assert [(view.state, view.attempt) for view in views] == [(ExecutionState.SUCCEEDED, 1)] * 2


async def _drain(node: Node) -> None:
    await node.drain(1 * SECOND_US)
    await node.stop()


async def test_a_handler_that_kills_its_process_every_time_is_quarantined_and_an_innocent_is_not() -> None:
    def deadly(delivered: Delivered) -> AttemptOutcome | None:
        return AttemptOutcome.LOST if delivered.handler == "deadly" else None

    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1, script=deadly, handlers=("deadly", "innocent"))
    await executor.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    guilty = await cluster.enqueue(JobSpec(handler="deadly", losses_max=3))
    await cluster.clock.advance(20 * SECOND_US)
    view = await cluster.view(guilty)
    assert view.state is ExecutionState.QUARANTINED
    assert [attempt.outcome for attempt in view.attempts] == [AttemptOutcome.LOST] * 3
    # The crash of a node before anything was recorded counts against nobody.
    innocent = await cluster.enqueue(JobSpec(handler="innocent", losses_max=1))
    await cluster.clock.advance(100 * MS_US)
    await executor.kill()
    await crash(node)
    other = await cluster.start()
    again = ScriptedExecutor(cluster.clock, E2, handlers=("innocent",))
    await again.join(other)
    await cluster.clock.advance(20 * SECOND_US)
    assert (await cluster.view(innocent)).state is ExecutionState.SUCCEEDED


async def test_at_most_once_is_on_record_before_it_is_sent_and_lost_for_good() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    await executor.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    job = JobSpec(handler="report", at_most_once=True, retry=Retry(limit=3))
    key = await cluster.enqueue(job, flags=int(EntryFlag.AT_MOST_ONCE))
    await cluster.clock.settle()
    entry = cluster.state.entry(key)
    assert entry is not None
    assert (entry.delivered, entry.executor_id) == (True, E1)
    await executor.kill()
    other = ScriptedExecutor(cluster.clock, E2)
    await other.join(node)
    await cluster.clock.advance(20 * SECOND_US)
    view = await cluster.view(key)
    await cluster.stop()
    assert (view.state, other.starts) == (ExecutionState.LOST, [])


async def test_an_execution_whose_handler_nobody_knows_is_parked_only_beside_executors_that_could_know() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    key = await cluster.enqueue(JobSpec(handler="new"))
    # All executors are away: they restart, and nothing is judged.
    await cluster.clock.advance(120 * SECOND_US)
    assert (await cluster.view(key)).state is ExecutionState.READY
    old = ScriptedExecutor(cluster.clock, E1, handlers=("old",))
    await old.join(node)
    await cluster.clock.advance(25 * SECOND_US)
    assert (await cluster.view(key)).state is ExecutionState.READY
    await cluster.clock.advance(15 * SECOND_US)
    view = await cluster.view(key)
    # I7: it waits, visible with its reason, and is repaired.
    assert view.state is ExecutionState.PARKED
    assert "no executor knows the handler 'new'" in (view.error or "")
    new = ScriptedExecutor(cluster.clock, E2, handlers=("new",))
    await new.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    assert (await cluster.view(key)).state is ExecutionState.SUCCEEDED
    await cluster.stop()


async def test_a_wish_for_its_end_survives_a_restart_and_reaches_what_runs() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    waiting = await cluster.enqueue(JobSpec(handler="nobody"))
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    await executor.join(node)
    running = await cluster.enqueue()
    await cluster.clock.advance(1 * SECOND_US)
    await crash(node)
    await cluster.reader.request_cancel([waiting, running])
    other = await cluster.start()
    knower = ScriptedExecutor(cluster.clock, E2, handlers=("nobody",))
    await executor.join(other)
    await knower.join(other)
    await cluster.clock.advance(10 * SECOND_US)
    states = [(await cluster.view(key)).state for key in (waiting, running)]
    await cluster.stop()
    assert states == [ExecutionState.CANCELLED] * 2
    assert knower.starts == []


async def test_memory_holds_a_bounded_part_and_executors_hold_what_they_have_slots_for() -> None:
    # I10: 3,000 are due; a shard's memory takes 50, the executor 7.
    cluster = SmallCluster(shards=2)
    node = await cluster.start(held_max=50)
    executor = ScriptedExecutor(cluster.clock, E1, script=linger, slots=7)
    await executor.join(node)
    for _ in range(300):
        await cluster.enqueue()
    await cluster.schedule("secondly", every("10ms").to_spec(), policy=Policy(overlap=Overlap.ALLOW))
    most_held = most_running = 0
    for _ in range(12):
        await cluster.clock.advance(250 * MS_US)
        most_held = max(most_held, len(node.gateway.holds))
        most_running = max(most_running, len(executor.running))
    assert most_running == 7
    assert 50 <= most_held <= 100
    executor.script = lambda _: AttemptOutcome.SUCCEEDED
    for key in list(executor.running):
        await executor.finish(key)
    await cluster.clock.advance(5 * SECOND_US)
    states = {
        view.state for view in await cluster.executions() if view.key.fire_us < cluster.clock.now_us() - SECOND_US
    }
    await cluster.stop()
    assert states == {ExecutionState.SUCCEEDED}


async def test_a_higher_priority_overtakes_a_full_line() -> None:
    cluster = SmallCluster(shards=1)
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1, script=linger, slots=1)
    for _ in range(200):
        await cluster.enqueue(priority=2)
    await executor.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    urgent = await cluster.enqueue(priority=9)
    await cluster.clock.advance(1 * SECOND_US)
    await executor.finish(next(iter(executor.running)))
    await cluster.clock.advance(1 * SECOND_US)
    running = list(executor.running)
    await cluster.stop()
    assert running == [urgent]


async def test_nothing_starts_after_its_deadline_and_what_runs_is_ended_at_it() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    late = await cluster.enqueue(deadline_us=cluster.clock.now_us() + SECOND_US)
    await cluster.clock.advance(3 * SECOND_US)
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    await executor.join(node)
    long = await cluster.enqueue(deadline_us=cluster.clock.now_us() + 3 * SECOND_US)
    await cluster.clock.advance(5 * SECOND_US)
    states = [(await cluster.view(key)).state for key in (late, long)]
    await cluster.stop()
    assert states == [ExecutionState.CANCELLED] * 2
    assert [(key, reason) for key, _, reason in executor.cancels] == [(long, "deadline")]
    assert [key for key, _, _ in executor.starts] == [long]


async def test_a_long_run_is_on_record_as_running_with_its_executor() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    await executor.join(node)
    key = await cluster.enqueue()
    await cluster.clock.advance(5 * SECOND_US)
    view = await cluster.view(key)
    await cluster.stop()
    assert (view.state, view.executor_id) == (ExecutionState.RUNNING, E1)
