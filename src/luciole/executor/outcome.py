"""How one call of a handler ends, whatever it returned or raised."""

import asyncio
import traceback
from typing import Any, Final, NamedTuple

from luciole import limits
from luciole.errors import InvalidPayload, PayloadTooLarge
from luciole.executor.context import Cancelled, RetryLater, Stop
from luciole.model.outbox import AttemptOutcome
from luciole.wire.calls import JSON, CallCodec


class Ended(NamedTuple):
    """The end of an attempt, before it has a key and times."""

    outcome: AttemptOutcome
    result: bytes | None = None
    error: str | None = None
    retry_after_us: int | None = None
    retryable: bool = True


#: Frames of a traceback that are kept, the innermost.
_FRAMES_MAX: Final = 20
_NOTHING: Final = Ended(AttemptOutcome.SUCCEEDED)


def read_arguments(codec: CallCodec, payload: bytes, content_type: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call.

    Raises:
        InvalidPayload: the payload does not fit the handler.
    """
    if content_type != JSON:
        raise InvalidPayload(f"{codec.name}: a payload of type {content_type[:80]!r} can't be read here; only {JSON}")
    return codec.decode(payload)


def success(codec: CallCodec, result: object) -> Ended:
    """Return the end of a call that returned; None is no result.

    Raises:
        InvalidPayload: the result has no JSON form.
        PayloadTooLarge: it is over the limit.
    """
    return _NOTHING if result is None else Ended(AttemptOutcome.SUCCEEDED, codec.encode_result(result))


def failure(problem: BaseException, told: Ended | None) -> Ended:
    """Return the end of a call that raised.

    Args:
        problem: what it raised, or what kept it from being called.
        told: why its end was asked for, if it was; a call that ends by being cancelled ends for this reason.
    """
    if told is not None and isinstance(problem, asyncio.CancelledError | Cancelled):
        return told
    if isinstance(problem, InvalidPayload | PayloadTooLarge):
        # The same payload fails in the same way; and a handler whose result can't be kept has done its work.
        return Ended(AttemptOutcome.FAILED, error=printable(f"{problem.code}: {problem}"), retryable=False)
    if isinstance(problem, RetryLater):
        return Ended(AttemptOutcome.FAILED, error=_name(problem), retry_after_us=problem.delay_us)
    if isinstance(problem, Stop):
        return Ended(AttemptOutcome.FAILED, error=_name(problem), retryable=False)
    return Ended(AttemptOutcome.FAILED, error=_describe(problem))


def printable(text: str) -> str:
    """Return a text that any store and any screen takes: no NUL, no lone surrogates, bounded."""
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text.replace("\x00", "\\x00")[: limits.ERROR_TEXT_LENGTH_MAX]


def _name(problem: BaseException) -> str:
    try:
        text = str(problem)
    except Exception:  # noqa: BLE001 - it is the user's own class
        text = "(its text can't be made)"
    return printable(f"{type(problem).__name__}: {text[: limits.ERROR_TEXT_LENGTH_MAX]}")


def _describe(problem: BaseException) -> str:
    """Return what was raised in the first line, then where, innermost frames last."""
    first = _name(problem)[: limits.ERROR_TEXT_LENGTH_MAX // 2]
    frames = printable("".join(traceback.format_tb(problem.__traceback__, limit=-_FRAMES_MAX)))
    return f"{first}\n{frames[len(first) + 1 - limits.ERROR_TEXT_LENGTH_MAX :]}"
