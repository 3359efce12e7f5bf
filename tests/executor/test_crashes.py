"""Handlers that are trouble, under a real node: what is recorded of them in the end."""

import pytest

from luciole.model.execution import ExecutionState
from luciole.model.outbox import AttemptOutcome
from luciole.testing.app import AppTest
from tests.executor.crash_app import app, counts, dies

pytestmark = pytest.mark.slow


async def test_a_handler_that_kills_its_process_every_time_is_quarantined_with_the_evidence() -> None:
    """Fault 23: no endless loop; three losses are on record, each with how the process ended."""
    async with AppTest(app) as test:
        await dies.enqueue()
        await test.advance("1h")
        (execution,) = await test.executions()
    assert execution.state is ExecutionState.QUARANTINED
    assert [attempt.outcome for attempt in execution.attempts] == [AttemptOutcome.LOST] * 3
    assert {attempt.error for attempt in execution.attempts} == {
        "lost: the process of the handler ended by signal 9 (SIGKILL)"
    }


async def test_a_job_of_an_app_runs_in_a_process_and_is_retried() -> None:
    async with AppTest(app) as test:
        handle = await counts.enqueue()
        await test.advance("1h")
        (execution,) = await test.executions()
        assert await handle.result() == 3
    assert execution.state is ExecutionState.SUCCEEDED
    errors = [(attempt.error or "").splitlines()[0] for attempt in execution.attempts]
    assert errors == ["ValueError: attempt 1", "ValueError: attempt 2"]
