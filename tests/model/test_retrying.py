from hypothesis import given
from hypothesis import strategies as st

from luciole import limits
from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.job import EntryFlag, JobSpec, Retry
from luciole.model.outbox import AttemptOutcome, Entry, EntryState, Report, Settlement
from luciole.model.retrying import Lost, next_entry, retry_delay_us, settle_loss, settle_report, settle_unstarted
from luciole.testing.factories import an_entry

NOW_US = 1_000 * SECOND_US
JOB = JobSpec(handler="report", retry=Retry(limit=2, delay_us=SECOND_US, factor=2, jitter=0), losses_max=3)


def settled(entry: Entry, outcome: AttemptOutcome, job: JobSpec = JOB, **fields: object) -> Settlement:
    report = Report(entry.key, entry.attempt, outcome, NOW_US - 5, NOW_US)._replace(**fields)  # type: ignore[arg-type]
    return settle_report(report, entry, job, executor_id="e", now_us=NOW_US, chance=0.5)


def test_only_failures_count_against_the_retry_limit() -> None:
    """Goal: losses and returns grow the token and must not eat the limit."""
    entry = an_entry(attempt=7, failures=1, losses=2)
    again = settled(entry, AttemptOutcome.FAILED)
    assert (again.state, again.due_us) == (ExecutionState.RETRY_WAIT, NOW_US + 2 * SECOND_US)
    then = next_entry(entry, again)
    assert then is not None
    assert (then.attempt, then.failures, then.losses) == (8, 2, 2)
    assert settled(then, AttemptOutcome.FAILED).state is ExecutionState.FAILED
    assert settled(then, AttemptOutcome.TIMED_OUT).state is ExecutionState.TIMED_OUT


def test_a_handler_may_choose_its_delay_or_refuse_another_try() -> None:
    entry = an_entry()
    assert settled(entry, AttemptOutcome.FAILED, retry_after_us=90).due_us == NOW_US + 90
    assert settled(entry, AttemptOutcome.FAILED, retry_after_us=-1).due_us == NOW_US
    far = settled(entry, AttemptOutcome.FAILED, retry_after_us=2**70)
    assert far.due_us == NOW_US + limits.RETRY_DELAY_MAX_US
    assert settled(entry, AttemptOutcome.FAILED, retryable=False).state is ExecutionState.FAILED


def test_what_was_returned_runs_again_and_counts_as_nothing() -> None:
    entry = an_entry(failures=2, losses=1)
    again = settled(entry, AttemptOutcome.RETURNED)
    then = next_entry(entry, again)
    assert (again.state, again.due_us, again.counts_loss) == (ExecutionState.READY, NOW_US, False)
    assert then == entry._replace(due_us=NOW_US, attempt=2)


def test_at_most_once_is_never_run_again_once_it_may_have_started() -> None:
    once = an_entry(flags=EntryFlag.AT_MOST_ONCE, delivered=True)
    job = JobSpec(handler="report", at_most_once=True, retry=Retry(limit=5))
    assert settled(once, AttemptOutcome.FAILED, job).state is ExecutionState.FAILED
    assert settled(once, AttemptOutcome.RETURNED, job).state is ExecutionState.LOST
    assert settled(once, AttemptOutcome.RETURNED, job, started_us=None).state is ExecutionState.READY
    assert settled(once, AttemptOutcome.LOST, job).state is ExecutionState.LOST
    assert settle_loss(Lost(once, None, "gone", delivered=False), job, now_us=NOW_US).state is ExecutionState.LOST
    unsent = Lost(once._replace(delivered=False), None, "gone", delivered=False)
    assert settle_loss(unsent, job, now_us=NOW_US).state is ExecutionState.READY


def test_only_recorded_losses_lead_to_quarantine() -> None:
    entry = an_entry(losses=2)
    innocent = settle_loss(Lost(entry, None, "its node is gone", delivered=False), JOB, now_us=NOW_US)
    assert (innocent.state, innocent.counts_loss) == (ExecutionState.READY, False)
    guilty = settle_loss(Lost(entry, "e", "its executor is gone", delivered=True), JOB, now_us=NOW_US)
    assert (guilty.state, guilty.counts_loss, guilty.due_us) == (ExecutionState.QUARANTINED, True, None)
    assert settled(entry, AttemptOutcome.LOST).state is ExecutionState.QUARANTINED


def test_a_wish_for_its_end_beats_every_retry_and_no_success() -> None:
    entry = an_entry(cancel=True)
    for outcome in (AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT, AttemptOutcome.RETURNED, AttemptOutcome.CANCELLED):
        assert settled(entry, outcome).state is ExecutionState.CANCELLED
    assert settle_loss(Lost(entry, None, "gone", delivered=True), JOB, now_us=NOW_US).state is ExecutionState.CANCELLED
    assert settled(entry, AttemptOutcome.SUCCEEDED).state is ExecutionState.SUCCEEDED


def test_what_was_tried_beyond_every_bound_waits_for_a_person() -> None:
    entry = an_entry(attempt=limits.ATTEMPTS_MAX)
    assert settled(entry, AttemptOutcome.RETURNED).state is ExecutionState.PARKED
    assert settle_loss(Lost(entry, None, "gone", delivered=False), JOB, now_us=NOW_US).state is ExecutionState.PARKED
    # I7: so does what this version can't read.
    assert settle_loss(Lost(an_entry(), None, "gone", delivered=True), None, now_us=NOW_US).state is (
        ExecutionState.PARKED
    )


def test_a_successor_is_released_by_the_end_and_by_nothing_before() -> None:
    entry = an_entry(flags=EntryFlag.RELEASES)
    assert settled(entry, AttemptOutcome.SUCCEEDED).releases
    assert not settled(entry, AttemptOutcome.FAILED).releases
    ended = settle_unstarted(entry, state=ExecutionState.CANCELLED, now_us=NOW_US, error="too late")
    assert ended.releases
    assert not settle_unstarted(entry, state=ExecutionState.PARKED, now_us=NOW_US, error="unknown").releases


def test_the_next_entry_is_ready_in_its_store_and_not_delivered() -> None:
    entry = an_entry(delivered=True, state=EntryState.HELD)
    then = next_entry(entry, settled(entry, AttemptOutcome.FAILED))
    assert then is not None
    assert not then.delivered
    assert next_entry(entry, settled(entry, AttemptOutcome.SUCCEEDED)) is None


@given(
    st.integers(0, limits.HOUR_US),
    st.floats(1, 1_000),
    st.integers(0, limits.HOUR_US),
    st.floats(0, 1),
    st.integers(1, limits.ATTEMPTS_MAX),
    st.floats(0, 1, exclude_max=True),
)
def test_a_delay_stays_within_its_spread_and_never_overflows(
    delay_us: int, factor: float, more_us: int, jitter: float, failures: int, chance: float
) -> None:
    retry = Retry(limit=1, delay_us=delay_us, factor=factor, delay_max_us=delay_us + more_us, jitter=jitter)
    pause_us = retry_delay_us(retry, failures, chance)
    assert delay_us * (1 - jitter) - 1 <= pause_us <= (delay_us + more_us) * (1 + jitter) + 1
