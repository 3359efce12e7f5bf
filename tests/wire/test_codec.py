"""Frames as bytes: they come back as they were, and nothing malformed does harm."""

import importlib.util
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luciole import limits
from luciole.errors import InvalidValue, PayloadTooLarge, ProtocolMismatch
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import AttemptOutcome, Report
from luciole.wire import codec
from luciole.wire import luciole_pb2 as pb
from luciole.wire.fields import nested, repeated
from luciole.wire.messages import Acknowledge, Deliver, Delivered, Grant, Message, Reports
from tests.wire import strategies

ROOT = Path(__file__).parent.parent.parent
KEY = ExecutionKey(3, 7, 1_767_225_600_000_000, 0)


def delivered(payload: bytes, number: int = 0) -> Delivered:
    return Delivered(KEY, number, "h", payload, "application/json", KEY.fire_us, KEY.fire_us, None, None, None)


def reported(result: bytes, number: int = 0) -> Report:
    return Report(KEY, number, AttemptOutcome.SUCCEEDED, KEY.fire_us, KEY.fire_us, result, "application/json")


def read(noise: bytes) -> list[Message] | None:
    """Return the frame, or None for what is refused with a clear error; anything else raised is a finding."""
    try:
        return codec.decode(noise)
    except (ProtocolMismatch, InvalidValue):
        return None


@given(strategies.frames)
def test_a_frame_comes_back_as_it_was(frame: list[Message]) -> None:
    assert list(chain.from_iterable(map(codec.decode, codec.encode(frame)))) == frame


def test_every_kind_of_message_travels() -> None:
    assert set(codec.WRITERS) == set(get_args(Message))
    assert set(codec.READERS) == {field.name for field in pb.Message.DESCRIPTOR.fields}


@pytest.mark.parametrize(
    ("names", "enum", "prefix"),
    [
        (codec.OUTCOMES, "Outcome", "OUTCOME_"),
        (codec.VERDICTS, "Verdict", "VERDICT_"),
        (codec.RUN_INS, "RunIn", "RUN_IN_"),
    ],
)
def test_the_numbers_of_enums_are_those_of_the_protocol(names: tuple[str | None, ...], enum: str, prefix: str) -> None:
    values = pb.DESCRIPTOR.enum_types_by_name[enum].values
    assert {value.name: value.number for value in values} == {
        prefix + (name or "unset").upper(): number for number, name in enumerate(names)
    }


def test_what_a_newer_version_adds_is_passed_over() -> None:
    """Goal: versions that overlap understand each other. Method: an unknown field, and an unknown kind of message."""
    grant = codec.encode([Grant(credits=5)])[0]
    unknown_field = b"\xf2\x01\x03new"  # Number 30, three bytes.
    unknown_kind = b"\x0a\x06" + b"\xf2\x01\x03new"
    assert codec.decode(unknown_field + unknown_kind + grant) == [Grant(credits=5)]


def test_a_value_that_only_another_version_knows_is_a_mismatch() -> None:
    tokens = pb.Tokens(shard=[1], schedule_id=[0], fire_us=[0], part=[0], attempt=[1])
    reports = pb.Reports(tokens=tokens, outcome=[99], finished_us=[0])  # type: ignore[list-item]
    with pytest.raises(ProtocolMismatch, match="outcome 99 is not one that this version knows"):
        codec.decode(pb.Frame(messages=[pb.Message(reports=reports)]).SerializeToString())


def test_a_place_that_only_another_version_knows_is_the_executors_choice() -> None:
    frame = pb.Frame.FromString(codec.encode([Deliver(attempts=(delivered(b""),))])[0])
    frame.messages[0].deliver.run_in.append(99)  # type: ignore[arg-type]
    (message,) = codec.decode(frame.SerializeToString())
    assert isinstance(message, Deliver)
    assert message.attempts[0].run_in is None


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_a_frame_or_a_clear_error(noise: bytes) -> None:
    found = read(noise)
    assert found is None or all(isinstance(message, get_args(Message)) for message in found)


@given(strategies.frames, st.data())
def test_a_damaged_frame_is_a_frame_or_a_clear_error(frame: list[Message], data: st.DataObject) -> None:
    damaged = bytearray(codec.encode(frame)[0] + b"\x00")
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    found = read(bytes(damaged))
    assert found is None or all(isinstance(message, get_args(Message)) for message in found)


