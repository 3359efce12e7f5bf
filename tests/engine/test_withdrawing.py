"""What was planned ahead and is withdrawn never starts, however close to its due time, by a seed."""

import asyncio

import pytest

from luciole.limits import MS_US, SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.model.instant import to_datetime
from luciole.model.job import JobSpec, Overlap
from luciole.model.schedule import Policy, ScheduleState
from luciole.model.trigger import every, once
from luciole.runtime.chance import Chance, seeded_chance
from luciole.store.spi import Store
from tests.engine.invariants import check
from tests.engine.scripted import ScriptedExecutor, SmallCluster, crash
from tests.engine.unreliable import UnreliableStore

#: Schedules of one world; all of them fire at the same instants.
_SCHEDULES = 16
_PERIOD_US = 2 * SECOND_US

#: How long before a due time somebody acts.
_BEFORE_US = (1, MS_US, 5 * MS_US, 40 * MS_US, 400 * MS_US, 1_500 * MS_US)


class Meddler:
    """Withdraws what it finds planned ahead, and remembers what was withdrawn for good."""

    def __init__(self, cluster: SmallCluster, chance: Chance) -> None:
        self._cluster = cluster
        self._chance = chance
        self.cancelled: set[ExecutionKey] = set()
        self.deleted: set[ExecutionKey] = set()
        self.paused: set[str] = set()
        self.resumed: set[str] = set()  #: so that fire times passed, whose outcomes the use case records

    async def meddle(self) -> None:
        """Do one thing to one schedule."""
        name = f"s-{int(self._chance() * _SCHEDULES)}"
        view = await self._cluster.reader.get_schedule("default", name)
        assert view is not None
        ahead = [
            row.key
            for row in await self._cluster.executions()
            if row.state is ExecutionState.HELD
            and row.due_us > self._cluster.clock.now_us()
            and row.key.schedule_id == view.schedule_id
        ]
        roll = self._chance()
        if name in self.paused:
            self.paused.discard(name)
            self.resumed.add(name)
            first_us = every(f"{_PERIOD_US}us").next_us(self._cluster.clock.now_us())
            await self._set_state(name, ScheduleState.ACTIVE, first_us)
        elif roll < 0.4:
            states = await self._cluster.reader.request_cancel(ahead)
            assert set(states) <= {ExecutionState.CANCELLED}  # In one transaction, whoever asks.
            self.cancelled.update(ahead)
        elif roll < 0.7:
            await self._set_state(name, ScheduleState.PAUSED, None)
            self.paused.add(name)
            self.deleted.update(ahead)
        else:
            await self._cluster.schedule(
                name, view.spec.trigger, policy=view.spec.policy, job=JobSpec(handler="report", payload=b"%f" % roll)
            )

    async def _set_state(self, name: str, state: ScheduleState, first_us: int | None) -> None:
        view = await self._cluster.reader.get_schedule("default", name)
        assert view is not None
        assert await self._cluster.reader.set_schedule_state(
            view.schedule_id, state, reason=None, fire_us=first_us, due_us=first_us, revision=view.revision
        )


@pytest.mark.parametrize("seed", range(10))
async def test_what_is_withdrawn_before_its_due_time_never_starts(seed: int) -> None:
    """Goal: an edit, a pause or a cancel wins until the last microsecond; a node that dies loses and doubles nothing.

    Method: schedules that all fire at the same instants, planned ahead by nodes whose store is slow; somebody meddles
    just before the instants. Then the store is read, and what the executor saw. # I2: # I5: # I6: # I11:
    """
    chance = seeded_chance(seed)
    cluster = SmallCluster()

    def slow(store: Store) -> Store:
        wrapped = UnreliableStore(store, cluster.clock, chance)
        wrapped.latency_max_us = 20 * MS_US
        return wrapped.as_store()

    starting = asyncio.create_task(cluster.start(2, store=slow, plan_ahead="2s"))
    await cluster.clock.advance(1 * SECOND_US)
    await starting
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    for node in cluster.nodes:
        await executor.join(node, credits_=20)
    await cluster.clock.advance(1 * SECOND_US)
    for number in range(_SCHEDULES):
        policy = Policy(overlap=Overlap.FORBID if number % 2 else Overlap.ALLOW)
        await cluster.schedule(f"s-{number}", every(f"{_PERIOD_US}us").to_spec(), policy=policy)
    meddler = Meddler(cluster, chance)
    for turn in range(12):
        next_us = every(f"{_PERIOD_US}us").next_us(cluster.clock.now_us())
        assert next_us is not None
        before_us = _BEFORE_US[int(chance() * len(_BEFORE_US))]
        await cluster.clock.advance(max(0, next_us - before_us - cluster.clock.now_us()))
        for _ in range(1 + int(chance() * 4)):
            await meddler.meddle()
        if turn == 8 and chance() < 0.5:
            await crash(cluster.nodes.pop())
        await cluster.clock.advance(before_us + int(chance() * 100) * MS_US)
    for number in range(_SCHEDULES):
        if f"s-{number}" not in meddler.paused:
            view = await cluster.reader.get_schedule("default", f"s-{number}")
            assert view is not None
            await cluster.reader.set_schedule_state(
                view.schedule_id, ScheduleState.PAUSED, reason=None, fire_us=None, due_us=None, revision=view.revision
            )
    await cluster.clock.advance(30 * SECOND_US)
    await cluster.stop()
    known = {view.key for view in await cluster.executions()}
    started = {key for key, _, _ in executor.starts}
    problems = await check(cluster, [executor])
    assert [problem for problem in problems if problem.partition(":")[0] not in meddler.resumed] == []
    assert meddler.cancelled & started == set()
    assert (meddler.deleted - known) & started == set()
    assert started <= known
    assert len(started) > _SCHEDULES


async def test_no_delivery_is_recorded_when_nothing_was_withdrawn() -> None:
    """Goal: what is planned ahead starts at its instant without a write. Method: count the verbs of a burst."""
    cluster = SmallCluster()
    counting: list[UnreliableStore] = []

    def put(store: Store) -> Store:
        counting.append(UnreliableStore(store, cluster.clock, seeded_chance(1)))
        return counting[-1].as_store()

    node = await cluster.start(store=put, plan_ahead="2s")
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    await executor.join(node, credits_=100)
    at_us = cluster.clock.now_us() + 10 * SECOND_US
    ids = [await cluster.schedule(f"s-{n}", once(to_datetime(at_us)).to_spec()) for n in range(50)]
    await cluster.clock.advance(10 * SECOND_US - 1)
    counting[0].calls.clear()
    await cluster.clock.advance(1)
    assert {(key.schedule_id, at) for key, _, at in executor.starts} == {(number, at_us) for number in ids}
    assert counting[0].calls.count("withdrawals") == 1
    assert "record_deliveries" not in counting[0].calls
    await cluster.stop()
