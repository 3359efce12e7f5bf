"""Scripts inside a transaction that a user opened on the same file."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from luciole.errors import InvalidValue, Unsupported
from luciole.model.instant import Instant
from luciole.store.sql.script import Script, run
from luciole.store.sql.sqlite.binding import Prepared, asker
from luciole.store.sql.sqlite.failures import meaning

ParamsT = ParamSpec("ParamsT")
ResultT = TypeVar("ResultT")

#: The kinds of connection that `tx=` accepts on SQLite.
KINDS = ("sqlite3", "sqlalchemy_sync")


def runner(
    kind: str, path: Path, prepared: Mapping[str, Prepared], now_us: Callable[[], Instant]
) -> Callable[..., Any]:
    """Return `run(connection, script, *args)` for a kind of connection.

    Raises:
        Unsupported: not a kind that works with SQLite.
    """
    if kind not in KINDS:
        raise Unsupported(f"tx: {kind} does not work with SQLite; these do: {', '.join(KINDS)}")

    def run_inside(
        connection: Any,  # noqa: ANN401 - a sqlite3 connection, or SQLAlchemy's on one
        script: Callable[ParamsT, Script[ResultT]],
        *args: ParamsT.args,
        **kwargs: ParamsT.kwargs,
    ) -> ResultT:
        raw = _raw(connection)
        # A cursor of our own, because the rows of the connection may be of the user's making.
        cursor = raw.cursor()
        cursor.row_factory = None
        try:
            _check_file(cursor, path)
            _begin_as_the_user_would(raw)
            with _savepoint(cursor):
                return run(script(*args, **kwargs), asker(cursor, prepared, now_us))
        except sqlite3.Error as problem:
            raise meaning(problem, str(path)) from problem
        finally:
            cursor.close()

    return run_inside


def _raw(connection: Any) -> sqlite3.Connection:  # noqa: ANN401 - that is the question
    """Return the driver's connection under a SQLAlchemy session or connection; a driver's own one as it is."""
    if not isinstance(connection, sqlite3.Connection):
        connection = connection.connection() if callable(connection.connection) else connection
        connection = connection.connection.driver_connection
    if not isinstance(connection, sqlite3.Connection):
        raise InvalidValue(f"tx: a {type(connection).__name__} is no connection of the sqlite3 module")
    return connection


@contextmanager
def _savepoint(cursor: sqlite3.Cursor) -> Iterator[None]:
    """Undo what fails, and nothing of the user's."""
    cursor.execute("SAVEPOINT luciole")
    try:
        yield
    except BaseException:
        if cursor.connection.in_transaction:
            cursor.execute("ROLLBACK TO luciole")
        raise
    finally:
        if cursor.connection.in_transaction:
            cursor.execute("RELEASE luciole")


def _check_file(cursor: sqlite3.Cursor, path: Path) -> None:
    opened = next((row[2] for row in cursor.execute("PRAGMA database_list") if row[1] == "main"), "")
    if not opened or Path(opened).resolve() != path.resolve():
        raise InvalidValue(
            f"tx: the connection is on {opened or 'memory'}, the store on {path}; enqueue inside needs one file"
        )


def _begin_as_the_user_would(connection: sqlite3.Connection) -> None:
    """Begin what the driver begins by itself before a write, so that it is the user who commits it."""
    if not connection.in_transaction and connection.isolation_level is not None:
        connection.execute(f"BEGIN {connection.isolation_level}")
