"""What the tests of the engine and the gateway share: a small cluster whose time they own, and scripted executors."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from luciole.errors import Unavailable
from luciole.gateway.local import LocalConnection
from luciole.limits import SECOND_US
from luciole.model.execution import EnqueueRequest, ExecutionView, request_shard
from luciole.model.ids import ExecutionKey, ExecutorId
from luciole.model.instant import to_datetime
from luciole.model.job import JobSpec, Overlap
from luciole.model.outbox import AttemptOutcome, Report
from luciole.model.schedule import NewSchedule, Policy, ScheduleSpec
from luciole.model.trigger import every, trigger_from_spec
from luciole.node import Node, Surroundings
from luciole.runtime.chance import seeded_chance
from luciole.settings import load_settings
from luciole.store.memory import MemoryState, MemoryStore
from luciole.store.reads import ExecutionFilter
from luciole.store.spi import Store
from luciole.testing.clock import FakeClock
from luciole.wire.messages import (
    Acknowledge,
    Beat,
    BeatAnswer,
    Cancel,
    Confirm,
    Deliver,
    Delivered,
    Grant,
    Held,
    Hello,
    Message,
    Refuse,
    Reports,
    Verdict,
    Welcome,
)

#: Decides what becomes of an attempt; None leaves it running.
Script = Callable[[Delivered], AttemptOutcome | None]


def succeed(_: Delivered) -> AttemptOutcome | None:
    """Let every attempt succeed at once."""
    return AttemptOutcome.SUCCEEDED


def linger(_: Delivered) -> AttemptOutcome | None:
    """Let every attempt run until the test ends it."""
    return None


@dataclass
class ScriptedExecutor:
    """An executor that does what a script says, over as many nodes as the test connects."""

    clock: FakeClock
    executor_id: ExecutorId
    script: Script = succeed
    handlers: tuple[str, ...] = ("report",)
    slots: int = 100
    labels: tuple[tuple[str, str], ...] = ()
    starts: list[tuple[ExecutionKey, int, int]] = field(default_factory=list)  #: key, attempt, when
    running: dict[ExecutionKey, Delivered] = field(default_factory=dict)
    unconfirmed: dict[ExecutionKey, Report] = field(default_factory=dict)
    cancels: list[tuple[ExecutionKey, int, str]] = field(default_factory=list)
    verdicts: list[tuple[ExecutionKey, int, Verdict]] = field(default_factory=list)
    kept: set[tuple[ExecutionKey, int]] = field(default_factory=set)
    heard: list[Message] = field(default_factory=list)
    links: list[LocalConnection] = field(default_factory=list)
    mute: bool = False  #: no heartbeats, no reports: a stopped process
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _origin: dict[ExecutionKey, LocalConnection] = field(default_factory=dict)

    async def join(self, node: Node, *, credits_: int | None = None) -> LocalConnection:
        """Open a session with a node and grant it credits."""
        link = await node.connect()
        await link.send((self.hello(), Grant(credits=self.slots if credits_ is None else credits_)))
        self.links.append(link)
        self._tasks.append(asyncio.create_task(self._listen(link)))
        self._tasks.append(asyncio.create_task(self._beat(link)))
        return link

    def hello(self) -> Hello:
        """Return how it introduces itself."""
        return Hello(
            executor_id=self.executor_id, handlers=self.handlers, slots=self.slots, labels=self.labels, held=self.held()
        )

    def held(self) -> tuple[Held, ...]:
        """Return all that it holds."""
        started = {(key, attempt): at_us for key, attempt, at_us in self.starts}
        running = [
            Held(key, delivered.attempt, started[key, delivered.attempt]) for key, delivered in self.running.items()
        ]
        return (*running, *(Held(key, report.attempt, None) for key, report in self.unconfirmed.items()))

    async def finish(self, key: ExecutionKey, outcome: AttemptOutcome = AttemptOutcome.SUCCEEDED) -> None:
        """End a running attempt and report it over the link that it came by, or another."""
        delivered = self.running.pop(key)
        report = Report(key, delivered.attempt, outcome, self.clock.now_us(), self.clock.now_us(), result=b"1")
        self.unconfirmed[key] = report
        await self._report([report])

    async def speak_up(self) -> None:
        """Say again what was not said or heard."""
        self.mute = False
        await self._report(list(self.unconfirmed.values()))

    async def kill(self) -> None:
        """Die without a word, as by SIGKILL: connections break, what runs is gone."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in self.links:
            await link.sever()
        self.links.clear()
        self.running.clear()
        self.unconfirmed.clear()

    async def _report(self, reports: Sequence[Report]) -> None:
        for report in reports:
            links = [self._origin.get(report.key), *self.links]
            for link in links:
                if link is not None and link in self.links:
                    try:
                        await link.send((Reports(reports=(report,)), Grant(credits=1)))
                    except Unavailable:
                        continue
                    break

    async def _beat(self, link: LocalConnection) -> None:
        try:
            while True:
                await self.clock.sleep(2 * SECOND_US)
                if not self.mute:
                    await link.send((Beat(held=self.held()),))
        except Unavailable:
            return

    async def _listen(self, link: LocalConnection) -> None:
        try:
            while frame := await link.receive():
                for message in frame:
                    await self._hear(link, message)
        except Unavailable:
            pass
        if link in self.links:
            self.links.remove(link)

    async def _hear(self, link: LocalConnection, message: Message) -> None:
        self.heard.append(message)
        match message:
            case Deliver():
                await self._run(link, message.attempts)
            case Confirm():
                self.verdicts += message.verdicts
                for key, _, _ in message.verdicts:
                    self.unconfirmed.pop(key, None)
            case Cancel():
                for key, attempt in message.attempts:
                    self.cancels.append((key, attempt, message.reason))
                    if key in self.running and self.running[key].attempt == attempt:
                        if message.reason == "stale":
                            del self.running[key]
                            await link.send((Grant(credits=1),))
                        else:
                            await self.finish(key, AttemptOutcome.CANCELLED)
            case Welcome() | BeatAnswer():
                self.kept.update(message.kept)
            case Refuse():
                await link.close()
            case _:
                pass

    async def _run(self, link: LocalConnection, attempts: Sequence[Delivered]) -> None:
        await link.send((Acknowledge(attempts=tuple((one.key, one.attempt) for one in attempts)),))
        reports = []
        for one in attempts:
            self.starts.append((one.key, one.attempt, self.clock.now_us()))
            self._origin[one.key] = link
            outcome = self.script(one)
            if outcome is None:
                self.running[one.key] = one
            else:
                report = Report(one.key, one.attempt, outcome, self.clock.now_us(), self.clock.now_us(), result=b"1")
                self.unconfirmed[one.key] = report
                reports.append(report)
        if reports and not self.mute:
            await link.send((Reports(reports=tuple(reports)), Grant(credits=len(reports))))


