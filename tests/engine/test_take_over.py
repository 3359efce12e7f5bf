"""A shard changes its holder while attempts of it run: one token goes to one session only."""

from collections import Counter

import pytest

from luciole.errors import OutcomeUnknown
from luciole.limits import MS_US, SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.model.job import JobSpec, Retry
from luciole.model.outbox import AttemptOutcome, EntryState
from luciole.model.plan import Plan, PlanOutcome
from luciole.model.trigger import every
from luciole.store.memory import MemoryStore
from luciole.store.spi import Store
from luciole.testing.factories import an_entry
from tests.engine.scripted import ScriptedExecutor, SmallCluster, crash, linger

E1, E2 = "1" * 16, "2" * 16


async def some_that_run(cluster: SmallCluster) -> tuple[ScriptedExecutor, list[ExecutionKey]]:
    """Let an executor that knows the first node alone run something of every shard."""
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    await executor.join(cluster.nodes[0])
    await cluster.clock.advance(1 * SECOND_US)
    keys: list[ExecutionKey] = []
    while {key.shard for key in keys} != set(range(cluster.shards)):  # Neighbouring requests share one.
        keys.append(await cluster.enqueue())
    await cluster.clock.advance(1 * SECOND_US)
    assert set(executor.running) == set(keys)
    return executor, keys


def tokens(*executors: ScriptedExecutor) -> Counter[tuple[ExecutionKey, int]]:
    return Counter((key, attempt) for executor in executors for key, attempt, _ in executor.starts)


async def test_what_runs_unseen_after_a_crash_gets_a_new_token_after_the_grace() -> None:
    # I6: enqueued first attempts are on nobody's record.
    cluster = SmallCluster()
    await cluster.start()
    hidden, keys = await some_that_run(cluster)
    await cluster.start()
    seen = ScriptedExecutor(cluster.clock, E2)
    await crash(cluster.nodes[0])
    await seen.join(cluster.nodes[1])
    await cluster.clock.advance(15 * SECOND_US)
    views = [await cluster.view(key) for key in keys]
    cluster.nodes.pop(0)
    await cluster.stop()
    assert {(view.state, view.attempt) for view in views} == {(ExecutionState.SUCCEEDED, 2)}
    assert {attempt.outcome for view in views for attempt in view.attempts} == {AttemptOutcome.LOST}
    assert set(tokens(hidden, seen).values()) == {1}


async def test_what_runs_unseen_when_a_shard_is_released_is_on_record() -> None:
    # I6: the newcomer polls at once, and passes over what is recorded as delivered.
    cluster = SmallCluster()
    await cluster.start()
    hidden, keys = await some_that_run(cluster)
    newcomer = await cluster.start()
    seen = ScriptedExecutor(cluster.clock, E2)
    await seen.join(newcomer)
    await cluster.clock.advance(2_500 * MS_US)
    moved = {lease.shard for lease in newcomer.engine.leases.trusted()}
    assert len(moved) == cluster.shards // 2
    assert seen.starts == []
    await cluster.clock.advance(10 * SECOND_US)
    for key in list(hidden.running):
        await hidden.finish(key)
    await cluster.clock.advance(2 * SECOND_US)
    attempts = {key: (await cluster.view(key)).attempt for key in keys}
    await cluster.stop()
    assert attempts == {key: 2 if key.shard in moved else 1 for key in keys}
    assert set(tokens(hidden, seen).values()) == {1}


async def test_a_holder_that_has_not_accounted_for_a_crash_does_not_pass_the_shard_on_as_clean() -> None:
    # I6: three holders within one grace.
    cluster = SmallCluster()
    await cluster.start()
    hidden, keys = await some_that_run(cluster)
    await cluster.start()
    await crash(cluster.nodes[0])
    seen = ScriptedExecutor(cluster.clock, E2)
    await seen.join(cluster.nodes[1])
    while len(cluster.nodes[1].engine.leases.trusted()) < cluster.shards:
        await cluster.clock.advance(100 * MS_US)
    third = await cluster.start()
    await seen.join(third)
    await cluster.clock.advance(25 * SECOND_US)
    shares = [len(node.engine.leases.trusted()) for node in cluster.nodes[1:]]
    states = {(await cluster.view(key)).state for key in keys}
    cluster.nodes.pop(0)
    await cluster.stop()
    assert shares == [2, 2]
    assert states == {ExecutionState.SUCCEEDED}
    assert set(tokens(hidden, seen).values()) == {1}


