from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.job import JobSpec
from luciole.wire.messages import Verdict
from tests.engine.scripted import ScriptedExecutor, SmallCluster


async def test_a_schedule_fires_runs_and_is_settled_once() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    await executor.join(node)
    schedule_id = await cluster.schedule("minutely")
    await cluster.clock.advance(181 * SECOND_US)
    views = await cluster.executions()
    await cluster.stop()
    assert [view.state for view in views] == [ExecutionState.SUCCEEDED] * 3
    assert {view.key.schedule_id for view in views} == {schedule_id}
    assert len({(key, attempt) for key, attempt, _ in executor.starts}) == len(executor.starts) == 3
    assert [verdict for _, _, verdict in executor.verdicts] == [Verdict.DURABLE] * 3


async def test_an_enqueued_execution_runs_without_time_passing() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    await executor.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    key = await cluster.enqueue(JobSpec(handler="report"))
    await cluster.clock.settle()
    view = await cluster.view(key)
    await cluster.stop()
    assert view.state is ExecutionState.SUCCEEDED