@pytest.mark.parametrize(
    ("message", "seen"),
    [
        (pb.Message(acknowledge=pb.Tokens(shard=[1], attempt=[1, 2])), "keys: 1 elements for 2 attempts"),
        (pb.Message(acknowledge=pb.Tokens(attempt=[1] * 200_001)), "200,001 attempts are over the limit"),
        (
            pb.Message(beat=pb.Beat(held=pb.Held(started_us=pb.SparseNumbers(at=[4], values=[1])))),
            "a value for attempt 4 of 0",
        ),
        (pb.Message(confirm=pb.Confirm(verdict=[1])), "verdicts: 1 elements for 0"),  # type: ignore[list-item]
        (pb.Message(reports=pb.Reports(not_retryable=[0])), "a value for attempt 0 of 0"),
        (pb.Message(deliver=pb.Deliver(handler=pb.TextColumn(index=[1]))), "an indexed column"),
        (pb.Message(hello=pb.Hello(handlers=["h"] * 10_001)), "at most 10000 handlers"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(message: pb.Message, seen: str) -> None:
    with pytest.raises(InvalidValue, match=seen):
        codec.decode(pb.Frame(messages=[message]).SerializeToString())


def test_a_frame_over_its_limits_is_refused_unread() -> None:
    with pytest.raises(InvalidValue, match="8,388,609 bytes are over the limit"):
        codec.decode(bytes(limits.FRAME_BYTES_MAX + 1))
    many = pb.Frame(messages=[pb.Message()] * (limits.FRAME_MESSAGES_MAX + 1))
    with pytest.raises(InvalidValue, match="10,001 messages are over the limit"):
        codec.decode(many.SerializeToString())


@pytest.mark.parametrize("kind", ["payloads", "results", "messages"])
def test_a_large_frame_travels_as_several(kind: str) -> None:
    """Goal: the largest payloads and results travel in any batch. Method: 40 of 1 MiB, in one message and in many."""
    frame: list[Message]
    if kind == "payloads":
        payloads = [number.to_bytes(4, "big") * (limits.PAYLOAD_BYTES_MAX // 4) for number in range(40)]
        frame = [Deliver(attempts=tuple(delivered(payload, number) for number, payload in enumerate(payloads)))]
    else:
        result = bytes(limits.RESULT_BYTES_MAX)
        reports = tuple(reported(result, number) for number in range(40))
        split = kind == "messages"
        frame = [Reports(reports=(one,)) for one in reports] if split else [Reports(reports=reports)]
    encoded = codec.encode([Grant(credits=1), *frame, Grant(credits=2)])
    assert max(map(len, encoded)) <= limits.FRAME_BYTES_MAX
    back = list(chain.from_iterable(map(codec.decode, encoded)))
    assert (back[0], back[-1]) == (Grant(credits=1), Grant(credits=2))
    attempts = [
        one.attempt
        for message in back[1:-1]
        for one in (message.attempts if isinstance(message, Deliver) else message.reports)  # type: ignore[union-attr]
    ]
    assert attempts == list(range(40))


def test_one_payload_is_sent_once_however_many_attempts_share_it() -> None:
    payload = b"x" * 100_000
    (encoded,) = codec.encode([Deliver(attempts=tuple(delivered(payload, number) for number in range(500)))])
    assert len(encoded) < 120_000


def _large(number: int) -> bytes:
    return bytes([number]) * 100_000


#: Frames with payloads that are written and read around the library, beside ones that are not.
LARGE: list[list[Message]] = [
    [Deliver(attempts=(delivered(_large(1)),))],
    [Deliver(attempts=(delivered(_large(1)), delivered(b"", 1), delivered(_large(2), 2)))],
    [Reports(reports=(reported(_large(1)), reported(b"{}", 1)._replace(result=None), reported(_large(2), 2)))],
    [Grant(credits=1), Deliver(attempts=(delivered(_large(1)),)), Reports(reports=(reported(_large(2)),))],
    [Deliver(attempts=tuple(delivered(bytes([number]) * 700, number) for number in range(200)))],
]


@pytest.mark.parametrize("frame", LARGE)
def test_large_payloads_come_back_as_they_were(frame: list[Message]) -> None:
    (encoded,) = codec.encode(frame)
    assert codec.decode(encoded) == frame


@pytest.mark.parametrize("frame", LARGE)
def test_peers_that_know_only_the_library_understand_large_frames(frame: list[Message]) -> None:
    """Goal: what is written by hand is plain protobuf, for older versions too. Method: through the library and back."""
    (encoded,) = codec.encode(frame)
    by_library = pb.Frame.FromString(encoded).SerializeToString()
    assert len(by_library) == len(encoded)
    assert codec.decode(by_library) == frame


def test_a_large_frame_may_hold_what_a_newer_version_adds() -> None:
    """Goal: large frames follow the same rules. Method: unknown fields and kinds at each level, and a split column."""
    unknown = b"\xf2\x01\x03new"  # Number 30, three bytes.
    body = pb.Deliver.FromString(pb.Frame.FromString(codec.encode(LARGE[1])[0]).messages[0].deliver.SerializeToString())
    first, *others = body.payload.values
    index = list(body.payload.index)
    del body.payload.values[:], body.payload.index[:]
    column = [*repeated(1, [first]), unknown]
    more = [*repeated(1, others), pb.BytesColumn(index=index).SerializeToString()]
    deliver = [*nested(3, column), body.SerializeToString(), unknown, *nested(3, more)]
    encoded = b"".join([unknown, *nested(1, [unknown]), *nested(1, nested(5, deliver))])
    assert codec.decode(encoded) == LARGE[1]


@given(st.sampled_from(LARGE), st.data())
def test_a_damaged_large_frame_is_a_frame_or_a_clear_error(frame: list[Message], data: st.DataObject) -> None:
    damaged = bytearray(codec.encode(frame)[0])
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, 40) | st.integers(0, len(damaged) - 1))
        damaged[place] = data.draw(st.integers(0, 255))
    found = read(bytes(damaged[: data.draw(st.none() | st.integers(40_000, len(damaged)))]))
    assert found is None or all(isinstance(message, get_args(Message)) for message in found)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (Deliver(attempts=(delivered(bytes(limits.FRAME_BYTES_MAX + 1)),)), PayloadTooLarge),
        (Acknowledge(attempts=((ExecutionKey(1, 2**70, 0, 0), 1),)), InvalidValue),
        (Reports(reports=(reported(b"")._replace(error="\ud800"),)), InvalidValue),
    ],
)
def test_what_has_no_form_on_the_wire_is_refused(message: Message, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^frame: "):
        codec.encode([message])


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_wire", ROOT / "scripts/generate_wire.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_module_is_that_of_the_protocol(tmp_path: Path) -> None:
    (tmp_path / "luciole/wire").mkdir(parents=True)
    _script().generate(tmp_path)
    for name in ("luciole_pb2.py", "luciole_pb2.pyi"):
        generated = (tmp_path / "luciole/wire" / name).read_text(encoding="utf-8")
        assert (ROOT / "src/luciole/wire" / name).read_text(encoding="utf-8") == generated, "run: generate_wire.py"
