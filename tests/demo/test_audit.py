"""The audit sees what it is there to see: each kind of broken promise turns it red."""

from dataclasses import replace
from typing import Any

import pytest

from luciole import limits
from luciole.demo.audit import Audit, audit_schedule
from luciole.model.execution import AttemptView, ExecutionState, ExecutionView, Origin
from luciole.model.ids import ExecutionKey
from luciole.model.job import JobSpec, Overlap
from luciole.model.schedule import Policy, Reason, ScheduleSpec, ScheduleState, ScheduleView
from luciole.model.trigger import every
from luciole.store.reads import LedgerView

S = limits.SECOND_US
FIRES = [n * S for n in range(1, 6)]
SCHEDULE = ScheduleView(
    schedule_id=7,
    shard=0,
    spec=ScheduleSpec(name="often", job=JobSpec(handler="h"), trigger=every("1s").to_spec()),
    version=1,
    state=ScheduleState.ACTIVE,
    reason=None,
    fire_us=None,
    due_us=None,
    revision=0,
    created_us=0,
    updated_us=0,
)


def run(fire_us: int, **changes: Any) -> ExecutionView:  # noqa: ANN401 - fields of a view
    view = ExecutionView(
        key=ExecutionKey(0, 7, fire_us, 0),
        namespace="default",
        handler="h",
        job_id=1,
        state=ExecutionState.SUCCEEDED,
        attempt=1,
        due_us=fire_us,
        priority=5,
        origin=Origin.SCHEDULE,
        created_us=fire_us,
        started_us=fire_us + 1_000,
        finished_us=fire_us + 2_000,
        executor_id="e" * 16,
        payload=b"",
        content_type="application/json",
        result=None,
        result_type=None,
        error=None,
        progress=None,
        request_key=None,
        replay_of=None,
        parent=None,
        labels=(),
        deadline_us=None,
        cancel_requested=False,
    )
    return replace(view, **changes)


def attempt(number: int, outcome: str) -> AttemptView:
    return AttemptView(
        attempt=number, outcome=outcome, error=None, executor_id="e" * 16, started_us=3 * S, finished_us=4 * S
    )


def audited(*rows: ExecutionView, ledger: tuple[LedgerView, ...] = (), schedule: ScheduleView = SCHEDULE) -> Audit:
    audit = Audit()
    audit_schedule(audit, schedule, rows, ledger, fires=FIRES)
    return audit


WHOLE = tuple(map(run, FIRES))


def test_a_whole_record_holds() -> None:
    audit = audited(*WHOLE)
    assert (audit.expected, audit.fired, audit.succeeded, audit.lag_us(0.5), audit.held) == (5, 5, 5, 1_000, True)


def test_a_skip_in_the_ledger_is_an_outcome() -> None:
    row = LedgerView(first_us=2 * S, last_us=3 * S, fires=2, reason=Reason.OVERLAP)
    audit = audited(WHOLE[0], *WHOLE[3:], ledger=(row,))
    assert (audit.skipped, audit.fired, audit.held) == (2, 3, True)


def test_retries_and_rescues_are_counted() -> None:
    retried = run(1 * S, attempt=2, attempts=(attempt(1, "failed"),))
    rescued = run(2 * S, attempt=2, attempts=(attempt(1, "lost"),))
    audit = audited(retried, rescued, *WHOLE[2:])
    assert (audit.retried, audit.rescued, audit.held) == (1, 1, True)


FORBID = replace(SCHEDULE, spec=replace(SCHEDULE.spec, policy=Policy(overlap=Overlap.FORBID)))
TWICE = LedgerView(first_us=1 * S, last_us=1 * S, fires=1, reason=Reason.OVERLAP)
MISCOUNTED = LedgerView(first_us=1 * S, last_us=1 * S, fires=3, reason=Reason.OVERLAP)

BROKEN = [
    ("lost", WHOLE[1:], ()),
    ("doubled", (*WHOLE, run(6 * S)), ()),
    ("doubled", WHOLE, (TWICE,)),
    ("doubled", WHOLE[1:], (MISCOUNTED,)),
    ("doubled", (run(1 * S, attempt=2), *WHOLE[1:]), ()),
    ("doubled", (run(1 * S, started_us=1 * S - 1), *WHOLE[1:]), ()),  # I11: it started before its time.
    ("doubled", (run(1 * S, attempt=2, attempts=(attempt(1, "succeeded"),)), *WHOLE[1:]), ()),
    ("unfinished", (run(1 * S, state=ExecutionState.RUNNING, finished_us=None), *WHOLE[1:]), ()),
    ("overlaps", (run(1 * S, finished_us=3 * S), *WHOLE[1:]), ()),
]


@pytest.mark.parametrize(("kind", "rows", "ledger"), BROKEN)
def test_a_broken_promise_is_seen(kind: str, rows: tuple[ExecutionView, ...], ledger: tuple[LedgerView, ...]) -> None:
    audit = audited(*rows, ledger=ledger, schedule=FORBID)
    assert getattr(audit, kind) > 0
    assert not audit.held
    assert audit.problems
