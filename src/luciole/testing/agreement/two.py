"""Two stores that are told the same; every answer and all that can be seen must be equal."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from luciole import limits
from luciole.model.ids import ExecutionKey
from luciole.model.job import JobSpec
from luciole.model.outbox import Entry
from luciole.runtime.extras import require
from luciole.store.reads import ExecutionFilter
from luciole.testing.agreement.side import FAR_US, Call, Side
from luciole.testing.clock import START_US
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.factories import a_job

with require("testing"):
    from hypothesis.stateful import RuleBasedStateMachine

#: What a value is on either side: cursors and leases carry revisions and fences of their own store.
Pair = tuple[Any, Any]

JOBS: tuple[JobSpec, ...] = (a_job("j0"), a_job("j1", payload=b"\x00", priority=8), a_job("j2", at_most_once=True))


class TwoStores(RuleBasedStateMachine):
    """Two stores, and what a sequence has seen of them so far."""

    make_left: ClassVar[Callable[[], Awaitable[StoreHarness]]]
    make_right: ClassVar[Callable[[], Awaitable[StoreHarness]]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.sides = self.runner.run(self._begin())
        self.next_id = 1
        self.job_ids: list[Pair] = [*zip(*(side.jobs for side in self.sides), strict=True)]
        self.cursors: list[Pair] = []  #: as they were read, stale ones too
        self.leases: list[Pair] = []  #: as they were taken, lost ones too
        self.views: list[Pair] = []  #: schedules as they were read, stale ones too
        self.entries: dict[ExecutionKey, Entry] = {}  #: as they were last seen on the left
        self.attempts: dict[ExecutionKey, int] = {}  #: of all executions ever seen, the last known

    def teardown(self) -> None:
        """Close both stores."""
        for side in self.sides:
            self.runner.run(side.harness.close())
        self.runner.close()

    def both(self, client: int, call: Call) -> Pair:
        """Make a call on both sides; the plain answers must be equal. Return the answers."""
        return self.runner.run(self._both(client, call))

    def tell(self, client: int, call: Call) -> None:
        """Make a call on both sides whose answers nobody needs, but to be equal."""
        self.both(client, call)

    def ids(self, count: int) -> int:
        """Return the first of ids that no verb has used."""
        self.next_id += count
        return self.next_id - count

    def now_us(self) -> int:
        """Return the instant at which both clocks stand."""
        return self.runner.run(self.sides[0].client(0).now_us())

    def check(self) -> None:
        """Compare all that can be seen, and remember it for the rules to come."""
        left, right = (self.runner.run(side.picture()) for side in self.sides)
        for name, seen in left.items():
            assert right[name] == seen, f"{name} differ:\n left {seen}\nright {right[name]}"

    async def _begin(self) -> tuple[Side, Side]:
        """Make both stores, with clocks that stand still at one instant."""
        kind = type(self)
        left, right = Side(harness=await kind.make_left(), number=0), Side(harness=await kind.make_right(), number=1)
        for side in (left, right):
            await side.harness.stop_clock(START_US)
            ids = await side.client(0).intern_jobs(JOBS)
            side.jobs = {job_id: job.handler for job_id, job in zip(ids, JOBS, strict=True)}
        return left, right

    async def _both(self, client: int, call: Call) -> Pair:
        answers = [await side.ask(client, call) for side in self.sides]
        left, right = (side.plain(answer) for side, answer in zip(self.sides, answers, strict=True))
        assert left == right, f"answers differ:\n left {left}\nright {right}"
        await self.look()
        return answers[0], answers[1]

    async def look(self) -> None:
        """Remember what there is, for the arguments of the rules to come."""
        store = self.sides[0].client(0)
        far_us = await store.now_us() + FAR_US
        ready = await store.ready_entries(range(store.shards), far_us, limit=limits.HELD_MAX)
        opened = await store.open_entries(range(store.shards), after=None, limit=limits.HELD_MAX)
        self.entries |= {entry.key: entry for entry in (*ready.entries, *ready.cancels, *opened)}
        page = await store.list_executions(ExecutionFilter())
        self.attempts |= {view.key: view.attempt for view in page.rows}
