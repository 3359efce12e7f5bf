"""What a running handler can learn and say: its execution, its progress, and that it should end."""

import logging
from contextvars import ContextVar
from datetime import datetime, timedelta
from threading import Event, Lock

from luciole import limits
from luciole.errors import IllegalState, InvalidValue
from luciole.model.duration import Duration, duration_us
from luciole.model.ids import ExecutionKey
from luciole.model.instant import Instant, to_datetime


class RetryLater(Exception):
    """Raised by a handler: this attempt failed, and the next one starts after `delay` (within the job's retry limit).

    Args:
        delay: "90s", a number of seconds, or a timedelta.

    Raises:
        InvalidValue: the delay is none.
        reason: what the attempt's record says.
    """

    def __init__(self, delay: Duration, reason: str = "") -> None:
        self.delay_us = duration_us(delay, field="RetryLater.delay")
        super().__init__(reason or f"retry in {timedelta(microseconds=self.delay_us)}")


class Stop(Exception):
    """Raised by a handler: this attempt failed, and trying again is no use."""


class Cancelled(Exception):
    """Raised by `Context.check` when the handler's end was asked for."""


class Context:
    """One attempt, as its handler sees it. Its methods may be called from any thread."""

    __slots__ = ("_event", "_progress", "_told", "attempt", "deadline_us", "due_us", "fire_us", "handler", "key")

    def __init__(
        self,
        *,
        key: ExecutionKey,
        attempt: int,
        handler: str,
        fire_us: Instant,
        due_us: Instant,
        deadline_us: Instant | None,
    ) -> None:
        self.key = key
        self.attempt = attempt  #: from 1
        self.handler = handler
        self.fire_us = fire_us
        self.due_us = due_us
        self.deadline_us = deadline_us
        self._told = False
        self._event: Event | None = None  # Made for the few that wait.
        self._progress: str | None = None

    @property
    def execution_id(self) -> str:
        """The public id of the execution."""
        return self.key.text()

    @property
    def fire_time(self) -> datetime:
        """The nominal time that this execution stands for, UTC."""
        return to_datetime(self.fire_us)

    @property
    def due_time(self) -> datetime:
        """The time from which it was allowed to start, UTC: the fire time and its jitter."""
        return to_datetime(self.due_us)

    @property
    def deadline(self) -> datetime | None:
        """The time at which it is cancelled, UTC."""
        return None if self.deadline_us is None else to_datetime(self.deadline_us)

    @property
    def cancelled(self) -> bool:
        """Whether its end was asked for: cancelled by somebody, timed out, or its executor is stopping."""
        return self._told

    def check(self) -> None:
        """Do nothing, or raise `Cancelled` when the end was asked for; for the loops of thread and process handlers."""
        if self._told:
            raise Cancelled(f"the end of execution {self.execution_id} was asked for")

    def wait(self, seconds: float) -> bool:
        """Wait in a thread or process handler, instead of sleeping.

        Returns:
            True as soon as its end was asked for, False when the time is over.
        """
        with _making:
            if self._event is None:
                self._event = Event()
                if self._told:
                    self._event.set()
        return self._event.wait(seconds)

    def tell(self) -> None:
        """Ask for the end of this attempt; what executors do."""
        with _making:
            self._told = True
            if self._event is not None:
                self._event.set()

    def progress(self, value: str | float) -> None:
        """Tell how far it is, as a text or a number; the latest value travels with the next heartbeat.

        Raises:
            InvalidValue: it is neither.
        """
        if not isinstance(value, str | float | int):
            raise InvalidValue(f"progress: a {type(value).__name__} is neither a text nor a number; write it as a text")
        text = value if isinstance(value, str) else f"{value:g}"
        self._progress = text.encode("utf-8", "replace").decode()[: limits.PROGRESS_LENGTH_MAX]

    @property
    def latest_progress(self) -> str | None:
        """What `progress` was told last."""
        return self._progress


_making = Lock()
_current: ContextVar[Context] = ContextVar("luciole_context")


def current() -> Context:
    """Return the context of the handler that runs here.

    Raises:
        IllegalState: no handler of Luciole runs here.
    """
    try:
        return _current.get()
    except LookupError:
        raise IllegalState("luciole.current(): no handler runs here; call it inside one") from None


def enter(context: Context) -> None:
    """Make a context the current one of this task, thread or process, before its handler is called."""
    _current.set(context)


class ExecutionFilter(logging.Filter):
    """Give each log record of a handler its `execution_id` and `attempt`; outside of handlers "-" and 0.

    Add it to a logging handler, whose format may then say `%(execution_id)s` and `%(attempt)s`.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the two attributes; every record passes."""
        context = _current.get(None)
        record.execution_id = "-" if context is None else context.execution_id
        record.attempt = 0 if context is None else context.attempt
        return True
