"""Regressions that were accepted, with their reason and for a time: red means "explain", not "never"."""

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from luciole.bench.verdict import Usage

#: Where they stand in a working copy.
ACCEPTED = Path("perf/accepted.toml")

_HEAD = """\
# Regressions that were accepted: what became worse, by how much at most (a share), why, and until when.
# Past its day an entry no longer counts, and the comparison is red again.
"""


class Accepted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One accepted regression."""

    profile: str
    metric: str
    size: float  #: the share by which it may be worse
    reason: str
    expires: date
    backend: str | None = None  #: None: on each

    def covers(self, profile: str, backend: str, metric: str) -> bool:
        """Return whether it speaks of this figure."""
        return (self.profile, self.metric) == (profile, metric) and self.backend in {None, backend}


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    accepted: list[Accepted] = []


def read_accepted(path: Path) -> list[Accepted]:
    """Read the file; none is no entry.

    Raises:
        Usage: it is not what it should be.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    try:
        entries = msgspec.convert(tomllib.loads(text), _Document).accepted
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise Usage(f"{path}: {error}") from None
    for entry in entries:
        _check(entry, path)
    return entries


def accept(path: Path, entry: Accepted) -> None:
    """Append an entry.

    Raises:
        Usage: the file is not what it should be, or the entry gives no reason or size.
    """
    read_accepted(path)
    _check(entry, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    draft = path.with_suffix(".part")
    draft.write_text(f"{before.rstrip()}\n\n{_block(entry)}", encoding="utf-8")
    draft.replace(path)


def _check(entry: Accepted, path: Path) -> None:
    if not entry.reason.strip():
        raise Usage(f"{path}: {entry.metric}: reason is empty; say why it was accepted")
    if not 0 < entry.size < float("inf"):
        raise Usage(f"{path}: {entry.metric}: size is {entry.size:g}; it is the share by which the figure may be worse")


def _block(entry: Accepted) -> str:
    lines = ["[[accepted]]"]
    for name, value in msgspec.structs.asdict(entry).items():
        if value is not None:
            lines.append(f"{name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:  # noqa: ANN401 - text, a number or a day
    if isinstance(value, str):
        return msgspec.json.encode(value).decode("utf-8")  # A JSON string is a basic string of TOML.
    return value.isoformat() if isinstance(value, date) else repr(value)
