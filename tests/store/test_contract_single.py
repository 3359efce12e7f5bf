"""The one-by-one defaults keep the contract, over a store whose single items do."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest_asyncio

from luciole.model.execution import Enqueued, EnqueueRequest, ExecutionState
from luciole.model.ids import ExecutionKey, JobId, NodeId, ScheduleId, Shard, TriggerId
from luciole.model.job import JobSpec, JobVersion
from luciole.model.lease import Lease
from luciole.model.outbox import Delivery, Running, Settled, Settlement
from luciole.model.plan import Move, Plan, PlanOutcome
from luciole.model.schedule import NewSchedule
from luciole.store.memory import MemoryStore
from luciole.store.single import OneByOne
from luciole.store.spi import Store
from luciole.testing.contract import *  # noqa: F403 - every case
from luciole.testing.contract.harness import MemoryHarness


class SinglePlans:
    """Leases and plans of the memory store, one item at a time; what is no batch it has as it is."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    def __getattr__(self, verb: str) -> Any:  # noqa: ANN401 - any other verb
        return getattr(self.store, verb)

    async def acquire_lease(self, node_id: NodeId, shard: Shard, *, ttl_us: int) -> Lease | None:
        return _first(await self.store.acquire_leases(node_id, [shard], ttl_us=ttl_us))

    async def renew_lease(self, lease: Lease, *, ttl_us: int) -> Lease | None:
        return _first(await self.store.renew_leases([lease], ttl_us=ttl_us))

    async def release_lease(self, lease: Lease) -> None:
        await self.store.release_leases([lease])

    async def load_trigger(self, trigger_id: TriggerId) -> str | None:
        return (await self.store.load_triggers([trigger_id])).get(trigger_id)

    async def load_job(self, job_id: JobId) -> JobVersion | None:
        return (await self.store.load_jobs([job_id])).get(job_id)

    async def commit_move(self, move: Move, lease: Lease | None) -> PlanOutcome:
        return await self.store.commit_plan(Plan(moves=(move,), leases=(lease,) if lease else ()))

    async def park_schedule(self, lease: Lease | None, schedule_id: ScheduleId, shard: Shard, reason: str) -> bool:
        leases = [lease] if lease else []
        return await self.store.park_schedules(leases, [(schedule_id, shard, reason)]) == 1


class SingleMemory(SinglePlans):
    """The memory store, one item at a time."""

    async def record_delivery(self, lease: Lease | None, delivery: Delivery) -> bool:
        return bool(await self.store.record_deliveries([lease] if lease else [], [delivery]))

    async def settle_one(self, settlement: Settlement) -> Settled:
        return (await self.store.settle([settlement]))[0]

    async def mark_one_running(self, running: Running) -> bool:
        return bool(await self.store.mark_running([running]))

    async def enqueue_one(self, request: EnqueueRequest) -> Enqueued:
        return (await self.store.enqueue([request]))[0]

    async def cancel_one(self, key: ExecutionKey) -> ExecutionState | None:
        return (await self.store.request_cancel([key]))[0]

    async def unpark_one(self, key: ExecutionKey) -> bool:
        return await self.store.unpark([key]) == 1

    async def take_ids(self, count: int) -> int:
        return (await self.store.take_ids(count)).first

    async def intern_job(self, spec: JobSpec) -> JobId:
        return (await self.store.intern_jobs([spec]))[0]

    async def put_schedule(self, schedule: NewSchedule, *, new_id: int, replace: bool) -> ScheduleId | None:
        return (await self.store.put_schedules([schedule], first_id=new_id, replace=replace))[0]


def _first(leases: Sequence[Lease]) -> Lease | None:
    return leases[0] if leases else None


class SingleHarness(MemoryHarness):
    def _client(self, shards: int | None) -> Store:
        return OneByOne(SingleMemory(MemoryStore(self.state, self.clock, shards=shards)))


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[MemoryHarness]:
    made = await SingleHarness.make()
    yield made
    await made.close()
