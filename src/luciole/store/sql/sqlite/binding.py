"""Statements as `sqlite3` takes them, and running one on a connection.

Rows travel as values of the statement itself, up to 64 in one piece. A large batch goes into a temporary table
first, on connections that have one. Both beat `executemany`, by a quarter and by more: the interpreter's lock changes
hands once for a piece or a batch, not once for a row.
"""

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from luciole.model.instant import Instant
from luciole.store.sql.queries import Statement, bind, binds_of, expand, is_shared, returns_rows
from luciole.store.sql.script import Query, Row

#: Rows in one piece, most first. A statement is prepared at most once for each.
_PIECES = (64, 8, 1)

#: Rows that go into the temporary table by one command, most first. SQLite takes 32,766 values a command.
_LOADS = (500, 100, 20, 1)

#: A batch of so many rows is worth a temporary table.
_TABLE_ROWS_MIN = 128
_TABLE_COLUMNS = 24

#: Makes the temporary table. Its columns have no type, so that values stay what they are; the last one is never filled.
BATCH_TABLE = f"CREATE TEMP TABLE batch_row ({', '.join(f'c{n}' for n in range(1, _TABLE_COLUMNS + 1))}, unfilled)"

#: As many ways to part the columns of a statement are kept ready: those that its batches bring are few.
_FORMS_MAX = 64

#: Where a stride's steps and cursors are chosen; see `choose_steps` and `choose_cursors`.
STRIDE_TABLES = (
    """CREATE TEMP TABLE chosen_step (
    trigger_id INTEGER, fire_us INTEGER, due_us INTEGER, policy_id INTEGER, next_fire_us INTEGER,
    next_due_us INTEGER, overlap INTEGER, priority INTEGER, flags INTEGER,
    PRIMARY KEY (trigger_id, fire_us, due_us, policy_id)) WITHOUT ROWID""",
    """CREATE TEMP TABLE chosen_cursor (
    shard INTEGER, schedule_id INTEGER, job_id INTEGER, fire_us INTEGER, due_us INTEGER, next_fire_us INTEGER,
    next_due_us INTEGER, priority INTEGER, flags INTEGER, ready INTEGER)""",
)

#: The store's clock is the host's: one value for a query, bound like any other.
_MACROS = {"now_us": ":now_us", "skip_locked": "", "for_update": "", "rows": "{rows}"}

_JOIN = re.compile(r"\{rows\}\s+JOIN\b")

_Rows: TypeAlias = Sequence[tuple[Any, ...]]

#: How rows come to a command: so many of them with it, or in the temporary table, which has these columns of theirs.
_Form: TypeAlias = int | tuple[int, ...]

#: What runs a command: a connection, or a cursor of it.
Executes: TypeAlias = sqlite3.Connection | sqlite3.Cursor


class _Command(NamedTuple):
    """One command with its row source in place.

    Its values are bound by plain question marks, in the order of their places: Python 3.12.0 warns of any other kind.
    """

    text: str
    before: tuple[int, ...]  #: which shared values stand before the rows
    after: tuple[int, ...]  #: and which behind them
    answers: bool

    def values(self, shared: Sequence[Any], rows: Sequence[Any]) -> Sequence[Any]:
        """Return what to bind; the rows are flat."""
        if not self.before and not self.after:
            return rows
        return (*[shared[place] for place in self.before], *rows, *[shared[place] for place in self.after])


@cache
def _load(columns: int, rows: int) -> str:
    """Return the command that puts so many rows of so many columns into the temporary table.

    One row a command would give the interpreter's lock to the event loop after each, and wait for it to come back: up
    to 5 ms a row while the loop computes.
    """
    names = ",".join(f"c{number}" for number in range(1, columns + 1))
    row = f"({','.join('?' * columns)})"
    return f"INSERT INTO temp.batch_row ({names}) VALUES {','.join([row] * rows)}"  # noqa: S608 - c1, c2 and marks


@dataclass
class Table:
    """What a transaction has put into the temporary table of its connection."""

    _rows: _Rows | None = None
    own: tuple[int, ...] = ()  #: the columns that stand in the table
    shared: tuple[Any, ...] = ()  #: the values of the others, the same for all rows

    def load(self, connection: Executes, rows: _Rows) -> None:
        """Put rows into the table, unless these very rows are there: queries often follow each other on the same.

        A value costs a tenth of a microsecond, so those that all rows have the same stay out.
        """
        if rows is self._rows:
            return
        columns = list(zip(*rows, strict=True))
        own = [place for place, column in enumerate(columns) if not is_shared(column)] or [0]
        self.own = tuple(own)
        self.shared = tuple(column[0] for place, column in enumerate(columns) if place not in own)
        connection.execute("DELETE FROM temp.batch_row")
        start = 0
        kept = rows if len(own) == len(columns) else list(zip(*(columns[place] for place in own), strict=True))
        for size in _LOADS:
            load = _load(len(own), size)
            while len(kept) - start >= size:
                connection.execute(load, tuple(chain.from_iterable(kept[start : start + size])))
                start += size
        self._rows = rows


