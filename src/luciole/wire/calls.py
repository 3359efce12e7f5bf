"""Calls as bytes: the arguments of one handler, named by its parameters, and what it returns.

A payload is a JSON object with one field for each argument given, under the name of its parameter; `*args` is a
list and `**kwargs` an object under theirs. So a person can read it, and a handler can move its parameters about
and gain ones with defaults while older payloads still wait. Types come back as the annotations say.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import GenericAlias
from typing import Any, Final, get_type_hints

import msgspec

from luciole import limits
from luciole.errors import InvalidPayload, InvalidValue, PayloadTooLarge

#: The content type of what this module writes.
JSON: Final = "application/json"

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class CallCodec:
    """How the calls of one handler become bytes and come back.

    Args:
        name: the handler's name, for messages.
        function: the handler itself; its annotations are read when they are first needed, so that they may
            name what its module defines later.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function
        self.signature = inspect.signature(function)
        # Without defaults, stars and keyword-only ones, the decoded fields are the arguments as they stand.
        self._flat = all(
            parameter.kind in _POSITIONAL and parameter.default is parameter.empty
            for parameter in self.signature.parameters.values()
        )
        self._names = tuple(self.signature.parameters)

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """Return the payload of a call.

        Raises:
            InvalidPayload: the handler can't be called so, or an argument has no JSON form.
            PayloadTooLarge: the payload is over `limits.PAYLOAD_BYTES_MAX`.
        """
        if self._flat and not kwargs and len(args) == len(self._names):
            given = dict(zip(self._names, args, strict=True))  # What binding would find, at a tenth of its cost.
        else:
            try:
                given = self.signature.bind(*args, **kwargs).arguments
            except TypeError as problem:
                raise InvalidPayload(f"{self.name}: {problem}; its parameters are {self.signature}") from None
        payload = self._bytes(given, "an argument")
        if len(payload) > limits.PAYLOAD_BYTES_MAX:
            raise PayloadTooLarge(
                f"{self.name}: the arguments take {len(payload):,} bytes, over {limits.PAYLOAD_BYTES_MAX:,}; "
                "store the data elsewhere and pass where it is"
            )
        return payload

    def decode(self, payload: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and keyword arguments, converted to the handler's annotations.

        Raises:
            InvalidPayload: the payload does not fit the handler's parameters; the message names the field.
        """
        try:
            given = self._decoder.decode(payload or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise InvalidPayload(f"{self.name}: the payload does not fit its parameters: {problem}") from None
        if self._flat:
            return msgspec.structs.astuple(given), {}
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        by_name = False
        for name, parameter in self.signature.parameters.items():
            value = getattr(given, name)
            if value is msgspec.UNSET:
                by_name = True  # What follows is passed by name, so that this one keeps its default.
            elif parameter.kind is parameter.VAR_POSITIONAL:
                args += value
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs |= value
            elif parameter.kind in _POSITIONAL and not by_name:
                args.append(value)
            else:
                kwargs[name] = value
        return tuple(args), kwargs

    def encode_result(self, result: object) -> bytes:
        """Return what the handler returned as bytes.

        Raises:
            InvalidPayload: it has no JSON form.
            PayloadTooLarge: it is over `limits.RESULT_BYTES_MAX`.
        """
        encoded = self._bytes(result, "the result")
        if len(encoded) > limits.RESULT_BYTES_MAX:
            raise PayloadTooLarge(
                f"{self.name}: the result takes {len(encoded):,} bytes, over {limits.RESULT_BYTES_MAX:,}; "
                "store the data elsewhere and return where it is"
            )
        return encoded

    def decode_result(self, result: bytes | None) -> Any:  # noqa: ANN401 - the handler's own type
        """Return a result as the handler's return annotation says.

        Raises:
            InvalidPayload: the bytes do not fit the annotation.
        """
        if result is None:
            return None
        try:
            return self._result_decoder.decode(result)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise InvalidPayload(f"{self.name}: the result does not fit its annotation: {problem}") from None

    def check(self) -> None:
        """Refuse annotations that have no JSON form, while the handler is being defined.

        Raises:
            InvalidValue: the message names the parameter and its type.
        """
        try:
            self._hints  # noqa: B018 - reading it resolves them
        except (NameError, AttributeError, TypeError) as problem:
            raise InvalidValue(f"{self.name}: an annotation can't be resolved: {problem}") from None
        for name in self.signature.parameters:
            _check_type(f"{self.name}: parameter {name!r}", self._hints.get(name, Any))
        _check_type(f"{self.name}: the result", self._hints.get("return", Any))

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(inspect.unwrap(self.function), include_extras=True)

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        fields: list[tuple[str, Any, Any]] = []
        for name, parameter in self.signature.parameters.items():
            hint = self._hints.get(name, Any)
            if parameter.kind is parameter.VAR_POSITIONAL:
                fields.append((name, GenericAlias(list, (hint,)), msgspec.field(default_factory=list)))
            elif parameter.kind is parameter.VAR_KEYWORD:
                fields.append((name, GenericAlias(dict, (str, hint)), msgspec.field(default_factory=dict)))
            elif parameter.default is parameter.empty:
                fields.append((name, hint, msgspec.NODEFAULT))
            else:
                fields.append((name, hint | msgspec.UnsetType, msgspec.UNSET))
        struct = msgspec.defstruct("Call", fields, forbid_unknown_fields=True, kw_only=True)
        return msgspec.json.Decoder(struct)

    @cached_property
    def _result_decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self._hints.get("return", Any))

    def _bytes(self, value: object, what: str) -> bytes:
        try:
            encoded = msgspec.json.encode(value)
            lost = b"null" in encoded and _has_no_number(value)
        except Exception as problem:  # noqa: BLE001 - a property of the user's own object may raise anything
            text = str(problem).encode("utf-8", "backslashreplace").decode()
            raise InvalidPayload(f"{self.name}: {what} has no JSON form: {text or type(problem).__name__}") from None
        if lost:
            raise InvalidPayload(f"{self.name}: NaN and infinity have no JSON form; pass None or a text")
        return encoded


def _check_type(what: str, hint: Any) -> None:  # noqa: ANN401 - any annotation
    try:
        custom = _custom(msgspec.inspect.type_info(hint))
    except TypeError as problem:
        raise InvalidValue(f"{what} can't travel as JSON: {problem}") from None
    if custom is not None:
        raise InvalidValue(f"{what} is a {custom.__name__}, which has no JSON form; pass an id or plain data")


def _custom(info: object) -> type | None:
    """Return a type somewhere inside that has no JSON form."""
    rest: list[object] = [info]
    seen: set[int] = set()
    while rest:
        one = rest.pop()
        if id(one) in seen:  # A type may contain itself.
            continue
        seen.add(id(one))
        if isinstance(one, msgspec.inspect.CustomType) and one.cls is not object:  # Anything is an object.
            return one.cls
        if isinstance(one, list | tuple):
            rest += one
        elif isinstance(one, msgspec.inspect.Type | msgspec.inspect.Field):
            rest += (getattr(one, name) for name in one.__struct_fields__)
    return None


def _has_no_number(value: object) -> bool:
    """Tell whether a NaN or an infinity hides in a value, which JSON would silently turn into null."""
    rest = [msgspec.to_builtins(value)]
    while rest:
        one = rest.pop()
        if isinstance(one, float) and not math.isfinite(one):
            return True
        if isinstance(one, dict):
            rest += one.values()
        elif isinstance(one, list | tuple):
            rest += one
    return False
