"""Luciole: a durable, distributed job scheduler that proves its own speed and correctness."""

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
