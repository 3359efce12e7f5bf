"""Planning ahead: the database's work is done before the instant, and nothing starts before it."""

from luciole.limits import MS_US, SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.instant import to_datetime
from luciole.model.schedule import ScheduleState
from luciole.model.trigger import every, once
from tests.engine.scripted import ScriptedExecutor, SmallCluster, crash


async def test_what_is_planned_ahead_is_durable_before_its_instant_and_starts_at_it() -> None:
    # I11: Method: twenty schedules due at one instant, planned two seconds before it.
    cluster = SmallCluster()
    node = await cluster.start(plan_ahead="2s")
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    await executor.join(node)
    at_us = cluster.clock.now_us() + 10 * SECOND_US
    for number in range(20):
        await cluster.schedule(f"s-{number}", once(to_datetime(at_us)).to_spec())
    await cluster.clock.advance(8_500 * MS_US)
    planned = await cluster.executions()
    assert {view.state for view in planned} == {ExecutionState.HELD}
    assert len(planned) == 20
    await cluster.clock.advance(1_500 * MS_US - 1)
    assert executor.starts == []
    await cluster.clock.advance(1)
    assert [at for _, _, at in executor.starts] == [at_us] * 20
    await cluster.clock.advance(1 * SECOND_US)
    states = {view.state for view in await cluster.executions()}
    await cluster.stop()
    assert states == {ExecutionState.SUCCEEDED}


async def test_what_was_withdrawn_after_it_was_planned_never_starts() -> None:
    """Goal: pausing works until the last moment. Method: pause one of two that are planned ahead."""
    cluster = SmallCluster()
    node = await cluster.start(plan_ahead="2s")
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    await executor.join(node)
    paused_id = await cluster.schedule("paused", every("10s").to_spec())
    await cluster.schedule("active", every("10s").to_spec())
    await cluster.clock.advance(9 * SECOND_US)
    view = await cluster.reader.get_schedule("default", "paused")
    assert view is not None
    assert await cluster.reader.set_schedule_state(
        paused_id, ScheduleState.PAUSED, reason=None, fire_us=view.fire_us, due_us=None, revision=view.revision
    )
    await cluster.clock.advance(3 * SECOND_US)
    started = {key.schedule_id for key, _, _ in executor.starts}
    credits_ = node.sessions.by_executor["e" * 16].credits
    await cluster.stop()
    assert len(started) == 1
    assert paused_id not in started
    assert credits_ == executor.slots


async def test_a_crash_before_the_instant_delays_nothing_beyond_the_grace() -> None:
    cluster = SmallCluster()
    first = await cluster.start(2, plan_ahead="5s")
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    for node in cluster.nodes:
        await executor.join(node, credits_=50)
    await cluster.clock.advance(3 * SECOND_US)
    at_us = cluster.clock.now_us() + 6 * SECOND_US
    for number in range(20):
        await cluster.schedule(f"s-{number}", once(to_datetime(at_us)).to_spec())
    await cluster.clock.advance(3 * SECOND_US)
    assert len(await cluster.executions()) == 20
    await crash(first)
    await cluster.clock.advance(12 * SECOND_US)
    views = await cluster.executions()
    cluster.nodes.remove(first)
    await cluster.stop()
    assert {view.state for view in views} == {ExecutionState.SUCCEEDED}
    assert {at_us <= at for _, _, at in executor.starts} == {True}
    assert len({key for key, _, _ in executor.starts}) == 20
