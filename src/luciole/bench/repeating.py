"""The exact command that a stored result came from, and how to run it again."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from luciole.bench.result import FILE_NAME, KIND
from luciole.bench.verdict import NotReadable, Usage

#: What stands in a stored command for a password.
PLACE = "<password>"

#: Where the password comes from when the command is run again.
VARIABLE = "LUCIOLE_BENCH_PASSWORD"

_KINDS = {KIND, "luciole.bench.ab"}


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What any document of the bench says of where it came from."""

    kind: str
    command: list[str]
    started: str
    product: dict[str, Any] = {}
    environment: dict[str, Any] = {}

    def line(self) -> str:
        """Return the command as a shell takes it; a password stands as `<password>`."""
        return shlex.join(self.command)


def read_origin(path: Path) -> Origin:
    """Read where a document came from: a file, or the folder of a result.

    Raises:
        NotReadable: there is none, or it is half written.
    """
    file = path / FILE_NAME if path.is_dir() else path
    try:
        origin = msgspec.json.decode(file.read_bytes(), type=Origin)
    except OSError as error:
        raise NotReadable(f"{file}: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise NotReadable(f"{file}: no whole document of the bench ({error})") from None
    if origin.kind not in _KINDS:
        raise NotReadable(f"{file}: this is no result of the bench")
    return origin


def runnable(command: Sequence[str], *, interpreter: str, password: str | None) -> list[str]:
    """Return a stored command as this interpreter runs it, with its password filled in, encoded as an address has it.

    Raises:
        Usage: it is no command of the bench, or it needs a password and there is none.
    """
    if list(command[:2]) != ["luciole", "bench"]:
        raise Usage(f"the result holds no command of the bench: {' '.join(command[:3])}")
    if any(PLACE in word for word in command) and password is None:
        raise Usage(f"the command needs a password: set {VARIABLE}")
    filled = [word.replace(PLACE, quote(password or "", safe="")) for word in command[1:]]
    return [interpreter, "-m", "luciole", *filled]