async def crash(node: Node) -> None:
    """End a node as SIGKILL would: nothing is said to anybody, connections break."""
    tasks = [task for task in asyncio.all_tasks() if task.get_name() in _task_names(node)]
    for task in tasks:
        task.cancel()
    await node.gateway.local.sever()
    await asyncio.gather(*tasks, return_exceptions=True)


def _task_names(node: Node) -> set[str]:
    return {f"luciole-{node.node_id}-{loop.name}" for loop in node.loops}


@dataclass
class SmallCluster:
    """Nodes on one memory store, all on one clock."""

    clock: FakeClock = field(default_factory=FakeClock)
    state: MemoryState = field(default_factory=MemoryState)
    shards: int = 4
    nodes: list[Node] = field(default_factory=list)
    reader: MemoryStore = field(init=False)
    _next_id: int = 1

    def __post_init__(self) -> None:
        self.reader = MemoryStore(self.state, self.clock, shards=self.shards)

    async def start(
        self, nodes: int = 1, *, store: Callable[[MemoryStore], Store] | None = None, **settings: object
    ) -> Node:
        """Start nodes; return the first of them."""
        await self.reader.open()
        first = len(self.nodes)
        for number in range(first, first + nodes):
            own = MemoryStore(self.state, self.clock, shards=self.shards)
            await own.open()
            around = Surroundings(clock=self.clock, chance=seeded_chance(number), node_id=f"{number:016x}")
            node = Node(load_settings({}, **settings), own if store is None else store(own), around)
            self.nodes.append(node)
            await node.start()
        return self.nodes[first]

    async def stop(self) -> None:
        """Stop every node; time passes for those that have to end something."""
        stops = [asyncio.create_task(node.stop()) for node in self.nodes]
        await self.clock.advance(10 * SECOND_US)
        await asyncio.gather(*stops)

    def new_ids(self, count: int = 1) -> int:
        """Return the first of some fresh ids."""
        first, self._next_id = self._next_id, self._next_id + count
        return first

    async def schedule(
        self,
        name: str,
        trigger: str | None = None,
        *,
        job: JobSpec | None = None,
        policy: Policy | None = None,
        fire_us: int | None = None,
    ) -> int:
        """Register one schedule; it fires next as its trigger says, or at `fire_us`."""
        text = every("60s").to_spec() if trigger is None else trigger
        spec = ScheduleSpec(
            name=name,
            job=job or JobSpec(handler="report"),
            trigger=text,
            policy=policy or Policy(overlap=Overlap.ALLOW),
        )
        first_us = trigger_from_spec(text).next_us(self.clock.now_us()) if fire_us is None else fire_us
        (schedule_id,) = await self.reader.put_schedules(
            (NewSchedule(spec=spec, fire_us=first_us, due_us=first_us),), first_id=self.new_ids()
        )
        assert schedule_id is not None
        return schedule_id

    async def enqueue(self, job: JobSpec | None = None, **fields: object) -> ExecutionKey:
        """Enqueue one execution."""
        request_id = self.new_ids()
        (job_id,) = await self.reader.intern_jobs((job or JobSpec(handler="report"),))
        request = EnqueueRequest(
            request_id=request_id,
            shard=request_shard("default", None, request_id, self.shards),
            job_id=job_id,
            payload=None,
            **fields,  # type: ignore[arg-type]
        )
        (answer,) = await self.reader.enqueue((request,))
        return answer.key

    async def executions(self) -> tuple[ExecutionView, ...]:
        """Read all executions from the store."""
        page = await self.reader.list_executions(ExecutionFilter())
        return page.rows

    async def view(self, key: ExecutionKey) -> ExecutionView:
        """Read one execution from the store."""
        view = await self.reader.get_execution(key)
        assert view is not None
        return view

    def now_text(self) -> str:
        """Return the present for messages."""
        return to_datetime(self.clock.now_us()).isoformat()
