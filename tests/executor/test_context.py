"""What a handler learns and says through its context."""

import logging
from contextvars import copy_context
from datetime import UTC, datetime, timedelta

import pytest

from luciole import limits
from luciole.errors import IllegalState, InvalidValue
from luciole.executor.context import Cancelled, Context, ExecutionFilter, RetryLater, current, enter
from luciole.model.duration import Duration
from luciole.model.ids import ExecutionKey

KEY = ExecutionKey(7, 42, 1_767_225_600_000_000, 0)


def a_context() -> Context:
    return Context(
        key=KEY, attempt=2, handler="h", fire_us=KEY.fire_us, due_us=KEY.fire_us + 3_000_000, deadline_us=None
    )


def test_a_context_speaks_of_its_execution_in_public_words() -> None:
    context = a_context()
    assert context.execution_id == KEY.text()
    assert context.fire_time == datetime(2026, 1, 1, tzinfo=UTC)
    assert context.due_time - context.fire_time == timedelta(seconds=3)
    assert context.deadline is None


def test_outside_of_handlers_there_is_no_context() -> None:
    with pytest.raises(IllegalState, match="no handler runs here"):
        current()


def test_the_current_context_is_that_of_the_running_handler() -> None:
    context = a_context()
    scope = copy_context()
    scope.run(enter, context)
    assert scope.run(current) is context


def test_a_handler_that_was_told_to_end_sees_it() -> None:
    context = a_context()
    context.check()
    context.tell()
    assert context.wait(60)
    assert context.cancelled
    with pytest.raises(Cancelled, match=KEY.text()):
        context.check()


def test_progress_is_a_short_text_that_can_travel() -> None:
    context = a_context()
    context.progress(0.25)
    assert context.latest_progress == "0.25"
    with pytest.raises(InvalidValue, match="progress: a dict is neither a text nor a number"):
        context.progress({"part": 1})  # type: ignore[arg-type]
    context.progress("\ud800" + "x" * 5_000)
    assert context.latest_progress is not None
    assert len(context.latest_progress.encode()) == limits.PROGRESS_LENGTH_MAX


def test_log_records_of_a_handler_carry_its_execution() -> None:
    record = logging.LogRecord("user", logging.INFO, "x.py", 1, "hi", None, None)
    assert ExecutionFilter().filter(record)
    assert (record.execution_id, record.attempt) == ("-", 0)  # type: ignore[attr-defined]
    scope = copy_context()
    scope.run(enter, a_context())
    scope.run(ExecutionFilter().filter, record)
    assert (record.execution_id, record.attempt) == (KEY.text(), 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("delay", "delay_us"), [(1.5, 1_500_000), (timedelta(minutes=2), 120_000_000), ("90s", 90_000_000), (0, 0)]
)
def test_a_handler_chooses_its_own_delay(delay: Duration, delay_us: int) -> None:
    assert RetryLater(delay).delay_us == delay_us
