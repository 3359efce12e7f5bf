"""Triggers on the command line: `--cron`, `--every`, `--at`, and how a stored one is shown."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar, cast

import click

from luciole.errors import InvalidTrigger, LucioleError
from luciole.model.cron_parse import Seconds
from luciole.model.trigger import Trigger, cron, every, once, trigger_from_spec

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--cron", "expression", metavar="EXPR", help='Such as "30 2 * * *".'),
    click.option(
        "--seconds", type=click.Choice(["first", "last"]), help="Where six fields of --cron hold the seconds."
    ),
    click.option("--tz", metavar="ZONE", help="IANA zone of --cron; default UTC."),
    click.option("--every", "interval", metavar="DURATION", help='Such as "30s" or "1h30m".'),
    click.option("--at", metavar="TIME", help="Once, at an ISO time with its offset."),
)


def trigger_options(command: CommandT) -> CommandT:
    """Give a command the options that make a trigger: `expression`, `tz`, `interval`, `at`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def make_trigger(
    *,
    expression: str | None = None,
    seconds: str | None = None,
    tz: str | None = None,
    interval: str | None = None,
    at: str | None = None,
) -> Trigger | None:
    """Return the trigger that the options describe; None without any.

    Raises:
        InvalidTrigger: more than one of them, or one that makes no trigger.
    """
    given = [name for name, text in (("--cron", expression), ("--every", interval), ("--at", at)) if text is not None]
    if len(given) > 1:
        raise InvalidTrigger(f"{' and '.join(given)} exclude each other; keep one")
    if expression is None and (tz is not None or seconds is not None):
        raise InvalidTrigger("--tz and --seconds belong to --cron; the others know no fields and no zone")
    if expression is not None:
        return cron(expression, tz=tz or "UTC", seconds=cast("Seconds | None", seconds))
    if interval is not None:
        return every(interval)
    if at is not None:
        return once(read_time(at))
    return None


def read_time(text: str) -> datetime:
    """Return the datetime of an ISO text.

    Raises:
        InvalidTrigger: it is none, or has no offset.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidTrigger(f"time: {text!r} is none; write it as 2026-03-29T02:30:00+01:00") from None
    if at.tzinfo is None:
        raise InvalidTrigger(f"time: {text!r} has no offset; end it with Z or one such as +01:00")
    return at


def trigger_text(spec: str) -> str:
    """Return a stored trigger as a person reads it; one that can't be read, as it is stored."""
    try:
        return str(trigger_from_spec(spec))
    except LucioleError:
        return spec
