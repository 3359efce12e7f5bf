"""Calls as bytes: what is readable, what comes back typed, and what is refused."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from luciole import limits
from luciole.errors import InvalidPayload, InvalidValue, PayloadTooLarge
from luciole.wire.calls import CallCodec


@dataclass
class Receipt:
    order_id: int
    note: str
    at: datetime


def charge(order_id: int, note: str = "", *, at: datetime | None = None) -> Receipt:
    return Receipt(order_id, note, at or datetime(2026, 1, 1, tzinfo=UTC))


def collect(first: int, /, *rest: int, **named: str) -> list[Any]:
    return [first, rest, named]


@dataclass
class Reading:
    degrees: float


@dataclass(slots=True)
class Moody:
    """Something that raises when it is read."""

    mood: int

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        if name == "mood":
            raise LookupError("not today")
        return object.__getattribute__(self, name)


CHARGE = CallCodec("charge", charge)
COLLECT = CallCodec("collect", collect)


def test_a_payload_names_its_arguments_so_that_people_can_read_it() -> None:
    assert CHARGE.encode((42,), {"note": "hi"}) == b'{"order_id":42,"note":"hi"}'


@pytest.mark.parametrize(
    ("codec", "args", "kwargs"),
    [
        (CHARGE, (42,), {}),
        (CHARGE, (42, "hi"), {"at": datetime(2026, 3, 29, 2, 30, tzinfo=UTC)}),
        (COLLECT, (1, 2, 3), {"a": "b"}),
        (COLLECT, (1,), {}),
    ],
)
def test_a_call_comes_back_as_it_was_made(codec: CallCodec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    decoded_args, decoded_kwargs = codec.decode(codec.encode(args, kwargs))
    assert codec.function(*decoded_args, **decoded_kwargs) == codec.function(*args, **kwargs)


def test_an_argument_after_one_left_to_its_default_is_passed_by_name() -> None:
    codec = CallCodec("f", lambda a=1, b=2: (a, b))
    assert codec.decode(b'{"b":3}') == ((), {"b": 3})


def test_an_older_payload_fits_a_handler_that_gained_a_default() -> None:
    assert CHARGE.decode(b'{"order_id":1}') == ((1,), {})


def test_a_result_comes_back_with_its_type() -> None:
    receipt = charge(7)
    assert CHARGE.decode_result(CHARGE.encode_result(receipt)) == receipt


@pytest.mark.parametrize(
    ("args", "kwargs", "seen"),
    [
        ((), {}, "missing a required argument: 'order_id'"),
        ((1,), {"nte": "x"}, "unexpected keyword argument 'nte'"),
        ((object(),), {}, "has no JSON form"),
        (("\ud800",), {}, "has no JSON form"),
        ((float("nan"),), {}, "NaN"),
        (([1, {"a": float("inf")}],), {}, "NaN and infinity"),
        ((Reading(float("nan")),), {}, "NaN and infinity"),
        ((Moody(1),), {}, "has no JSON form: not today"),
    ],
)
def test_a_call_that_can_not_travel_is_refused(args: tuple[Any, ...], kwargs: dict[str, Any], seen: str) -> None:
    with pytest.raises(InvalidPayload, match=seen):
        CHARGE.encode(args, kwargs)


def test_an_argument_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidPayload, match="no JSON form"):
        CHARGE.encode((endless,), {})


@pytest.mark.parametrize(
    "payload", [b'{"order_id":"1"}', b"{}", b'{"order_id":1,"zz":2}', b"\xff", b"[", b'{"order_id":' + b"[" * 100_000]
)
def test_a_payload_that_does_not_fit_is_refused_by_name(payload: bytes) -> None:
    with pytest.raises(InvalidPayload, match=r"^charge: "):
        CHARGE.decode(payload)


def test_a_payload_over_the_limit_is_refused_with_both_sizes() -> None:
    size = limits.PAYLOAD_BYTES_MAX
    with pytest.raises(PayloadTooLarge, match="1,048,"):
        CHARGE.encode((1, "x" * size), {})
    assert len(CHARGE.encode((1, "x" * (size - 30)), {})) <= size


def test_a_result_over_the_limit_is_refused() -> None:
    with pytest.raises(PayloadTooLarge, match="result"):
        CHARGE.encode_result("x" * limits.RESULT_BYTES_MAX)


@pytest.mark.parametrize("number", [2**70, -(2**70), 0.1, 2**53 + 1])
def test_numbers_of_any_size_come_back(number: float) -> None:
    codec = CallCodec("f", lambda x: x)
    assert codec.decode(codec.encode((number,), {})) == ((number,), {})


class Session:
    """Something that can't travel."""


def test_an_annotation_that_can_not_travel_is_refused_at_definition() -> None:
    def handler(session: Session) -> None:
        del session

    with pytest.raises(InvalidValue, match="'session' is a Session, which has no JSON form; pass an id"):
        CallCodec("handler", handler).check()
    CHARGE.check()
    COLLECT.check()


def test_a_type_that_can_not_travel_is_found_inside_others() -> None:
    def handler(sessions: list[dict[str, Session | None]]) -> None:
        del sessions

    with pytest.raises(InvalidValue, match="'sessions' is a Session"):
        CallCodec("handler", handler).check()