@dataclass(frozen=True)
class Prepared:
    """One named statement, ready for connections."""

    statement: Statement
    _names: tuple[str, ...] = field(init=False, default=())  #: of the values besides the rows, for all commands
    formed: dict[_Form, list[_Command]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        mine = {column.name for column in self.statement.columns} if self.statement.each else set()
        names = dict.fromkeys(name for command in self.statement.commands for name in binds_of(_expanded(command)))
        object.__setattr__(self, "_names", tuple(name for name in names if name not in mine))

    def run(self, connection: Executes, query: Query, now_us: Instant, table: "Table | None" = None) -> list[Row]:
        """Run it on a connection; return what its one answering command answers.

        Args:
            connection: in a transaction.
            query: the values.
            now_us: the store's clock, one for the whole query.
            table: the connection's temporary table, if it has one.
        """
        values = {**query.binds, "now_us": now_us}
        shared = [values[name] for name in self._names]
        if not self.statement.columns:
            return self._run_pieces(connection, shared, [(0, ())])
        if not query.rows:
            return []
        if self.statement.each:
            return self._run_each(connection, tuple(shared), query.rows)
        if table is not None and len(query.rows) >= _TABLE_ROWS_MIN:
            table.load(connection, query.rows)
            return self._run_pieces(connection, shared, [(table.own, table.shared)])
        pieces: list[tuple[_Form, tuple[Any, ...]]] = []
        start = 0
        for size in _PIECES:
            while len(query.rows) - start >= size:
                pieces.append((size, tuple(chain.from_iterable(query.rows[start : start + size]))))
                start += size
        return self._run_pieces(connection, shared, pieces)

    def commands(self, form: _Form) -> list[_Command]:
        """Return the commands for a number of rows in one piece, or for those in the temporary table.

        Args:
            form: how many rows; or which of their columns stand in the table, the others being bound.
        """
        commands = self.formed.get(form)
        if commands is None:
            if len(self.formed) >= _FORMS_MAX:
                self.formed.clear()
            commands = self.formed[form] = [self._render(command, form) for command in self.statement.commands]
        return commands

    def _run_pieces(
        self, connection: Executes, shared: Sequence[Any], pieces: Sequence[tuple[_Form, tuple[Any, ...]]]
    ) -> list[Row]:
        """Run each command for all pieces before the next one, as if they were one set."""
        answer: list[Row] = []
        for number in range(len(self.statement.commands)):
            for form, rows in pieces:
                command = self.commands(form)[number]
                found = connection.execute(command.text, command.values(shared, rows))
                if command.answers:
                    answer += found.fetchall()
        return answer

    def _run_each(self, connection: Executes, shared: tuple[Any, ...], rows: _Rows) -> list[Row]:
        answer: list[Row] = []
        for command in self.commands(1):
            bound = (command.values(row + shared, ()) for row in rows)
            if not command.answers:
                connection.executemany(command.text, bound)
                continue
            for values in bound:
                answer += connection.execute(command.text, values).fetchall()
        return answer

    def _render(self, command: str, form: _Form) -> _Command:
        columns = [column.name for column in self.statement.columns]
        order = [*columns, *self._names] if self.statement.each else list(self._names)
        before, source, after = _expanded(command).partition("{rows}")
        if source:
            source = _source(columns, form)
        text = bind(before, lambda _: "?") + source + bind(after, lambda _: "?")
        places = [tuple(order.index(name) for name in binds_of(part)) for part in (before, after)]
        return _Command(text, places[0], places[1], returns_rows(text))


def _expanded(command: str) -> str:
    # CROSS JOIN keeps the rows outside, and the table beside them searched by key, whatever the statistics say.
    return expand(_JOIN.sub("{rows} CROSS JOIN", command), _MACROS)


def _source(columns: Sequence[str], form: _Form) -> str:
    """Return a row source named `batch` with these columns."""
    if not isinstance(form, int):
        named = [f"c{number} AS {columns[place]}" for number, place in enumerate(form, 1)]
        # A bare value could be looked for before the table is gone through: all of a shard for each row, say.
        named += [f"coalesce(unfilled, ?) AS {name}" for place, name in enumerate(columns) if place not in form]
        return f"(SELECT {', '.join(named)} FROM temp.batch_row) AS batch"  # noqa: S608 - names of the .sql files
    row = f"({','.join('?' * len(columns))})"
    listed = ", ".join(f"column{number} AS {name}" for number, name in enumerate(columns, 1))
    return f"(SELECT {listed} FROM (VALUES {','.join([row] * form)})) AS batch"  # noqa: S608 - same


def asker(
    connection: Executes,
    prepared: Mapping[str, Prepared],
    now_us: Callable[[], Instant],
    *,
    table: Table | None = None,
) -> Callable[[Query], Sequence[Row]]:
    """Return what runs a script's queries on a connection; each query sees one clock."""

    def ask(query: Query) -> Sequence[Row]:
        return prepared[query.name].run(connection, query, now_us(), table)

    return ask
