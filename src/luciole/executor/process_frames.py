"""What an executor and one of its handler processes say to each other: length, then MessagePack."""

from typing import Final, TypeAlias

import msgspec

from luciole import limits

#: A frame's length comes first, in this many bytes, big-endian.
LENGTH_BYTES: Final = 4
FRAME_BYTES_MAX: Final = limits.RESULT_BYTES_MAX + 64 * 1_024  # Result and error of one call, and their wrapping.


class Begin(msgspec.Struct, tag="begin", array_like=True):
    """To the process, once: where modules are found, and the least level of log lines that somebody wants to see."""

    path: list[str]
    log_level: int


class Call(msgspec.Struct, tag="call", array_like=True):
    """To the process: run this handler."""

    name: str
    function: str  #: "module:qualified.name"
    payload: bytes
    content_type: str
    key: tuple[int, int, int, int]
    attempt: int
    fire_us: int
    due_us: int
    deadline_us: int | None


class Told(msgspec.Struct, tag="told", array_like=True):
    """To the process: the end of the call under way was asked for."""


class Progress(msgspec.Struct, tag="progress", array_like=True):
    """From the process: how far the call is."""

    text: str


class Started(msgspec.Struct, tag="started", array_like=True):
    """From the process: it is ready, or the handler is about to be called."""


class Done(msgspec.Struct, tag="done", array_like=True):
    """From the process: the call has ended."""

    outcome: str
    result: bytes | None
    error: str | None
    retry_after_us: int | None
    retryable: bool


ToProcess: TypeAlias = Begin | Call | Told
FromProcess: TypeAlias = Progress | Started | Done

_encoder: Final = msgspec.msgpack.Encoder()
to_process: Final = msgspec.msgpack.Decoder(ToProcess)
from_process: Final = msgspec.msgpack.Decoder(FromProcess)


def frame(message: ToProcess | FromProcess) -> bytes:
    """Return a message with its length in front."""
    body = _encoder.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body
