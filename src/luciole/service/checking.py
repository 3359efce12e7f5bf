"""Checks of what users give: each refusal names the field, what was wrong and what to write instead."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

from luciole import limits
from luciole.errors import InvalidValue

ChoiceT = TypeVar("ChoiceT", bound=StrEnum)


def refuse_unknown(what: str, given: Collection[str], known: Collection[str]) -> None:
    """Refuse names that nobody knows, with the nearest known one.

    Raises:
        InvalidValue: a given name is not among the known ones.
    """
    for name in given:
        if name not in known:
            raise InvalidValue(f"{what}: there is no option {name!r}; {nearest(name, known)}")


def nearest(name: str, known: Collection[str]) -> str:
    """Return "did you mean …?" for a near miss, else the list of what there is."""
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(sorted(known)) or 'none'}"


def read_choice(kind: type[ChoiceT], value: object, *, field: str) -> ChoiceT:
    """Return a value of an enumeration from its text.

    Raises:
        InvalidValue: it is none of the choices.
    """
    choices = [str(choice) for choice in kind]
    if not isinstance(value, str):
        raise InvalidValue(f"{field}: a {type(value).__name__} is none of {', '.join(choices)}")
    if value not in choices:
        raise InvalidValue(f"{field}: {value!r} is no choice; {nearest(value, choices)}")
    return kind(value)


def read_name(value: object, *, field: str, length_max: int = limits.NAME_LENGTH_MAX) -> str:
    """Return a name that can be stored, printed and typed again.

    Raises:
        InvalidValue: not a text, empty, too long, or with characters that can't be printed.
    """
    if not isinstance(value, str):
        raise InvalidValue(f"{field}: a {type(value).__name__} is no name; pass a text")
    if not 0 < len(value) <= length_max:
        raise InvalidValue(f"{field}: it has {len(value)} characters; 1 to {length_max} are possible")
    if not value.isprintable() or value != value.strip():
        raise InvalidValue(f"{field}: {value!a} has blank ends or characters that can't be printed")
    return value


def read_priority(value: object, *, field: str = "priority") -> int:
    """Return a priority; the highest number goes first.

    Raises:
        InvalidValue: not a whole number in range.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidValue(f"{field}: a {type(value).__name__} is no priority; pass a whole number")
    if not limits.PRIORITY_MIN <= value <= limits.PRIORITY_MAX:
        raise InvalidValue(f"{field}: {value} is outside {limits.PRIORITY_MIN} to {limits.PRIORITY_MAX}")
    return value


def read_labels(value: object, *, field: str = "labels") -> tuple[tuple[str, str], ...]:
    """Return labels as sorted pairs.

    Raises:
        InvalidValue: not a mapping of names to names, or too many.
    """
    if not isinstance(value, Mapping):
        raise InvalidValue(f"{field}: a {type(value).__name__} holds no labels; pass a dict such as {{'gpu': 'yes'}}")
    if len(value) > limits.LABELS_MAX:
        raise InvalidValue(f"{field}: {len(value)} are over {limits.LABELS_MAX}")
    return tuple(
        sorted(
            (read_name(name, field=f"{field} name"), read_name(text, field=f"{field}[{name!r}]"))
            for name, text in value.items()
        )
    )
