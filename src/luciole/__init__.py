"""Luciole: a durable, distributed job scheduler that proves its own speed and correctness."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luciole.app import App
    from luciole.client.handle import Handle
    from luciole.client.job import Job
    from luciole.client.retry import Retry
    from luciole.client.schedule import Schedule
    from luciole.errors import (
        AlreadyExists,
        Conflict,
        ExecutionFailed,
        Fatal,
        LucioleError,
        NotFound,
        OutcomeUnknown,
        Rejected,
        ResultTimeout,
        Unavailable,
    )
    from luciole.executor.context import Cancelled, Context, ExecutionFilter, RetryLater, Stop, current
    from luciole.model.execution import ExecutionState
    from luciole.model.trigger import Trigger, calendar_every, cron, every, once

__all__ = [
    "AlreadyExists",
    "App",
    "Cancelled",
    "Conflict",
    "Context",
    "ExecutionFailed",
    "ExecutionFilter",
    "ExecutionState",
    "Fatal",
    "Handle",
    "Job",
    "LucioleError",
    "NotFound",
    "OutcomeUnknown",
    "Rejected",
    "ResultTimeout",
    "Retry",
    "RetryLater",
    "Schedule",
    "Stop",
    "Trigger",
    "Unavailable",
    "calendar_every",
    "cron",
    "current",
    "every",
    "once",
]

#: Each public name with where it is defined. It is imported when it is first used: a command line that needs none of
#: them starts in a fifth of the time, and can be interrupted in order before it has begun.
_PLACES = {
    "AlreadyExists": "luciole.errors",
    "App": "luciole.app",
    "Cancelled": "luciole.executor.context",
    "Conflict": "luciole.errors",
    "Context": "luciole.executor.context",
    "ExecutionFailed": "luciole.errors",
    "ExecutionFilter": "luciole.executor.context",
    "ExecutionState": "luciole.model.execution",
    "Fatal": "luciole.errors",
    "Handle": "luciole.client.handle",
    "Job": "luciole.client.job",
    "LucioleError": "luciole.errors",
    "NotFound": "luciole.errors",
    "OutcomeUnknown": "luciole.errors",
    "Rejected": "luciole.errors",
    "ResultTimeout": "luciole.errors",
    "Retry": "luciole.client.retry",
    "RetryLater": "luciole.executor.context",
    "Schedule": "luciole.client.schedule",
    "Stop": "luciole.executor.context",
    "Trigger": "luciole.model.trigger",
    "Unavailable": "luciole.errors",
    "calendar_every": "luciole.model.trigger",
    "cron": "luciole.model.trigger",
    "current": "luciole.executor.context",
    "every": "luciole.model.trigger",
    "once": "luciole.model.trigger",
}


def __getattr__(name: str) -> object:
    """Import a public name."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(_PLACES[name]), name)
    globals()[name] = found
    return found
