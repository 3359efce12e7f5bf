"""The log of an executor's failures: each one, but in a storm only some of them and how many there were."""

import logging
from contextvars import Context
from dataclasses import dataclass
from typing import Final

from luciole import limits
from luciole.executor.attempt import Attempt
from luciole.executor.outcome import Ended
from luciole.model.outbox import AttemptOutcome
from luciole.runtime.clock import Clock

_log = logging.getLogger("luciole.executor.failures")

#: How attempts end that somebody should look at.
_WRONG: Final = frozenset(
    {AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT, AttemptOutcome.LOST, AttemptOutcome.RETURNED}
)


@dataclass(slots=True, kw_only=True)
class FailureLog:
    """Tells the log of attempts that went wrong, so that nobody has to ask the store for a traceback."""

    clock: Clock
    _window_us: int | None = None  #: when the present one began, by the monotonic clock
    _told: int = 0
    _untold: int = 0

    def note(self, attempt: Attempt, ended: Ended) -> None:
        """Log the end of an attempt, if it is one of those that somebody should look at."""
        if ended.outcome not in _WRONG:
            return
        now_us = self.clock.monotonic_us()
        if self._window_us is None or now_us - self._window_us >= limits.FAILURES_WINDOW_US:
            if self._untold:
                _log.warning(
                    "%d more attempts went wrong; see `luciole executions list --state troubled`", self._untold
                )
            self._window_us, self._told, self._untold = now_us, 0, 0
        if self._told >= limits.FAILURES_LOGGED_MAX:
            self._untold += 1
            return
        self._told += 1
        delivered = attempt.delivered
        # The loop may run in the context of another attempt, whose name the line would carry.
        Context().run(
            _log.warning,
            "%s, attempt %d of %s: %s", delivered.handler, delivered.attempt, delivered.key.text(), ended.error,
        )  # fmt: skip
