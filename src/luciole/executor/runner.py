"""The runs of one executor: from a delivered attempt to its report, whatever the handler does."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from luciole import limits
from luciole.executor.attempt import Attempt, Finished, Place, StoreTime
from luciole.executor.failure_log import FailureLog
from luciole.executor.inbox import Inbox
from luciole.executor.outcome import Ended
from luciole.executor.registry import HandlerRegistry
from luciole.executor.timers import Timers
from luciole.model.ids import ExecutionKey
from luciole.model.job import RunIn
from luciole.model.outbox import AttemptOutcome, Report
from luciole.runtime.clock import Clock
from luciole.wire.calls import JSON
from luciole.wire.messages import Delivered, Held

#: Gets reports that are new, each with the node that looks after its attempt, if one does.
Sink = Callable[[Sequence[tuple[Report, str | None]]], None]


class Runner:
    """Holds every attempt of this executor until its outcome is known.

    Args:
        registry: the handlers.
        clock: the time.
        time: the store's clock.
        sink: gets the reports.
    """

    def __init__(self, registry: HandlerRegistry, clock: Clock, time: StoreTime, sink: Sink) -> None:
        self._registry = registry
        self._clock = clock
        self._time = time
        self._sink = sink
        self._held: dict[ExecutionKey, Attempt] = {}
        self._abandoned: set[Attempt] = set()
        self._places: dict[RunIn, Place] = {}
        self._failures = FailureLog(clock=clock)
        self.done: Inbox[Finished] = Inbox(asyncio.get_running_loop(), self._finished)
        self.timers = Timers(clock, self._live)
        self.quiet = asyncio.Event()  #: set while nothing is held
        self.quiet.set()

    def add_place(self, run_in: RunIn, place: Place) -> None:
        """Say where handlers of a kind run."""
        self._places[run_in] = place

    @property
    def busy(self) -> int:
        """Slots in use: attempts held, and those that go on although nobody waits for them."""
        return len(self._held) + len(self._abandoned)

    @property
    def abandoned(self) -> int:
        """Attempts that go on although nobody waits for them."""
        return len(self._abandoned)

    def held(self) -> list[Held]:
        """Return what is held, for a heartbeat, which has room for so much of progress and no more."""
        held = []
        room = limits.PROGRESS_ROOM
        for key, attempt in self._held.items():
            progress = attempt.context.latest_progress
            if progress is not None:
                room -= len(progress)
                progress = progress if room >= 0 else None
            held.append(Held(key, attempt.delivered.attempt, attempt.started_us, progress))
        return held

    def holds(self, key: ExecutionKey, token: int) -> bool:
        """Whether this attempt is held."""
        attempt = self._held.get(key)
        return attempt is not None and attempt.delivered.attempt == token

    def deliver(self, delivered: Sequence[Delivered], home: str) -> None:
        """Start attempts; one that can't be started is reported, and does not keep the others from starting."""
        by_place: defaultdict[RunIn, list[Attempt]] = defaultdict(list)
        refused: list[tuple[Report, str | None]] = []
        for one in delivered:
            known = self._held.get(one.key)
            if known is not None:
                if known.delivered.attempt >= one.attempt:
                    continue  # The same token twice: it runs once.
                self.discard(known)  # A newer token says that this one was given up.
            handler = self._registry.get(one.handler)
            if handler is None:
                refused.append((self.refusal(one, _unknown(one.handler, self._registry.names())), home))
                continue
            attempt = Attempt(one, handler, home)
            if not self._set_times(attempt):
                refused.append((self.refusal(one, _TOO_LATE), home))
                continue
            self._held[one.key] = attempt
            by_place[attempt.place].append(attempt)
        for run_in, attempts in by_place.items():
            self.quiet.clear()
            self._places[run_in].start(attempts)
        if refused:
            self._sink(refused)

    def refusal(self, delivered: Delivered, ended: Ended) -> Report:
        """Return the report of an attempt that never starts."""
        return _report(delivered, ended, None, self._time.now_us())

    def cancel(self, key: ExecutionKey, token: int, reason: str, *, hard: bool) -> None:
        """Do what a node's `Cancel` says."""
        attempt = self._held.get(key)
        if attempt is None or attempt.delivered.attempt != token:
            return
        if reason == "stale":
            self.discard(attempt)
        elif reason == "deadline":
            self.end(attempt, _DEADLINE, hard=hard)
        else:
            self.end(attempt, Ended(AttemptOutcome.CANCELLED, error=reason), hard=hard)

    def end(self, attempt: Attempt, why: Ended, *, hard: bool) -> None:
        """Ask for an attempt's end. With `hard` it is reported whether it obeys or not."""
        if attempt.told is None or hard:
            attempt.told = why
        attempt.context.tell()
        obeys = self._places[attempt.place].end(attempt, hard=hard)
        if hard and not obeys:
            self._abandon(attempt)
        elif hard:
            self.timers.add(self._clock.monotonic_us() + limits.CANCEL_GRACE_US, attempt, self._abandon)

    def end_all(self, why: Ended, *, only: Callable[[Attempt], bool] = lambda _: True) -> None:
        """End every attempt of a kind, by force where there is one."""
        for attempt in [attempt for attempt in self._held.values() if only(attempt)]:
            self.end(attempt, why, hard=True)

    def abandon_all(self) -> None:
        """Report every attempt as it was told to end, without waiting any longer."""
        for attempt in list(self._held.values()):
            self._abandon(attempt)

    def discard(self, attempt: Attempt) -> None:
        """End an attempt that nobody wants to hear of any more."""
        attempt.told = attempt.told or Ended(AttemptOutcome.CANCELLED, error="cancelled: stale")
        attempt.context.tell()
        self._forget(attempt)
        self._places[attempt.place].end(attempt, hard=True)

    def orphan(self, home: str, lease_us: int) -> None:
        """Note that a node's session is gone.

        What it looked after ends with the lease, which is given by the monotonic clock, unless another node keeps it.
        """
        for attempt in self._held.values():
            if attempt.home == home:
                attempt.home = None
                attempt.lease_us = lease_us
                self.timers.add(lease_us, attempt, self._lose)

    def adopt(self, home: str) -> None:
        """Note that a node's session is back: it goes on with what it delivered."""
        for attempt in self._held.values():
            if attempt.home is None and attempt.origin == home:
                attempt.home = home
                attempt.lease_us = None

    def keep(self, tokens: Iterable[tuple[ExecutionKey, int]], home: str) -> None:
        """Note that a node looks after these attempts from here on."""
        for key, token in tokens:
            attempt = self._held.get(key)
            if attempt is not None and attempt.delivered.attempt == token:
                attempt.home = home
                attempt.lease_us = None

    def _lose(self, attempt: Attempt) -> None:
        if attempt.lease_us is not None and attempt.lease_us <= self._clock.monotonic_us():
            self.end(attempt, _CUT_OFF, hard=True)

    def _live(self, attempt: Attempt) -> bool:
        return self._held.get(attempt.delivered.key) is attempt

    def _set_times(self, attempt: Attempt) -> bool:
        """Set its timers; False when its deadline is over."""
        timeout_us, deadline_us = attempt.delivered.timeout_us, attempt.delivered.deadline_us
        if timeout_us is None and deadline_us is None:
            return True
        now_us = self._clock.monotonic_us()
        if deadline_us is not None:
            at_us = self._time.monotonic_us(deadline_us)
            if at_us <= now_us:
                return False
            self.timers.add(at_us, attempt, lambda late: self.end(late, _DEADLINE, hard=True))
        if timeout_us is not None:
            self.timers.add(now_us + timeout_us, attempt, self._time_out)
        return True

    def _time_out(self, attempt: Attempt) -> None:
        timeout_us = attempt.delivered.timeout_us or 0
        begun_us = attempt.started_us
        waited_us = timeout_us if begun_us is None else max(0, begun_us + timeout_us - self._time.now_us())
        if waited_us > 0:  # It waited for a process: the timeout counts from its start.
            self.timers.add(self._clock.monotonic_us() + waited_us, attempt, self._time_out)
            return
        seconds = timeout_us / limits.SECOND_US
        text = f"timed out: the handler ran for longer than its timeout of {seconds:g} s"
        self.end(attempt, Ended(AttemptOutcome.TIMED_OUT, error=text), hard=True)

    def _abandon(self, attempt: Attempt) -> None:
        """Report an attempt that does not end by itself; its slot stays taken until it does."""
        self._forget(attempt)
        ended = attempt.told or _CUT_OFF
        self._failures.note(attempt, ended)
        self._sink([(_report(attempt.delivered, ended, attempt.started_us, self._time.now_us()), attempt.home)])

    def _forget(self, attempt: Attempt) -> None:
        attempt.abandoned = True
        self._abandoned.add(attempt)
        del self._held[attempt.delivered.key]
        if not self._held:
            self.quiet.set()

    def _finished(self, batch: list[Finished]) -> None:
        reports: list[tuple[Report, str | None]] = []
        for attempt, ended, at_us in batch:
            if attempt.abandoned:
                self._abandoned.discard(attempt)
                continue
            del self._held[attempt.delivered.key]
            self._failures.note(attempt, ended)
            reports.append((_report(attempt.delivered, ended, attempt.started_us, at_us), attempt.home))
        if not self._held:
            self.quiet.set()
        self._sink(reports)  # Even without any: a slot may be free again.


_DEADLINE: Final = Ended(AttemptOutcome.TIMED_OUT, error="the deadline passed while it ran", retryable=False)
_TOO_LATE: Final = Ended(AttemptOutcome.TIMED_OUT, error="the deadline passed before it could start", retryable=False)
#: Not LOST, which counts against the handler: here the nodes are to blame.
_CUT_OFF: Final = Ended(AttemptOutcome.RETURNED, error="no node answered for the session's lease: the run was ended")


def _unknown(name: str, known: Sequence[str]) -> Ended:
    shown = ", ".join(known[:10]) or "none"
    return Ended(
        AttemptOutcome.UNKNOWN_HANDLER,
        error=f"this executor knows no handler {name!r}; it knows: {shown}",
        retryable=False,
    )


def _report(delivered: Delivered, ended: Ended, started_us: int | None, finished_us: int) -> Report:
    return Report(
        delivered.key,
        delivered.attempt,
        ended.outcome,
        started_us,
        finished_us if started_us is None else max(started_us, finished_us),
        ended.result,
        None if ended.result is None else JSON,
        ended.error,
        ended.retry_after_us,
        ended.retryable,
    )
