"""Protobuf's bytes by hand: as the library writes and reads them, and nothing malformed does harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luciole.errors import ProtocolMismatch
from luciole.wire import luciole_pb2 as pb
from luciole.wire.fields import cut, first_number, nested, repeated

blobs = st.lists(st.binary(max_size=300), max_size=5)
indexes = st.lists(st.integers(0, 2**32 - 1), max_size=5)


@given(blobs, indexes)
def test_what_is_written_by_hand_is_what_the_library_reads(values: list[bytes], index: list[int]) -> None:
    column = [*repeated(1, values), pb.BytesColumn(index=index).SerializeToString()]
    deliver = pb.Deliver.FromString(b"".join(nested(3, column)))
    assert deliver == pb.Deliver(payload=pb.BytesColumn(values=values, index=index))


@given(blobs, indexes)
def test_what_the_library_writes_is_cut_in_two(values: list[bytes], index: list[int]) -> None:
    written = pb.BytesColumn(values=values, index=index).SerializeToString()
    rest, found = cut(memoryview(written), 1)
    assert pb.BytesColumn.FromString(rest) == pb.BytesColumn(index=index)
    assert [bytes(value) for value in found] == values


def test_values_are_not_copied() -> None:
    written = b"".join(repeated(1, [b"x" * 1_000]))
    (value,) = cut(memoryview(written), 1)[1]
    assert value.obj is written


@given(st.binary(max_size=40), st.integers(1, 20))
def test_bytes_of_any_kind_are_cut_or_refused(noise: bytes, number: int) -> None:
    first_number(memoryview(noise))
    try:
        rest, found = cut(memoryview(noise), number)
    except ProtocolMismatch:
        return
    assert len(rest) + sum(map(len, found)) <= len(noise)


@pytest.mark.parametrize(
    ("malformed", "seen"),
    [
        (b"\x0a\x05four", "cut off"),
        (b"\x0a", "cut off"),
        (b"\x0d\x00", "cut off"),
        (b"\x0b", "no field is of kind 3"),
        (b"\x08" + b"\xff" * 11, "has no end"),
    ],
)
def test_what_is_no_message_is_a_mismatch(malformed: bytes, seen: str) -> None:
    with pytest.raises(ProtocolMismatch, match=seen):
        cut(memoryview(malformed), 1)
