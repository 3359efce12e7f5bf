"""Keep results of the bench in `docs/performance/results`, and make `docs/performance/results.md` from all of them.

    python scripts/keep_result.py RESULT=NAME ...

A kept result is a file in version control: what is large (traces, series, samples, flame graphs) and what only its
machine knows (folders) is left out. A result that did not hold, or that came from changed files, is no evidence and
is refused.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from luciole.bench.report.markdown import page
from luciole.bench.result import Result, read_result
from luciole.bench.verdict import BenchError

_PAGES = Path(__file__).parents[1] / "docs" / "performance"

#: What a part read back that only its report draws.
_LARGE = {"samples"}

_TEMPORARY = re.compile(r"/(?:[\w.-]+/)*(?=luciole-)")

_NAME = re.compile(r"\d\d-[a-z0-9-]+")


class NotKept(Exception):
    """A result that is no evidence."""


def kept(result: Result) -> bytes:
    """Return what is kept of a result, as the text of its file.

    Raises:
        NotKept: its run did not hold, or its revision is not the one that was committed.
    """
    if result.verdict.code != 0:
        raise NotKept(f"its verdict is {result.verdict.word}: {result.verdict.reason}")
    if result.product.get("dirty") is not False:
        raise NotKept("it was measured with files that no commit holds; commit them and measure again")
    command = list(result.command)
    if "--out" in command:
        at = command.index("--out")
        del command[at : at + 2]
    repeats = [
        msgspec.structs.replace(one, traces=[], series=[], flames=[], actual=_small(one.actual))
        for one in result.repeats
    ]
    small = msgspec.structs.replace(result, command=command, repeats=repeats, flames=[], actual=_small(result.actual))
    return msgspec.json.format(_without_folders(msgspec.json.encode(small)), indent=1) + b"\n"


def keep(result: Path, name: str, pages: Path = _PAGES) -> Path:
    """Keep one result under a name such as `07-pickup-sqlite`; return its file.

    Raises:
        NotKept: it is no evidence, or the name is none.
        BenchError: it can't be read.
    """
    if not _NAME.fullmatch(name):
        raise NotKept(f"{name!r}: a name has two digits, then words in small letters, as 07-pickup-sqlite")
    file = pages / "results" / f"{name}.json"
    file.write_bytes(kept(read_result(result)))
    return file


def write_page(pages: Path = _PAGES) -> None:
    """Make the page of all kept results."""
    results = [read_result(path) for path in sorted((pages / "results").glob("*.json"))]
    (pages / "results.md").write_text(page(results), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Keep what the command line names; return the exit code."""
    pairs = [one.rpartition("=") for one in arguments]
    if not pairs or not all(source and name for source, _, name in pairs):
        print(__doc__, file=sys.stderr)
        return 2
    for source, _, name in pairs:
        try:
            print(keep(Path(source), name))
        except (NotKept, BenchError) as error:
            print(f"{source}: {error}", file=sys.stderr)
            return 1
    write_page()
    return 0


def _small(actual: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in actual.items() if name not in _LARGE}


def _without_folders(text: bytes) -> bytes:
    return _TEMPORARY.sub("/tmp/", text.decode()).encode()  # noqa: S108 - a name for any


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
