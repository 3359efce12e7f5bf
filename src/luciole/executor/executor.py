"""The executor: handlers on one side, nodes on the other, and slots in between."""

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from luciole import limits
from luciole.errors import InvalidValue
from luciole.executor.attempt import Attempt, StoreTime
from luciole.executor.connection import Dial, Links
from luciole.executor.credits import balance
from luciole.executor.loops import LoopPlace, LoopThread
from luciole.executor.outcome import Ended
from luciole.executor.processes import ProcessPlace
from luciole.executor.registry import HandlerRegistry
from luciole.executor.reports import ReportBook
from luciole.executor.runner import Runner
from luciole.executor.session import Session
from luciole.executor.threads import ThreadPlace
from luciole.model.ids import ExecutionKey, ExecutorId
from luciole.model.instant import Instant
from luciole.model.job import RunIn
from luciole.model.outbox import AttemptOutcome, Report
from luciole.runtime.chance import Chance, new_process_id, system_chance
from luciole.runtime.clock import Clock
from luciole.wire.messages import Cancel, Confirm, Deliver, Held, Hello


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """What an executor is told by its user."""

    namespace: str = "default"
    slots: int = 100  #: attempts at once
    threads: int = 32  #: for handlers that are plain functions
    processes: int = field(default_factory=lambda: os.cpu_count() or 1)  #: for handlers that run in processes
    labels: tuple[tuple[str, str], ...] = ()
    token: str | None = None  #: the shared token
    own_loop: bool = True  #: async handlers get a loop and a thread of their own; else they share the caller's loop

    def __post_init__(self) -> None:
        if not 1 <= self.slots <= limits.SLOTS_MAX:
            raise InvalidValue(f"executor.slots: {self.slots} is outside 1 to {limits.SLOTS_MAX:,}")
        if not 1 <= self.threads <= limits.THREADS_MAX:
            raise InvalidValue(f"executor.threads: {self.threads} is outside 1 to {limits.THREADS_MAX:,}")
        if not 1 <= self.processes <= limits.PROCESSES_MAX:
            raise InvalidValue(f"executor.processes: {self.processes} is outside 1 to {limits.PROCESSES_MAX}")
        if len(self.labels) > limits.LABELS_MAX:
            raise InvalidValue(f"executor.labels: {len(self.labels)} are over the limit of {limits.LABELS_MAX}")


