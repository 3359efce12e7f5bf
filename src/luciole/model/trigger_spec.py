"""Trigger specs: a trigger as canonical JSON text, one text for each trigger, and the way to read one."""

import json
from collections.abc import Mapping

from luciole import limits
from luciole.errors import InvalidTrigger
from luciole.model.bounds import Bounds

_HINT = "write what to_spec() gave"


#: One encoder for all: `json.dumps` makes one for each text, at twice its price.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def spec_text(fields: Mapping[str, object]) -> str:
    """Give canonical JSON: keys sorted, no blanks, ASCII."""
    return _ENCODER.encode(fields)


class SpecFields:
    """The fields of one stored trigger, each asked for once by name and type.

    Every method raises InvalidTrigger when the field is absent (and has no default) or of another type.
    """

    __slots__ = ("_fields",)

    def __init__(self, text: object) -> None:
        if not isinstance(text, str) or len(text) > limits.TRIGGER_LENGTH_MAX:
            size = f" of {len(text)} characters" if isinstance(text, str) else ""
            raise InvalidTrigger(f"trigger: a {type(text).__name__}{size} is no trigger text; {_HINT}")
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise InvalidTrigger(f"trigger: {text[:40]!a} is no JSON object; {_HINT}")
        self._fields: dict[str, object] = fields

    def text(self, name: str) -> str:
        """Take a text."""
        value = self._take(name)
        if not isinstance(value, str):
            raise InvalidTrigger(f"{name}: a stored trigger has a text here, not a {type(value).__name__}; {_HINT}")
        return value

    def optional_text(self, name: str) -> str | None:
        """Take a text, or None when it is absent."""
        return self.text(name) if name in self._fields else None

    def whole(self, name: str, low: int, high: int, *, default: int | None = None) -> int:
        """Take a whole number from low to high."""
        if default is not None and name not in self._fields:
            return default
        value = self._take(name)
        if type(value) is not int or not low <= value <= high:
            raise InvalidTrigger(f"{name}: a stored trigger has a whole number from {low} to {high} here; {_HINT}")
        return value

    def instant(self, name: str) -> int:
        """Take an instant."""
        return self.whole(name, limits.INSTANT_MIN_US, limits.INSTANT_MAX_US)

    def bounds(self) -> Bounds:
        """Take start, end and jitter, each of which may be absent."""
        return Bounds(
            start_us=self.instant("start_us") if "start_us" in self._fields else None,
            end_us=self.instant("end_us") if "end_us" in self._fields else None,
            jitter_us=self.whole("jitter_us", 0, limits.DURATION_MAX_US, default=0),
        )

    def finish(self) -> None:
        """Refuse fields that nobody asked for: a trigger that is only half understood fires at wrong times."""
        for name in self._fields:
            raise InvalidTrigger(f"trigger: {name[:40]!a} is no field of this kind of trigger; {_HINT}")

    def _take(self, name: str) -> object:
        if name not in self._fields:
            raise InvalidTrigger(f"{name}: the stored trigger lacks it; {_HINT}")
        return self._fields.pop(name)
