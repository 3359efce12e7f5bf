"""The reporter: outcomes of attempts, from all sessions, settled in groups and confirmed once they are durable."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from luciole import limits
from luciole.errors import Fatal, Rejected, Unavailable
from luciole.gateway.flights import Flights
from luciole.gateway.jobs import JobShelf
from luciole.gateway.outcomes import Outcomes
from luciole.gateway.session import Session
from luciole.gateway.strangers import read_stranger
from luciole.model.execution import ExecutionState
from luciole.model.ids import NO_SCHEDULE, ExecutionKey
from luciole.model.job import EntryFlag
from luciole.model.outbox import AttemptOutcome, Entry, Report, Settled, Settlement
from luciole.model.retrying import settle_report
from luciole.runtime.chance import Chance
from luciole.runtime.probe import Probe, Stage
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import Store
from luciole.wire.messages import Confirm, Verdict

_log = logging.getLogger("luciole.reporter")


class _Item:
    """One outcome on its way into the store."""

    __slots__ = ("entry", "report", "session", "settlement", "tries", "verdict")

    def __init__(
        self, entry: Entry | None, session: Session | None, report: Report | None, settlement: Settlement | None = None
    ) -> None:
        self.entry = entry  #: None: this node does not know the attempt
        self.session = session  #: who waits for the confirmation
        self.report = report  #: None: the settlement is the node's own decision
        self.settlement = settlement  #: None: not decided yet
        self.verdict = Verdict.DURABLE  #: what a durable outcome is confirmed as
        self.tries = 0  #: how often it failed alone


@dataclass(slots=True, kw_only=True)
class Reporter:
    """Settles whatever has gathered in one call: group commit without a timer.

    Several ticks may run at once, each with its own batch. A batch that fails for the store's sake goes back and is
    repeated, which changes nothing that was already settled.
    """

    store: Store
    store_clock: StoreClock
    telemetry: Telemetry
    flights: Flights
    jobs: JobShelf
    outcomes: Outcomes
    chance: Chance
    wake: Callable[[], None]  #: pokes the loops of `tick`
    idle_pause_us: int = limits.REST_US
    probe: Probe | None = None
    _queue: deque[_Item] = field(default_factory=deque)
    _under_way: int = 0
    _begun_us: int = 0  #: when the latest settle call began
    _taken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def waiting(self) -> int:
        """How many outcomes are not settled yet."""
        return len(self._queue) + self._under_way

    async def room(self) -> None:
        """Wait while so much waits that sessions should not be read any further (I10)."""
        while len(self._queue) >= limits.REPORT_QUEUE_MAX:
            self._taken.clear()
            await self._taken.wait()

    def collect(self, session: Session, reports: Sequence[Report]) -> None:
        """Take reports of a session; each is confirmed when it is durable."""
        lags: Counter[int] = Counter()
        for report in reports:
            flight = self.flights.of_attempt(report.key, report.attempt)
            entry = None if flight is None else flight.entry
            self._queue.append(_Item(entry, session, report))
            if entry is not None and report.started_us is not None:
                lags[(report.started_us - entry.due_us) // limits.MS_US] += 1
        for lag_ms, times in lags.items():
            self.telemetry.note("start_lag", max(0, lag_ms) * limits.MS_US, times)
        if self.probe is not None:
            self.probe.stamp(Stage.REPORT, [report.key for report in reports], self.store_clock.now_us())
            for report in reports:
                if report.started_us is not None:
                    self.probe.stamp(Stage.START, (report.key,), report.started_us)
        self.wake()

    def settle(self, settlement: Settlement, entry: Entry) -> None:
        """Take a decision of this node about an attempt that no executor has."""
        self._queue.append(_Item(entry, None, None, settlement))
        self.wake()

    def fail(self, key: ExecutionKey, attempt: int, error: str) -> None:
        """Take the failure of an attempt that could not be sent to its executor."""
        flight = self.flights.of_attempt(key, attempt)
        if flight is not None:
            now_us = self.store_clock.now_us()
            report = Report(key, attempt, AttemptOutcome.FAILED, None, now_us, error=error, retryable=False)
            self._queue.append(_Item(flight.entry, None, report))
            self.wake()

    async def tick(self) -> int:
        """Settle what has gathered; return the pause."""
        if self._gathers():
            return limits.REPORT_COMPANY_US
        batch = self._take()
        if not batch:
            return self.idle_pause_us
        self._under_way += len(batch)
        self._begun_us = self.store_clock.now_us()
        try:
            await self._decide(batch)
            await self._settle(batch)
        except BaseException:
            self._queue.extendleft(reversed(batch))
            raise
        finally:
            self._under_way -= len(batch)
        return 0 if self._queue else self.idle_pause_us

    def _gathers(self) -> bool:
        """Whether what waits is better left to the call under way, which takes all of it when it comes back."""
        if not self._under_way or len(self._queue) >= limits.REPORT_COMPANY_MIN:
            return False
        return self.store_clock.now_us() - self._begun_us < limits.REPORT_COMPANY_US

    def _take(self) -> list[_Item]:
        batch: list[_Item] = []
        size = 0
        queue = self._queue
        while queue and len(batch) < limits.REPORT_BATCH_MAX and size < limits.REPORT_BYTES_MAX:
            item = queue.popleft()
            batch.append(item)
            if item.report is not None and item.report.result is not None:
                size += len(item.report.result)
        self._taken.set()
        return batch

    async def _decide(self, batch: Sequence[_Item]) -> None:
        """Give each item its settlement."""
        undecided = []
        for item in batch:
            report = item.report
            if item.settlement is not None or report is None:
                continue
            if report.outcome is AttemptOutcome.SUCCEEDED and len(report.result or b"") <= limits.RESULT_BYTES_MAX:
                # Nearly all are such: no decision, no look at the job.
                item.settlement = _as_reported(report, item.entry, item.session)
            else:
                undecided.append(item)
        if undecided:
            await self._decide_rest(undecided)

    async def _decide_rest(self, items: Sequence[_Item]) -> None:
        """Decide what takes the job version to decide."""
        for item in items:
            if item.entry is None and item.report is not None:
                entry = await read_stranger(self.store, self.telemetry, item.report.key)
                if entry is not None and entry.attempt == item.report.attempt:
                    item.entry = entry
        jobs = await self.jobs.load({item.entry.job_id for item in items if item.entry is not None})
        now_us = self.store_clock.now_us()
        for item in items:
            report = item.report
            assert report is not None  # What has no settlement is a report.
            if report.result is not None and len(report.result) > limits.RESULT_BYTES_MAX:
                error = f"the result has {len(report.result)} bytes; at most {limits.RESULT_BYTES_MAX} are kept"
                item.report = report = _without_result(report, error)
                item.verdict = Verdict.INVALID
            entry = item.entry
            job = None if entry is None else jobs.get(entry.job_id)
            if entry is None or job is None:
                item.settlement = _as_reported(report, entry, item.session)
            else:
                executor_id = None if item.session is None else item.session.executor_id
                item.settlement = settle_report(
                    report, entry, job, executor_id=executor_id, now_us=now_us, chance=self.chance()
                )

    async def _settle(self, items: Sequence[_Item]) -> None:
        """Settle decided items; bisect them when one can't be stored, so that it never blocks the others (I8)."""
        settlements = [item.settlement for item in items if item.settlement is not None]
        try:
            answers = await self.telemetry.timed("settle", self.store.settle(settlements))
        except (Unavailable, Fatal):
            raise
        except Exception as problem:  # noqa: BLE001 - whatever a row provokes, the rows beside it go on
            if len(items) > 1:
                middle = len(items) // 2
                await self._settle(items[:middle])
                await self._settle(items[middle:])
            else:
                self._refused_alone(items[0], problem)
            return
        # I9: only now, when it is durable, does anybody hear of it.
        self._confirm(items, answers)

    def _refused_alone(self, item: _Item, problem: Exception) -> None:
        """Deal with an outcome that the store can't take: record that it could not be recorded."""
        assert item.settlement is not None
        _log.error("the outcome of %s can't be stored: %s", item.settlement.key.text(), problem)
        self.telemetry.count("reports_unstorable")
        if not isinstance(problem, Rejected) and item.tries < limits.SURPRISES_MAX:
            item.tries += 1  # The store itself may be to blame.
            self._queue.append(item)
        elif item.report is not None and item.verdict is Verdict.DURABLE:
            item.report = _without_result(item.report, f"its outcome can't be stored: {type(problem).__name__}")
            item.settlement = None
            item.verdict = Verdict.INVALID
            self._queue.append(item)
        self.wake()

    def _confirm(self, items: Sequence[_Item], answers: Sequence[Settled]) -> None:
        verdicts: dict[Session, list[tuple[ExecutionKey, int, Verdict]]] = {}
        for item, answer in zip(items, answers, strict=True):
            settlement = item.settlement
            assert settlement is not None
            self.outcomes.apply(item.entry, settlement, answer)
            if item.session is not None:
                # I5: an old token changed nothing; it is counted, and its executor told.
                verdict = Verdict.STALE if answer is Settled.REFUSED else item.verdict
                verdicts.setdefault(item.session, []).append((settlement.key, settlement.attempt, verdict))
        for session, answered in verdicts.items():
            session.push(Confirm(verdicts=tuple(answered)))
        if self.probe is not None:
            keys = [item.settlement.key for item in items if item.settlement is not None]
            self.probe.stamp(Stage.SETTLE, keys, self.store_clock.now_us())


#: What a report alone makes of an execution, where nothing more is known than its token.
_STATES = {
    AttemptOutcome.SUCCEEDED: ExecutionState.SUCCEEDED,
    AttemptOutcome.CANCELLED: ExecutionState.CANCELLED,
    AttemptOutcome.TIMED_OUT: ExecutionState.TIMED_OUT,
}


def _without_result(report: Report, error: str) -> Report:
    return report._replace(outcome=AttemptOutcome.FAILED, result=None, result_type=None, error=error, retryable=False)


def _as_reported(report: Report, entry: Entry | None, session: Session | None) -> Settlement:
    """Settle an attempt as its executor says; its token decides whether anything is written (I5)."""
    # Of a stranger the store finds out whether anything waits for it.
    releases = report.key.schedule_id != NO_SCHEDULE if entry is None else bool(entry.flags & EntryFlag.RELEASES)
    return Settlement(
        report.key,
        report.attempt,
        _STATES.get(report.outcome, ExecutionState.FAILED),
        report.outcome,
        report.started_us,
        report.finished_us,
        None if session is None else session.executor_id,
        report.result,
        report.result_type,
        report.error,
        None,
        False,
        releases,
    )
