"""Named statements: `common/*.sql` read once, with the replacements of a dialect's `overrides.sql`.

A file holds statements under headers:

    -- name: settle_succeeded
    -- rows: shard int, attempt bigint     what the `{rows}` source carries: a set-wise statement
    -- each: shard int                     instead: run for each row, its columns bound by name; answers in that order
    -- group: attempt                       columns with few different values together: worth sending once each
    -- why: …                              an override says what it gains

and then one or more SQL commands, each ended by `;` at the end of a line. The name comes first. Values are bound as
`:name`. Of several commands at most one returns rows; all see the same rows, by the name `batch`. A set-wise
statement treats every row on its own: a dialect may run it in pieces. Macros, all of them: `{rows}`, `{now_us}`,
`{skip_locked}`, `{for_update}`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

MACROS = frozenset({"rows", "now_us", "skip_locked", "for_update"})

_PACKAGE = "luciole.store.sql"
_HEADER = re.compile(r"^-- (name|rows|each|group|why):\s*(.*)$")
_BIND = re.compile(r"'[^']*'|::|(?<![:\w]):([a-z_]\w*)")
_MACRO = re.compile(r"\{(\w+)\}")


class Column(NamedTuple):
    """One column of a row source, with its portable type: int, bigint, text, blob or bool."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One named statement, not yet in a driver's style."""

    name: str
    commands: tuple[str, ...]
    columns: tuple[Column, ...] = ()
    each: bool = False  #: run once for each row instead of set-wise
    grouped: tuple[str, ...] = ()  #: columns that hold few different combinations of values
    why: str | None = None

    def bind_names(self) -> tuple[str, ...]:
        """Return the names bound besides the rows, each once, in order of appearance."""
        mine = {column.name for column in self.columns} if self.each else set()
        found = dict.fromkeys(name for command in self.commands for name in binds_of(command))
        return tuple(name for name in found if name not in mine)


def load(package: str) -> dict[str, Statement]:
    """Return every statement of a dialect by name.

    Args:
        package: the dialect's package; its `overrides.sql` may replace common statements, none else.
    """
    common: dict[str, Statement] = {}
    for entry in sorted(files(_PACKAGE).joinpath("common").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".sql"):
            for statement in parse(entry.read_text(encoding="utf-8")):
                assert statement.name not in common, f"two statements are named {statement.name}"
                common[statement.name] = statement
    overrides = {found.name: found for found in parse(files(package).joinpath("overrides.sql").read_text("utf-8"))}
    assert overrides.keys() <= common.keys(), f"{package} overrides nothing with {overrides.keys() - common.keys()}"
    return common | overrides


def parse(text: str) -> Iterable[Statement]:
    """Yield the statements of one file's text, in order."""
    headers: dict[str, str] = {}
    body: list[str] = []
    for line in text.splitlines():
        header = _HEADER.match(line)
        if header and header[1] == "name" and headers:
            yield _statement(headers, body)
            headers, body = {}, []
        if header:
            headers[header[1]] = header[2].strip()
        elif headers:
            body.append(line)
    if headers:
        yield _statement(headers, body)


def _statement(headers: Mapping[str, str], body: list[str]) -> Statement:
    name = headers["name"]
    commands = commands_of("\n".join(body))
    source = headers.get("rows") or headers.get("each") or ""
    columns = tuple(Column(*pair.split()) for pair in source.split(",") if pair.strip())
    macros = {macro for command in commands for macro in _MACRO.findall(command)}
    assert commands or "why" in headers, f"{name}: no command"  # An override may have nothing left to do.
    assert macros <= MACROS, f"{name}: unknown macros {macros - MACROS}"
    assert not commands or ("rows" in macros) == ("rows" in headers), (
        f"{name}: {{rows}} and the header `rows` go together"
    )
    assert sum(map(returns_rows, commands)) <= 1, f"{name}: only one command may return rows"
    grouped = tuple(column.strip() for column in headers.get("group", "").split(",") if column.strip())
    assert set(grouped) <= {column.name for column in columns}, f"{name}: `group` names no column of its rows"
    return Statement(
        name=name,
        commands=commands,
        columns=columns,
        each="each" in headers,
        grouped=grouped,
        why=headers.get("why"),
    )


def commands_of(text: str) -> tuple[str, ...]:
    """Return the commands of a text without their comments; each ends with `;` at the end of a line."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("--"))
    parts = re.split(r";[ \t]*$", "\n".join(lines), flags=re.MULTILINE)
    return tuple(part.strip() for part in parts if part.strip())


def returns_rows(command: str) -> bool:
    """Whether a command answers with rows."""
    return bool(re.search(r"^\s*SELECT\b|\bRETURNING\b|^\s*WITH\b[\s\S]*\bSELECT\b[^)]*$", command))


def binds_of(command: str) -> list[str]:
    """Return the names that a command binds, in order, repeated ones too."""
    return [match[1] for match in _BIND.finditer(command) if match[1]]


def bind(command: str, style: Callable[[str], str]) -> str:
    """Return a command with each `:name` in the style of a driver."""
    return _BIND.sub(lambda match: style(match[1]) if match[1] else match[0], command)


def expand(command: str, macros: Mapping[str, str]) -> str:
    """Return a command with its macros replaced."""
    return _MACRO.sub(lambda match: macros[match[1]], command)


def is_shared(column: Sequence[Any]) -> bool:
    """Whether all rows have the same value in a column of at least one row."""
    return column[0] == column[-1] and column.count(column[0]) == len(column)
