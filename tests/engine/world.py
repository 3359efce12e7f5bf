"""A cluster to which things happen by a seed: crashes, stalls, lost answers, silent executors."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from luciole.limits import MS_US, SECOND_US
from luciole.model.job import JobSpec, Misfire, Overlap, Retry
from luciole.model.outbox import AttemptOutcome
from luciole.model.schedule import Policy, ScheduleState
from luciole.model.trigger import cron, every
from luciole.node import Node
from luciole.runtime.chance import Chance, seeded_chance
from luciole.store.reads import ScheduleFilter
from luciole.store.spi import Store
from luciole.wire.messages import Delivered
from tests.engine.scripted import ScriptedExecutor, SmallCluster, crash
from tests.engine.unreliable import UnreliableStore

ItemT = TypeVar("ItemT")

#: What an ordinary verb of the store takes at most.
LATENCY_US = 3 * MS_US

#: Schedules that differ in nothing: more than one look returns, so that they are moved in strides.
_HERD = 40


@dataclass
class World:
    """Nodes, executors and schedules, and what can happen to them."""

    seed: int
    cluster: SmallCluster = field(default_factory=lambda: SmallCluster(shards=8))
    stores: list[UnreliableStore] = field(default_factory=list)
    alive: list[Node] = field(default_factory=list)
    executors: list[ScriptedExecutor] = field(default_factory=list)  #: all that ever were
    living: list[ScriptedExecutor] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    calm: bool = False  #: every attempt succeeds
    chance: Chance = field(init=False)
    plan_ahead: str = field(init=False)
    held_max: int = field(init=False)  #: entries of a shard in memory
    due_max: int = field(init=False)  #: due schedules that one look returns; with few of them, all is a burst

    def __post_init__(self) -> None:
        self.chance = seeded_chance(self.seed)
        self.plan_ahead = self.pick(("0s", "0s", "2s"))
        self.held_max = self.pick((4_096, 4_096, 2))
        self.due_max = self.pick((10_000, 32))

    def below(self, number: int) -> int:
        """Return a whole number from 0 to below this one."""
        return int(self.chance() * number)

    def pick(self, items: Sequence[ItemT]) -> ItemT:
        """Return one of these."""
        return items[self.below(len(items))]

    def script(self, _: Delivered) -> AttemptOutcome | None:
        """Succeed mostly, fail or linger now and then."""
        roll = self.chance()
        if self.calm or roll >= 0.45:
            return AttemptOutcome.SUCCEEDED
        return AttemptOutcome.FAILED if roll < 0.15 else None

    async def start_node(self) -> None:
        """Start a node behind a store of its own moods."""
        if len(self.alive) >= 3:
            return

        def unreliable(store: Store) -> Store:
            wrapped = UnreliableStore(store, self.cluster.clock, self.chance)
            wrapped.latency_max_us = LATENCY_US
            self.stores.append(wrapped)
            return wrapped.as_store()

        starting = asyncio.create_task(
            self.cluster.start(
                store=unreliable,
                plan_ahead=self.plan_ahead,
                held_max=self.held_max,
                max_due_records_per_tick=self.due_max,
            )
        )
        await self.cluster.clock.advance(50 * MS_US)
        node = await starting
        self.alive.append(node)
        for executor in self.living:
            await executor.join(node, credits_=20)

    async def crash_node(self) -> None:
        """Kill a node."""
        if len(self.alive) > 1:
            node = self.alive.pop(self.below(len(self.alive)))
            await crash(node)

    async def stop_node(self) -> None:
        """Let a node drain and stop."""
        if len(self.alive) > 1:
            node = self.alive.pop(self.below(len(self.alive)))
            stopping = asyncio.create_task(_drain_and_stop(node))
            while not stopping.done():
                await self.cluster.clock.advance(1 * SECOND_US)
            await stopping

    async def start_executor(self) -> None:
        """Start an executor that knows every node."""
        if len(self.living) < 3:
            executor = ScriptedExecutor(self.cluster.clock, f"{len(self.executors):016x}", script=self.script)
            self.executors.append(executor)
            self.living.append(executor)
            for node in self.alive:
                await executor.join(node, credits_=20)

    async def kill_executor(self) -> None:
        """Kill an executor with all that it runs."""
        if len(self.living) > 1:
            await self.living.pop(self.below(len(self.living))).kill()

    async def relent(self) -> None:
        """Let everything that was troubled work again."""
        for store in self.stores:
            store.down = False
            store.latency_max_us = LATENCY_US
            store.lost_answers = 0.0
            if store.frozen is not None:
                store.frozen.set()
                store.frozen = None
        for executor in self.living:
            await executor.speak_up()
            for node in self.alive:
                if executor.executor_id not in node.sessions.by_executor:
                    await executor.join(node, credits_=20)

    async def schedule_all(self) -> None:
        """Register a schedule for each way to treat late and overlapping fires; in some worlds, many alike."""
        if self.due_max < _HERD:
            alike = every("5s").to_spec()
            for number in range(_HERD):
                await self.cluster.schedule(f"herd-{number}", alike, policy=Policy(misfire_after_us=3 * SECOND_US))
        policies = [
            Policy(overlap=overlap, misfire=misfire, misfire_after_us=3 * SECOND_US)
            for overlap in Overlap
            for misfire in (Misfire.FIRE_ONCE, Misfire.SKIP)
        ]
        policies.append(Policy(overlap=Overlap.ALLOW, misfire=Misfire.CATCH_UP, catch_up_limit=3))
        for number, policy in enumerate(policies):
            trigger = every(f"{self.pick([1, 2, 5])}s") if number % 3 else cron("*/5 * * * * *", seconds="first")
            job = JobSpec(
                handler="report", retry=Retry(limit=self.below(3), delay_us=200 * MS_US), losses_max=5, labels=()
            )
            await self.cluster.schedule(f"schedule-{number}", trigger.to_spec(), policy=policy, job=job)

    async def pass_time(self) -> None:
        """Let a few seconds pass, in which some of what runs ends."""
        for _ in range(1 + self.below(5)):
            await self.cluster.clock.advance((50 + self.below(850)) * MS_US)
            for executor in self.living:
                for key in list(executor.running):
                    if not executor.mute and (self.calm or self.chance() < 0.4):
                        await executor.finish(key)

    async def pause_all(self) -> None:
        """Let nothing fire any more."""
        paused = False
        while not paused:
            paused = True
            for schedule in (await self.cluster.reader.list_schedules(ScheduleFilter())).rows:
                if schedule.state is ScheduleState.ACTIVE:
                    paused &= await self.cluster.reader.set_schedule_state(
                        schedule.schedule_id,
                        ScheduleState.PAUSED,
                        reason=None,
                        fire_us=None,
                        due_us=None,
                        revision=schedule.revision,
                    )

    async def finish(self) -> None:
        """Let everything recover, stop new fires, and wait until nothing is open."""
        self.calm = True
        await self.relent()
        await self.start_executor()
        for _ in range(10):
            await self.pass_time()
            await self.relent()
        await self.pause_all()
        for _ in range(60):
            await self.pass_time()
            await self.relent()
            if all(view.state.terminal for view in await self.cluster.executions()):
                break
        for node in self.alive:
            stopping = asyncio.create_task(node.stop())
            while not stopping.done():
                await self.cluster.clock.advance(1 * SECOND_US)


async def _drain_and_stop(node: Node) -> None:
    await node.drain(3 * SECOND_US)
    await node.stop()
