"""The planner beside rows and stores that fail."""

from dataclasses import dataclass, field

import pytest

from luciole import limits
from luciole.errors import InvalidValue, StoreFull
from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.plan import Plan, PlanOutcome
from luciole.model.schedule import ScheduleState
from luciole.model.trigger import every
from luciole.store.memory import MemoryStore
from luciole.store.reads import ScheduleFilter
from luciole.store.spi import Store
from tests.engine.scripted import ScriptedExecutor, SmallCluster


class Poisoned(MemoryStore):
    """Can't store a plan with some schedules, or with any."""

    error: Exception | None = None
    bad: frozenset[int] = frozenset()
    everything = False
    sizes: list[int]

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        if self.error is not None and (self.everything or self.bad & {move.cursor.schedule_id for move in plan.moves}):
            raise self.error
        self.sizes.append(len(plan.moves))
        return await super().commit_plan(plan)


@dataclass
class Poison:
    cluster: SmallCluster = field(default_factory=SmallCluster)
    store: Poisoned = field(init=False)

    def make(self, store: MemoryStore) -> Store:
        del store
        self.store = Poisoned(self.cluster.state, self.cluster.clock, shards=self.cluster.shards)
        self.store._is_open = True  # noqa: SLF001 - as the one that it stands for
        self.store.sizes = []
        return self.store

    async def states(self) -> dict[int, ScheduleState]:
        rows = (await self.cluster.reader.list_schedules(ScheduleFilter())).rows
        return {row.schedule_id: row.state for row in rows}


@pytest.mark.parametrize("error", [InvalidValue("row: not this one"), RuntimeError("a surprise"), ValueError("x")])
async def test_a_row_that_cannot_be_stored_is_parked_and_the_rest_of_its_chunk_fires(error: Exception) -> None:
    # I7: the chunk is bisected.
    world = Poison()
    await world.cluster.start(store=world.make)
    ids = [await world.cluster.schedule(f"s-{n}", every("5s").to_spec()) for n in range(40)]
    world.store.error = error
    world.store.bad = frozenset((ids[7], ids[23]))
    await world.cluster.clock.advance(12 * SECOND_US)
    states = await world.states()
    fired = {view.key.schedule_id for view in await world.cluster.executions()}
    await world.cluster.stop()
    assert {number for number, state in states.items() if state is ScheduleState.PARKED} == {ids[7], ids[23]}
    assert fired == set(ids) - {ids[7], ids[23]}


async def test_a_store_that_fails_for_everything_convicts_nobody() -> None:
    """Goal: a bug or a broken store must not park every schedule that there is."""
    world = Poison()
    await world.cluster.start(store=world.make)
    ids = [await world.cluster.schedule(f"s-{n}", every("5s").to_spec()) for n in range(20)]
    world.store.error = RuntimeError("broken altogether")
    world.store.everything = True
    await world.cluster.clock.advance(30 * SECOND_US)
    assert set((await world.states()).values()) == {ScheduleState.ACTIVE}
    world.store.error = None
    await world.cluster.clock.advance(10 * SECOND_US)
    fired = {view.key.schedule_id for view in await world.cluster.executions()}
    await world.cluster.stop()
    assert fired == set(ids)


async def test_a_full_disk_is_waited_out() -> None:
    world = Poison()
    await world.cluster.start(store=world.make)
    await world.cluster.schedule("s", every("5s").to_spec())
    world.store.error = StoreFull("no space left")
    world.store.everything = True
    await world.cluster.clock.advance(11 * SECOND_US)
    world.store.error = None
    await world.cluster.clock.advance(5 * SECOND_US)
    views = await world.cluster.executions()
    await world.cluster.stop()
    assert len(views) == 3


async def test_an_unreadable_trigger_parks_its_schedules_with_the_reason() -> None:
    world = Poison()
    await world.cluster.start(store=world.make)
    schedule_id = await world.cluster.schedule("s", every("5s").to_spec())
    other_id = await world.cluster.schedule("t", every("1s").to_spec())
    row = world.cluster.state.schedules[schedule_id]
    world.cluster.state.triggers[row.trigger_id] = "a trigger of the future"
    await world.cluster.clock.advance(6 * SECOND_US)
    view = await world.cluster.reader.get_schedule("default", "s")
    states = await world.states()
    await world.cluster.stop()
    assert view is not None
    assert (view.state, states[other_id]) == (ScheduleState.PARKED, ScheduleState.ACTIVE)
    assert "invalid_trigger" in (view.reason or "")


async def test_a_burst_is_committed_in_chunks_that_grow_up_to_the_stores_bound() -> None:
    world = Poison(cluster=SmallCluster(shards=8))
    node = await world.cluster.start(store=world.make)
    executor = ScriptedExecutor(world.cluster.clock, "e" * 16, slots=5_000)
    await executor.join(node)
    at_us = world.cluster.clock.now_us() + 5 * SECOND_US
    for number in range(2_500):
        # With jitter no two are alike, so none goes in a stride.
        await world.cluster.schedule(f"s-{number}", every("60s", jitter="1s").to_spec(), fire_us=at_us)
    await world.cluster.clock.advance(7 * SECOND_US)
    views = await world.cluster.executions()
    await world.cluster.stop()
    assert world.store.sizes[0] == limits.PLAN_BATCH_MIN
    assert max(world.store.sizes) > limits.PLAN_BATCH_MIN
    assert max(world.store.sizes) <= world.store.capabilities.plan_batch_max
    assert sum(world.store.sizes) == 2_500
    assert len([view for view in views if view.state is ExecutionState.SUCCEEDED]) == len(views)
