"""Protobuf's own bytes, field by field: what payloads travel through, because the library copies each many times.

A message that is built by the library holds a copy of its payload, the message around it a copy of that, and so on
to the frame: a payload of 1 MB was copied 12 times to become a frame. Here a frame is a list of pieces that are joined
once, and is read by cutting the payloads out of it. Everything but the payloads is still the library's to write,
to read and to judge.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from luciole.errors import ProtocolMismatch

#: Bytes that follow each other, not joined yet.
Pieces: TypeAlias = Sequence[bytes]

# How a field's value is told from the next field, in the lowest bits of its tag.
_NUMBER, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED: Final = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_KIND_BITS: Final = 3
_VARINT_BITS_MAX: Final = 63


@lru_cache(maxsize=4_096)
def head(number: int, length: int) -> bytes:
    """Return what stands in front of a field of bytes, or of a message in a field."""
    return _varint(number << _KIND_BITS | _BYTES) + _varint(length)


def nested(number: int, pieces: Pieces) -> list[bytes]:
    """Return a field that holds the message of these pieces."""
    return [head(number, sum(map(len, pieces))), *pieces]


def repeated(number: int, values: Sequence[bytes]) -> list[bytes]:
    """Return a repeated field of bytes; no value is copied."""
    pieces: list[bytes] = []
    for value in values:
        pieces += (head(number, len(value)), value)
    return pieces


def first_number(message: memoryview) -> int:
    """Return the number of a message's first field; 0 when there is none, or one beyond 15."""
    return message[0] >> _KIND_BITS & 0xF if len(message) and message[0] < 0x80 else 0  # noqa: PLR2004 - see `_varint`


def cut(message: memoryview, number: int) -> tuple[bytes, list[memoryview]]:
    """Take the values of one field of bytes out of a message.

    Args:
        message: its bytes, as they came.
        number: of the field.

    Returns:
        The rest of the message, a message itself, and the values in order, which lie where they came.

    Raises:
        ProtocolMismatch: the bytes are no message.
    """
    wanted = number << _KIND_BITS | _BYTES
    values: list[memoryview] = []
    rest: list[memoryview] = []
    at = kept = 0
    end = len(message)
    try:
        while at < end:
            start = at
            tag, at = _read_varint(message, at)
            length, at = _read_length(message, at, tag & 7)
            if tag == wanted:
                rest.append(message[kept:start])
                values.append(message[at : at + length])
                kept = at + length
            at += length
    except IndexError:
        at = end + 1
    if at > end:
        raise ProtocolMismatch("frame: a field of it is cut off")
    rest.append(message[kept:])
    return b"".join(rest), values


def _read_length(message: memoryview, at: int, kind: int) -> tuple[int, int]:
    """Return how long a field's value is, and where it begins."""
    if kind == _BYTES:
        return _read_varint(message, at)
    if kind == _NUMBER:
        return 0, _read_varint(message, at)[1]
    if kind in _FIXED:
        return _FIXED[kind], at
    raise ProtocolMismatch(f"frame: no field is of kind {kind}; is the other end luciole?")


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte, the lowest first
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return a number, and where the next byte is."""
    byte = message[at]
    if byte < 0x80:  # noqa: PLR2004 - nearly all are: the last byte has no highest bit
        return byte, at + 1
    value = byte & 0x7F
    for shift in range(7, _VARINT_BITS_MAX + 1, 7):
        at += 1
        byte = message[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - same
            return value, at + 1
    raise ProtocolMismatch("frame: a number of it has no end; is the other end luciole?")