class Executor:
    """Runs the handlers of a registry for every node that it can reach.

    Args:
        registry: the handlers; complete before `run`.
        clock: the time.
        settings: what the user chose.
        chance: spreads reconnections.
        executor_id: who it is; random for each start.
    """

    def __init__(
        self,
        registry: HandlerRegistry,
        *,
        clock: Clock,
        settings: ExecutorSettings | None = None,
        chance: Chance | None = None,
        executor_id: ExecutorId | None = None,
    ) -> None:
        self.executor_id = executor_id or new_process_id()
        self._registry = registry
        self._clock = clock
        self._settings = settings or ExecutorSettings()
        self._chance = chance or system_chance()
        self._time = StoreTime(clock)
        self._book = ReportBook()
        self._confirmed = asyncio.Event()
        self._confirmed.set()
        self._draining = False
        self._ended = asyncio.Event()
        self._links: Links | None = None
        self._runner: Runner | None = None

    async def run(self, dial: Dial, addresses: Sequence[str] = ("local",)) -> None:
        """Serve nodes until `drain` has ended, or until cancelled, which ends everything at once.

        Args:
            dial: opens a connection to one of the addresses.
            addresses: where nodes are; they tell of others.

        Raises:
            InvalidValue: a handler's annotations can't be used.
            Rejected: every node refused this executor: its token or its version does not fit.
        """
        self._registry.check()
        self._runner = Runner(self._registry, self._clock, self._time, self._on_reports)
        self._links = Links(dial, addresses, self, self._clock, self._chance)
        async with AsyncExitStack() as stack:
            stack.callback(self._ended.set)
            await self._open_places(stack, self._runner)
            timers = asyncio.create_task(self._runner.timers.run(), name="luciole-timers")
            stack.callback(timers.cancel)
            await self._links.run()

    async def drain(self, grace_us: int) -> None:
        """Finish what runs, hand back the rest, have it all confirmed, then end `run`; returns when it has ended.

        Args:
            grace_us: what running handlers get; after it they are cancelled and handed back.
        """
        self._draining = True
        if self._links is None or self._runner is None:
            return
        for session in self._links.sessions.values():
            session.drain(grace_us)
            session.grant(session.account.recalled - session.account.granted)
        self._runner.end_all(_RETURNED, only=_waits_for_place)
        if not await self._clock.wait(self._runner.quiet, grace_us):
            self._runner.end_all(_INTERRUPTED)
            if not await self._clock.wait(self._runner.quiet, limits.CANCEL_GRACE_US):
                self._runner.abandon_all()
        await self._clock.wait(self._confirmed, limits.CONFIRM_GRACE_US)
        self._links.stop()
        await self._ended.wait()

    def gauges(self) -> dict[str, int]:
        """Return what it does now, as numbers."""
        runner, links = self._runner, self._links
        return {
            "slots": self._settings.slots,
            "busy": 0 if runner is None else runner.busy,
            "stuck": 0 if runner is None else runner.abandoned,
            "unconfirmed": len(self._book),
            "sessions": 0 if links is None else len(links.sessions),
        }

    async def _open_places(self, stack: AsyncExitStack, runner: Runner) -> None:
        outer = asyncio.get_running_loop()
        if self._settings.own_loop:
            thread = LoopThread(type(outer), self._clock)
            stack.push_async_callback(thread.close)
            outer = thread.loop
        runner.add_place(RunIn.ASYNC, LoopPlace(outer, self._time, runner.done))
        threads = ThreadPlace(self._settings.threads, self._time, runner.done)
        stack.callback(threads.close)
        runner.add_place(RunIn.THREAD, threads)
        processes = ProcessPlace(self._settings.processes, self._clock, self._time, runner.done)
        stack.push_async_callback(processes.close)
        runner.add_place(RunIn.PROCESS, processes)
        if self._registry.processes_needed():
            processes.open()

    # What the links and the sessions tell.

    def hello(self) -> Hello:
        """Return the introduction, with all that is held now."""
        return Hello(
            executor_id=self.executor_id,
            namespace=self._settings.namespace,
            handlers=self._registry.names(),
            slots=self._settings.slots,
            labels=self._settings.labels,
            held=self.held(),
            token=self._settings.token,
            host=socket.gethostname(),
            pid=os.getpid(),
        )

    def on_open(self, session: Session) -> None:
        """Give a new session its share."""
        # A node that comes back under its own identity goes on with what it delivered.
        self._book.open(session.node_id)
        self._require_runner().adopt(session.node_id)
        session.account.open = not self._draining
        session.poke()
        self._share()

    def on_close(self, session: Session) -> None:
        """Give what the session had to others, and announce there what it looked after."""
        self._book.close(session.node_id)
        self._require_runner().orphan(session.node_id, session.lease_us)
        for other in self._require_links().sessions.values():
            other.beat()
            other.poke()
        self._share()

    def on_deliver(self, session: Session, message: Deliver) -> None:
        """Start what fits the credits; hand back the rest."""
        runner = self._require_runner()
        account = session.account
        account.waiting = max(0, account.waiting - len(message.attempts))
        fresh = [one for one in message.attempts if (one.key, one.attempt) not in self._book]
        fitting = fresh[: max(0, account.granted)]
        account.granted = max(0, account.granted - len(message.attempts))
        if self._draining:
            fitting = []
        returned = [one for one in fresh[len(fitting) :] if not runner.holds(one.key, one.attempt)]
        runner.deliver(fitting, session.node_id)
        if returned:
            self._on_reports([(runner.refusal(one, _RETURNED), session.node_id) for one in returned])
        elif len(fitting) < len(message.attempts):
            self._share()

    def on_confirm(self, session: Session, message: Confirm) -> None:
        """Forget what is durable."""
        del session
        full = len(self._book) >= limits.UNCONFIRMED_MAX
        for key, token, _ in message.verdicts:
            self._book.confirm(key, token)
        self._settle(full=full)

    def on_cancel(self, message: Cancel) -> None:
        """End attempts."""
        runner = self._require_runner()
        for key, token in message.attempts:
            if message.reason == "stale":
                self._book.confirm(key, token)
            runner.cancel(key, token, message.reason, hard=message.hard)
        self._settle(full=True)

    def on_demand(self, session: Session) -> None:
        """Let credits follow demand."""
        del session
        self._share()

    def on_heard(self, session: Session, now_us: Instant, asked_us: int) -> None:
        """Take the store's clock; repeat reports that were never answered."""
        self._time.observe(now_us, asked_us=asked_us)
        if self._book.repeat(session.node_id, self._clock.monotonic_us() - session.ttl_us):
            session.poke()

    def on_peers(self, peers: Sequence[str]) -> None:
        """Dial nodes that are new."""
        self._require_links().learn(peers)

    def on_kept(self, session: Session, tokens: Sequence[tuple[ExecutionKey, int]]) -> None:
        """Note who looks after attempts of lost sessions."""
        self._require_runner().keep(tokens, session.node_id)

    def reports_for(self, session: Session, count_max: int) -> list[Report]:
        """Return the next reports to send."""
        return self._book.take(session.node_id, count_max, self._clock.monotonic_us())

    def held(self) -> tuple[Held, ...]:
        """Return all attempts that this executor holds: those that run, and those whose report is not confirmed."""
        return (*(() if self._runner is None else self._runner.held()), *self._book.held())

    def _on_reports(self, reports: Sequence[tuple[Report, str | None]]) -> None:
        sessions = self._require_links().sessions
        to = {self._book.add(report, home) for report, home in reports}
        for node in to:
            if node is not None:
                sessions[node].poke()
        self._share()
        if self._book:
            self._confirmed.clear()

    def _settle(self, *, full: bool) -> None:
        if not self._book:
            self._confirmed.set()
        if full:
            self._share()

    def _share(self) -> None:
        """Bring every node's credits to its share; the sum never exceeds the slots (I10)."""
        if self._draining or len(self._book) >= limits.UNCONFIRMED_MAX:
            return  # Nothing more is asked for: reports pile up, or this executor is about to stop.
        sessions = list(self._require_links().sessions.values())
        accounts = [session.account for session in sessions]
        freed = 1
        while freed:  # What was not even sent yet goes to another at once.
            free = self._settings.slots - self._require_runner().busy - sum(one.granted for one in accounts)
            changes = balance(free, accounts)
            freed = sum([session.grant(change) for session, change in zip(sessions, changes, strict=True) if change])

    def _require_runner(self) -> Runner:
        assert self._runner is not None  # Sessions live inside `run`.
        return self._runner

    def _require_links(self) -> Links:
        assert self._links is not None  # Same.
        return self._links


def _waits_for_place(attempt: Attempt) -> bool:
    return attempt.place is not RunIn.ASYNC and attempt.started_us is None


_RETURNED = Ended(AttemptOutcome.RETURNED)
_INTERRUPTED = Ended(AttemptOutcome.RETURNED, error="the executor stopped before the handler had ended")
