"""The audit: what should have happened, computed from the triggers, against what the store recorded.

It uses nothing but the read-only verbs of the store and the triggers' own arithmetic: no counter of a node or an
executor is believed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from luciole import limits
from luciole.model.execution import ExecutionState, ExecutionView
from luciole.model.instant import Instant
from luciole.model.job import Overlap
from luciole.model.outbox import AttemptOutcome
from luciole.model.schedule import ScheduleView
from luciole.model.trigger import trigger_from_spec
from luciole.store.reads import ExecutionFilter, LedgerView, ScheduleFilter
from luciole.store.spi import Store

#: Problems that are told in words; the rest are counted.
_PROBLEMS_MAX = 10


@dataclass(slots=True, kw_only=True)
class Audit:
    """What the store says, added up."""

    schedules: int = 0
    expected: int = 0  #: fire times that the triggers name
    fired: int = 0  #: of them, executions
    skipped: int = 0  #: of them, in the ledger
    succeeded: int = 0
    unfinished: int = 0
    retried: int = 0  #: executions with an attempt that failed
    rescued: int = 0  #: executions with an attempt that was lost with its executor
    lost: int = 0  #: fire times without any outcome
    doubled: int = 0  #: fire times with two outcomes, or attempts without a reason
    overlaps: int = 0  #: executions that started before the one before them had ended, where that is forbidden
    lags_us: list[int] = field(default_factory=list)  #: first start - due time
    problems: list[str] = field(default_factory=list)

    @property
    def held(self) -> bool:
        """Whether every promise held."""
        return not (self.lost or self.doubled or self.overlaps or self.unfinished)

    def lag_us(self, share: float) -> int:
        """Return a percentile of the lags, such as 0.99; 0 without any."""
        lags = sorted(self.lags_us)
        return lags[min(len(lags) - 1, int(len(lags) * share))] if lags else 0

    def complain(self, text: str) -> None:
        """Keep a problem in words."""
        if len(self.problems) < _PROBLEMS_MAX:
            self.problems.append(text)


async def audit_store(store: Store, *, from_us: Instant, until_us: Instant) -> Audit:
    """Compare every schedule's fire times in [from, until] with what is recorded.

    Args:
        store: an open store; it is only read.
        from_us: every schedule was declared before.
        until_us: every fire time up to here is past.
    """
    audit = Audit()
    query = ScheduleFilter()
    while True:
        page = await store.list_schedules(query)
        for schedule in page.rows:
            executions = await _executions_of(store, schedule)
            ledger = await store.list_ledger(schedule.schedule_id, schedule.shard, limit=limits.PAGE_MAX)
            audit_schedule(audit, schedule, executions, ledger, fires=_fires(schedule, from_us, until_us))
        if page.next is None:
            return audit
        query = replace(query, page=page.next)


def audit_schedule(
    audit: Audit,
    schedule: ScheduleView,
    executions: Sequence[ExecutionView],
    ledger: Sequence[LedgerView],
    *,
    fires: Sequence[Instant],
) -> None:
    """Add one schedule to the audit.

    Args:
        audit: what was found so far.
        schedule: as it is stored.
        executions: all of it, attempts included.
        ledger: all of it.
        fires: the fire times that its trigger names.
    """
    name = schedule.spec.name
    audit.schedules += 1
    audit.expected += len(fires)
    planned = Counter(row.key.fire_us for row in executions if row.key.part >= 0)
    covered = Counter(fire_us for row in ledger for fire_us in fires if row.first_us <= fire_us <= row.last_us)
    for fire_us in fires:
        outcomes = planned[fire_us] + covered[fire_us]
        if outcomes == 0:
            audit.lost += 1
            audit.complain(f"{name}: nothing became of its fire time {fire_us}")
        elif outcomes > 1:
            audit.doubled += outcomes - 1
            audit.complain(f"{name}: its fire time {fire_us} has {outcomes} outcomes")
    for fire_us in planned.keys() - set(fires):
        audit.doubled += planned[fire_us]
        audit.complain(f"{name}: it fired at {fire_us}, which its trigger does not name")
    if sum(row.fires for row in ledger) != sum(covered.values()):
        audit.doubled += 1
        audit.complain(f"{name}: its ledger counts other fires than lie in its ranges")
    audit.skipped += sum(covered.values())
    audit.fired += len(executions)
    for row in executions:
        _audit_execution(audit, name, row)
    if schedule.spec.policy.overlap is Overlap.FORBID:
        _audit_overlap(audit, name, executions)


def _audit_execution(audit: Audit, name: str, row: ExecutionView) -> None:
    audit.succeeded += row.state is ExecutionState.SUCCEEDED
    if not row.state.terminal:
        audit.unfinished += 1
        audit.complain(f"{name}: execution {row.key.text()} is still {row.state.name.lower()}")
    outcomes = Counter(attempt.outcome for attempt in row.attempts)
    audit.retried += outcomes[AttemptOutcome.FAILED] > 0
    audit.rescued += outcomes[AttemptOutcome.LOST] > 0
    # Every attempt before the current one ended in a way that is recorded; a success is recorded nowhere else.
    numbers = [attempt.attempt for attempt in row.attempts if attempt.attempt < row.attempt]
    if sorted(numbers) != list(range(1, row.attempt)) or outcomes[AttemptOutcome.SUCCEEDED]:
        audit.doubled += 1
        audit.complain(f"{name}: execution {row.key.text()} has attempt {row.attempt} without a reason")
    started = _started_us(row)
    if started is not None:
        audit.lags_us.append(max(0, started - row.due_us) if not row.attempts else max(0, started - row.key.fire_us))
        if started < row.key.fire_us:
            audit.doubled += 1
            audit.complain(f"{name}: execution {row.key.text()} started before its time")  # I11


def _audit_overlap(audit: Audit, name: str, executions: Iterable[ExecutionView]) -> None:
    spans = sorted(
        (started_us, row.finished_us or started_us)
        for row in executions
        if (started_us := _started_us(row)) is not None
    )
    for (_, before_us), (after_us, _) in pairwise(spans):
        if after_us < before_us:
            audit.overlaps += 1
            audit.complain(f"{name}: two of its executions ran at {after_us}")


def _started_us(row: ExecutionView) -> Instant | None:
    """Return when the first attempt that is known to have started did."""
    known = [attempt.started_us for attempt in row.attempts] + [row.started_us]
    return min((started_us for started_us in known if started_us is not None), default=None)


async def _executions_of(store: Store, schedule: ScheduleView) -> list[ExecutionView]:
    """Return all executions of a schedule; those with more than one attempt are read with them."""
    query = ExecutionFilter(schedule_id=schedule.schedule_id)
    found: list[ExecutionView] = []
    while True:
        page = await store.list_executions(query)
        for row in page.rows:
            plain = row.attempt == 1 and row.state is ExecutionState.SUCCEEDED
            found.append(row if plain else await store.get_execution(row.key) or row)
        if page.next is None:
            return found
        query = replace(query, page=page.next)


def _fires(schedule: ScheduleView, from_us: Instant, until_us: Instant) -> list[Instant]:
    trigger = trigger_from_spec(schedule.spec.trigger)
    fires: list[Instant] = []
    fire_us = trigger.next_us(from_us - 1)
    while fire_us is not None and fire_us <= until_us:
        fires.append(fire_us)
        fire_us = trigger.next_us(fire_us)
    return fires
