"""Retrying: what a report, or the loss of an executor, makes of an execution; decided without reading or writing."""

from typing import NamedTuple

from luciole import limits
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutorId
from luciole.model.instant import Instant
from luciole.model.job import EntryFlag, JobSpec, Retry
from luciole.model.outbox import AttemptOutcome, Entry, Report, Settlement


class _Next(NamedTuple):
    """Where an execution goes from here."""

    state: ExecutionState
    due_us: Instant | None = None  #: of the next attempt, when there is one
    counts_loss: bool = False


def retry_delay_us(retry: Retry, failures: int, chance: float) -> int:
    """Return the pause before the next attempt.

    Args:
        retry: the policy.
        failures: how many attempts have failed, this one included (from 1).
        chance: a random number in [0, 1).
    """
    # An exponent that would overflow is far beyond the bound of the delay.
    steps = min(failures - 1, 1_000) if retry.factor > 1 else 0
    try:
        pause = min(retry.delay_us * retry.factor**steps, retry.delay_max_us)
    except OverflowError:
        pause = retry.delay_max_us
    return int(pause * (1 + retry.jitter * (2 * chance - 1)))


def settle_report(
    report: Report, entry: Entry, job: JobSpec, *, executor_id: ExecutorId | None, now_us: Instant, chance: float
) -> Settlement:
    """Decide what a report does to its execution.

    Args:
        report: what the executor says.
        entry: the entry of this very attempt; `cancel` set when its end was asked for.
        job: its job version.
        executor_id: who reports.
        now_us: the store's clock.
        chance: a random number in [0, 1), for the spread of the retry delay.
    """
    state, due_us, counts_loss = _after_report(report, entry, job, now_us, chance)
    return Settlement(
        report.key,
        report.attempt,
        state,
        report.outcome,
        report.started_us,
        report.finished_us,
        executor_id,
        report.result,
        report.result_type,
        report.error,
        due_us,
        counts_loss,
        bool(entry.flags & EntryFlag.RELEASES) and state.terminal,
    )


def _after_report(report: Report, entry: Entry, job: JobSpec, now_us: Instant, chance: float) -> _Next:
    outcome = report.outcome
    at_most_once = bool(entry.flags & EntryFlag.AT_MOST_ONCE)
    if outcome is AttemptOutcome.SUCCEEDED:
        return _Next(ExecutionState.SUCCEEDED)
    if outcome is AttemptOutcome.LOST:
        # The executor saw the handler's own process die, so the loss is the handler's, recorded delivery or not.
        return _after_loss(entry, job, now_us, counts=True)
    if entry.cancel or outcome is AttemptOutcome.CANCELLED:
        return _Next(ExecutionState.CANCELLED)
    if outcome is AttemptOutcome.RETURNED:
        interrupted = report.started_us is not None
        return _Next(ExecutionState.LOST) if at_most_once and interrupted else _again(entry, now_us)
    if outcome is AttemptOutcome.UNKNOWN_HANDLER:
        return _again(entry, now_us + limits.UNKNOWN_HANDLER_PAUSE_US)
    return _after_failure(report, entry, job, now_us, chance)


def _after_failure(report: Report, entry: Entry, job: JobSpec, now_us: Instant, chance: float) -> _Next:
    retried = report.retryable and entry.failures < job.retry.limit and entry.attempt < limits.ATTEMPTS_MAX
    if not retried or entry.flags & EntryFlag.AT_MOST_ONCE:
        timed_out = report.outcome is AttemptOutcome.TIMED_OUT
        return _Next(ExecutionState.TIMED_OUT if timed_out else ExecutionState.FAILED)
    delay_us = report.retry_after_us
    if delay_us is None:
        delay_us = retry_delay_us(job.retry, entry.failures + 1, chance)
    return _Next(ExecutionState.RETRY_WAIT, now_us + min(max(delay_us, 0), limits.RETRY_DELAY_MAX_US))


class Lost(NamedTuple):
    """An attempt that nobody speaks for any more."""

    entry: Entry
    executor_id: ExecutorId | None  #: who had it, where that is known
    error: str  #: the evidence, for people
    delivered: bool  #: it surely reached an executor


def settle_loss(lost: Lost, job: JobSpec | None, *, now_us: Instant) -> Settlement:
    """Decide what becomes of a lost attempt.

    Only a loss that was surely delivered counts, so that the crash of a node never quarantines an innocent.

    Args:
        lost: the attempt and the evidence.
        job: its job version; None when it can't be read, then the execution is put aside (I7).
        now_us: the store's clock.
    """
    entry = lost.entry
    if entry.cancel:
        after = _Next(ExecutionState.CANCELLED)
    elif job is None:
        after = _Next(ExecutionState.PARKED)
    else:
        after = _after_loss(entry, job, now_us, counts=lost.delivered)
    return Settlement(
        key=entry.key,
        attempt=entry.attempt,
        state=after.state,
        outcome=AttemptOutcome.LOST,
        started_us=None,
        finished_us=now_us,
        executor_id=lost.executor_id,
        error=lost.error,
        due_us=after.due_us,
        counts_loss=after.counts_loss,
        releases=bool(entry.flags & EntryFlag.RELEASES) and after.state.terminal,
    )


def settle_unstarted(entry: Entry, *, state: ExecutionState, now_us: Instant, error: str) -> Settlement:
    """Decide the end, or the parking, of an attempt that no executor was given.

    It was cancelled, its deadline has passed, or nobody knows its handler.
    """
    outcome = AttemptOutcome.UNKNOWN_HANDLER if state is ExecutionState.PARKED else AttemptOutcome.CANCELLED
    return Settlement(
        key=entry.key,
        attempt=entry.attempt,
        state=state,
        outcome=outcome,
        started_us=None,
        finished_us=now_us,
        executor_id=None,
        error=error,
        releases=bool(entry.flags & EntryFlag.RELEASES) and state.terminal,
    )


def next_entry(entry: Entry, settlement: Settlement) -> Entry | None:
    """Return the entry as the store has it after a settlement; None when it is gone or put aside."""
    if settlement.due_us is None:
        return None
    failed = settlement.outcome in {AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT}
    return entry._replace(
        due_us=settlement.due_us,
        attempt=entry.attempt + 1,
        failures=entry.failures + failed,
        losses=entry.losses + settlement.counts_loss,
        delivered=False,
    )


def _after_loss(entry: Entry, job: JobSpec, now_us: Instant, *, counts: bool) -> _Next:
    if entry.flags & EntryFlag.AT_MOST_ONCE:
        # Its delivery is always recorded before it is sent: without the record nobody can have started it.
        if counts or entry.delivered:
            return _Next(ExecutionState.LOST)
        return _Next(ExecutionState.READY, now_us)
    if counts and entry.losses + 1 >= job.losses_max:
        return _Next(ExecutionState.QUARANTINED, counts_loss=True)
    return _again(entry, now_us, counts_loss=counts)


def _again(entry: Entry, due_us: Instant, *, counts_loss: bool = False) -> _Next:
    """Another attempt; one that was tried beyond every bound waits for a person (I7, I10)."""
    if entry.attempt >= limits.ATTEMPTS_MAX:
        return _Next(ExecutionState.PARKED)
    return _Next(ExecutionState.READY, due_us, counts_loss)