async def test_an_executor_hears_from_the_new_holder_before_its_old_sessions_lease_is_over() -> None:
    cluster = SmallCluster()
    first = await cluster.start(2)
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    for node in cluster.nodes:
        await executor.join(node, credits_=50)
    await cluster.clock.advance(3 * SECOND_US)
    for _ in range(16):
        await cluster.enqueue()
    await cluster.clock.advance(3 * SECOND_US)
    by_first = {flight.entry.key for flight in first.gateway.flights.all()}
    assert by_first
    await crash(first)
    second = cluster.nodes[1]
    while len(second.engine.leases.trusted()) < cluster.shards:
        await cluster.clock.advance(10 * MS_US)
    await cluster.clock.advance(10 * MS_US)
    kept = {key for key, _ in executor.kept}
    cluster.nodes.remove(first)
    await cluster.stop()
    assert by_first <= kept


class Forgetful(MemoryStore):
    """Loses the answer of the first plans."""

    lost = 0

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        outcome = await super().commit_plan(plan)
        if self.lost < 3:
            self.lost += 1
            raise OutcomeUnknown("the connection broke in the commit")
        return outcome


@pytest.mark.parametrize("settled", [True, False], ids=["long after the take-over", "within its grace"])
async def test_what_a_plan_created_runs_although_its_answer_was_lost(*, settled: bool) -> None:
    # I6: it is held, in nobody's memory.
    cluster = SmallCluster()
    await cluster.reader.open()
    if not settled:
        await crash(await cluster.start())

    def forgetful(store: MemoryStore) -> Store:
        del store
        chosen = Forgetful(cluster.state, cluster.clock, shards=cluster.shards)
        chosen._is_open = True  # noqa: SLF001 - as the one that it stands for
        return chosen

    node = await cluster.start(store=forgetful)
    executor = ScriptedExecutor(cluster.clock, E1)
    await executor.join(node)
    await cluster.schedule("often", every("1s").to_spec())
    await cluster.clock.advance(12 * SECOND_US)
    views = await cluster.executions()
    await cluster.stop()
    assert len(views) == 12
    assert {(view.state, view.attempt) for view in views} == {(ExecutionState.SUCCEEDED, 1)}


async def test_a_poll_passes_over_what_is_recorded_as_delivered_while_it_is_being_loaded() -> None:
    # I6: the poll may be faster than the load.
    cluster = SmallCluster()
    node = await cluster.start()
    await cluster.clock.advance(1 * SECOND_US)
    recovery = node.gateway.recovery
    fresh, delivered = (an_entry(ExecutionKey(1, 0, 0, -part), state=EntryState.READY) for part in (1, 2))
    delivered = delivered._replace(delivered=True)
    node.gateway.holds.shards[1].complete = False
    assert recovery.polled([fresh, delivered]) == [fresh]
    await cluster.stop()


async def test_a_second_attempt_is_on_record_before_it_is_sent() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, E1, script=linger)
    await executor.join(node)
    key = await cluster.enqueue(JobSpec(handler="report", retry=Retry(limit=1, delay_us=MS_US)))
    await cluster.clock.advance(1 * SECOND_US)
    await executor.finish(key, AttemptOutcome.FAILED)
    await cluster.clock.advance(1 * SECOND_US)
    entry = cluster.state.entry(key)
    await cluster.stop()
    assert executor.running[key].attempt == 2
    assert entry is not None
    assert (entry.attempt, entry.delivered, entry.executor_id) == (2, True, E1)


async def test_a_waiting_execution_is_cancelled_by_one_settlement() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    key = await cluster.enqueue()
    await cluster.clock.advance(1 * SECOND_US)
    await cluster.reader.request_cancel([key])
    executor = ScriptedExecutor(cluster.clock, E1)
    await executor.join(node)
    other = await cluster.enqueue()
    await cluster.reader.request_cancel([other])
    await cluster.clock.advance(2 * SECOND_US)
    states = [(await cluster.view(one)).state for one in (key, other)]
    counters = node.telemetry.counters
    await cluster.stop()
    assert states == [ExecutionState.CANCELLED] * 2
    assert (counters["settled.settled"], counters["settled.refused"], counters["settled.confirmed"]) == (2, 0, 0)
