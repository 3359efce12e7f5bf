"""Statements as PostgreSQL takes them: numbered values, and rows as one array for each column.

Rows that go in as arrays cost the client about 40 ns a value and the server one plan, however many there are.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
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
    names: tuple[str, ...]  #: of the values, in the order of their numbers; those of the rows come first


class Prepared:
    """One named statement, rendered."""

    def __init__(self, statement: Statement, *, now_us: str = NOW_US, tables: Callable[[str], str] = str) -> None:
        """Render a statement for asyncpg, with `$1`, `$2` and so on.

        Args:
            statement: as it was loaded.
            now_us: the expression for the store's clock.
            tables: rewrites the names of our tables in a command.
        """
        self._columns = statement.columns
        self._is_each = statement.each
        self._shape = _Arrays(statement)
        self._lone = _Values(statement)
        texts = [tables(text) for text in statement.commands]
        many = [] if statement.each else [_command(text, self._shape, now_us) for text in texts]
        one = [_command(text, self._lone, now_us) for text in texts] if statement.columns else []
        self.commands = (*many, *one)
        self._many, self._one = range(len(many)), range(len(many), len(many) + len(one))

    def does_nothing(self, query: Query) -> bool:
        """Whether a query comes to no execution of a command."""
        return not self.commands or (bool(self._columns) and not query.rows)

    def calls(self, query: Query) -> Iterator[tuple[int, Sequence[Any]]]:
        """Yield, for each execution of a command, its index and the values that its text takes, in order."""
        if self._columns and not query.rows:
            return  # A statement for rows, and no rows.
        if len(query.rows) == 1 and len(self._one) == 1 and not query.binds:
            yield self._one[0], query.rows[0][: len(self._columns)]  # A lone request, in a hurry.
            return
        is_one = bool(self._columns) and (self._is_each or len(query.rows) == 1)
        rows = query.rows if is_one else [self._shape.values(query.rows) if self._columns else ()]
        for index in self._one if is_one else self._many:
            shared = [query.binds[name] for name in self.commands[index].names]
            for row in rows:
                yield index, [*row[: len(self._columns)], *shared] if is_one else [*row, *shared]


class _Values:
    """How a lone row travels: as it is. That saves a sixth of the time of a single enqueue."""

    def __init__(self, statement: Statement) -> None:
        columns = enumerate(statement.columns, 1)
        self.width = len(statement.columns)
        self.places = {column.name: f"${number}::{_ARRAYS[column.type][:-2]}" for number, column in columns}
        self.source = f"(SELECT {', '.join(f'{place} AS {name}' for name, place in self.places.items())}) AS batch"
        if not statement.each:
            self.places = {}


class _Arrays:
    """How many rows travel: column by column, each as an array.

    Columns that hold few combinations of values travel as those combinations, and the number of its combination
    stands in each row: an array costs the client 0.2 us a value. Columns that an override does not name, after its
    last one, stay at home.
    """

    places: Mapping[str, str] = {}

    def __init__(self, statement: Statement) -> None:
        columns = [*enumerate(statement.columns)]
        own = [pair for pair in columns if pair[1].name not in statement.grouped]
        grouped = [pair for pair in columns if pair[1].name in statement.grouped]
        assert len(grouped) != 1, f"{statement.name}: one column is no combination"
        self._own = [place for place, _ in own]
        self._combination = itemgetter(*(place for place, _ in grouped)) if grouped else None
        self.width = len(columns) + bool(grouped)
        arrays = ", ".join(f"${number}::{_ARRAYS[column.type]}" for number, (_, column) in enumerate(own, 1))
        named = ", ".join(column.name for _, column in own)
        self.source = f"unnest({arrays}) AS batch({named})"
        if grouped:
            chosen = f"${len(own) + 1}::int4[]"
            looked_up = ", ".join(
                f"(${number}::{_ARRAYS[column.type]})[chosen] AS {column.name}"
                for number, (_, column) in enumerate(grouped, len(own) + 2)
            )
            rows = f"unnest({arrays}, {chosen}) AS own({named}, chosen)"
            self.source = f"(SELECT {named}, {looked_up} FROM {rows}) AS batch"  # noqa: S608 - names from .sql files

    def values(self, rows: Sequence[tuple[Any, ...]]) -> Sequence[Any]:
        """Return `width` values that carry the rows."""
        arrays = list(zip(*rows, strict=True))
        if self._combination is None:
            return arrays[: self.width]
        numbers: dict[Any, int] = {}
        chosen = [numbers.setdefault(combination, len(numbers) + 1) for combination in map(self._combination, rows)]
        return [*(arrays[place] for place in self._own), chosen, *zip(*numbers, strict=True)]


def _command(text: str, shape: _Values | _Arrays, now_us: str) -> Command:
    expanded = expand(text, {**_FIXED, "now_us": now_us, "rows": shape.source})
    names: dict[str, str] = {}

    def place(name: str) -> str:
        return shape.places.get(name) or names.setdefault(name, f"${shape.width + len(names) + 1}")

    return Command(bind(expanded, place), tuple(names))


def qualifier(schema: str, tables: Sequence[str]) -> Callable[[str], str]:
    """Return what puts the schema before our tables in a command: a user's connection has a search path of its own."""
    ours = re.compile(rf"\b(INTO|FROM|JOIN|UPDATE|USING)(\s+)({'|'.join(tables)})\b")

    def qualify(command: str) -> str:
        return ours.sub(rf'\1\2"{schema}".\3', command)

    return qualify
