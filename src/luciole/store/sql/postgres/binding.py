"""Statements as PostgreSQL takes them: numbered values, and rows as one array for each column.

Rows that go in as arrays cost the client about 40 ns a value and the server one plan, however many there are.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from luciole.store.sql.queries import Statement, bind, expand
from luciole.store.sql.script import Query

#: Portable types, and the arrays that carry them.
_ARRAYS = {"int": "int4[]", "bigint": "int8[]", "text": "text[]", "blob": "bytea[]", "bool": "bool[]"}

#: The clock at the statement, not at the transaction's start, and one for all of a statement; a sub-select, so that it
#: is computed once and an index condition can use it.
NOW_US = "(SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)"

#: The same for tests that move the store's clock, for all its clients at once, or let it stand still.
SHIFTED_NOW_US = (
    "(SELECT coalesce((SELECT value::bigint FROM meta WHERE key = 'clock_us'),"
    " (extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
    " + coalesce((SELECT value::bigint FROM meta WHERE key = 'clock_shift_us'), 0)))"
)

_FIXED = {"skip_locked": "FOR UPDATE SKIP LOCKED", "for_update": "FOR UPDATE"}


@dataclass(frozen=True, slots=True)
class Command:
    """One command, ready for a driver."""

    text: str
    names: tuple[str, ...]  #: of the values, in the order of their numbers; the columns of the rows come first


@dataclass(frozen=True, slots=True)
class Prepared:
    """One named statement, rendered."""

    statement: Statement
    commands: tuple[Command, ...]

    def calls(self, query: Query) -> Iterator[tuple[int, Sequence[Any]]]:
        """Yield, for each execution of a command, its index and the values that its text takes, in order."""
        if self.statement.columns and not query.rows:
            return  # A statement for rows, and no rows.
        rows: Sequence[Sequence[Any]] = query.rows if self.statement.each else [self._arrays(query)]
        for index, command in enumerate(self.commands):
            shared = [query.binds[name] for name in command.names]
            for row in rows:
                yield index, [*row, *shared]

    def _arrays(self, query: Query) -> Sequence[Any]:
        """Return the rows of a query as one array for each column."""
        return list(zip(*query.rows, strict=True)) if self.statement.columns else ()


def render(statement: Statement, *, now_us: str = NOW_US, tables: Callable[[str], str] = str) -> Prepared:
    """Return a statement for asyncpg, with `$1`, `$2` and so on.

    Args:
        statement: as it was loaded.
        now_us: the expression for the store's clock.
        tables: rewrites the names of our tables in a command.
    """
    return Prepared(statement, tuple(_command(tables(text), statement, now_us) for text in statement.commands))


def _command(text: str, statement: Statement, now_us: str) -> Command:
    columns = statement.columns
    if statement.each:
        places = {column.name: f"${number}::{_ARRAYS[column.type][:-2]}" for number, column in enumerate(columns, 1)}
        source = ""
    else:
        places = {}
        arrays = ", ".join(f"${number}::{_ARRAYS[column.type]}" for number, column in enumerate(columns, 1))
        named = ", ".join(column.name for column in columns)
        source = f"unnest({arrays}) AS batch({named})"
    expanded = expand(text, {**_FIXED, "now_us": now_us, "rows": source})
    names: dict[str, str] = {}

    def place(name: str) -> str:
        if name in places:
            return places[name]
        return names.setdefault(name, f"${len(columns) + len(names) + 1}")

    return Command(bind(expanded, place), tuple(names))


def qualifier(schema: str, tables: Sequence[str]) -> Callable[[str], str]:
    """Return what puts the schema before our tables in a command: a user's connection has a search path of its own."""
    ours = re.compile(rf"\b(INTO|FROM|JOIN|UPDATE|USING)(\s+)({'|'.join(tables)})\b")

    def qualify(command: str) -> str:
        return ours.sub(rf'\1\2"{schema}".\3', command)

    return qualify
