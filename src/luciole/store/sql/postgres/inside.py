"""Scripts inside a transaction that a user opened, on the user's own driver.

Nothing here imports a driver: whoever passes a connection has it.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar

from luciole.errors import InvalidValue, Unsupported
from luciole.store.sql.postgres.binding import Prepared, qualifier
from luciole.store.sql.queries import Statement
from luciole.store.sql.script import Query, Row, Script, run, run_async

ParamsT = ParamSpec("ParamsT")
ResultT = TypeVar("ResultT")

#: A driver's connection, session or cursor: whatever the kind says.
Connection: TypeAlias = Any
#: Runs one command with its values; returns its rows.
Execute: TypeAlias = Callable[[Connection, str, Sequence[Any]], Sequence[Row]]
ExecuteAsync: TypeAlias = Callable[[Connection, str, Sequence[Any]], Awaitable[Sequence[Row]]]

_NUMBER = re.compile(r"\$(\d+)")


async def _asyncpg(connection: Connection, text: str, values: Sequence[Any]) -> Sequence[Row]:
    if not connection.is_in_transaction():
        raise _no_transaction("async with connection.transaction():")
    rows: Sequence[Row] = await connection.fetch(text, *values)
    return rows


async def _psycopg(connection: Connection, text: str, values: Sequence[Any]) -> Sequence[Row]:
    _check_begun(connection)
    async with connection.cursor(row_factory=_tuples) as cursor:
        await cursor.execute(*_positional(text, values))
        return await cursor.fetchall() if cursor.description else ()


def _psycopg_sync(connection: Connection, text: str, values: Sequence[Any]) -> Sequence[Row]:
    _check_begun(connection)
    with connection.cursor(row_factory=_tuples) as cursor:
        cursor.execute(*_positional(text, values))
        return cursor.fetchall() if cursor.description else ()


async def _sqlalchemy(connection: Connection, text: str, values: Sequence[Any]) -> Sequence[Row]:
    if hasattr(connection, "get_bind"):  # A session: its connection takes part in its transaction.
        connection = await connection.connection()
    result = await connection.exec_driver_sql(*_in_style_of(connection.dialect, text, values))
    return result.all() if result.returns_rows else ()


def _sqlalchemy_sync(connection: Connection, text: str, values: Sequence[Any]) -> Sequence[Row]:
    if hasattr(connection, "get_bind"):
        connection = connection.connection()
    result = connection.exec_driver_sql(*_in_style_of(connection.dialect, text, values))
    return result.all() if result.returns_rows else ()


_ASYNC: dict[str, ExecuteAsync] = {"asyncpg": _asyncpg, "psycopg": _psycopg, "sqlalchemy": _sqlalchemy}
_SYNC: dict[str, Execute] = {"psycopg_sync": _psycopg_sync, "sqlalchemy_sync": _sqlalchemy_sync}

#: The kinds of connection that `tx=` accepts on PostgreSQL.
KINDS = (*_ASYNC, *_SYNC)


def runner(kind: str, *, schema: str, statements: Mapping[str, Statement], tables: Sequence[str], now_us: str) -> Any:  # noqa: ANN401 - each kind has a type of its own
    """Return `run(connection, script, *args)` for a kind of connection; awaitable for the async ones.

    Raises:
        Unsupported: not a kind that works with PostgreSQL.
    """
    qualify = qualifier(schema, tables)
    prepared: dict[str, Prepared] = {}

    def calls(query: Query) -> list[tuple[str, Sequence[Any]]]:
        if query.name not in prepared:
            prepared[query.name] = Prepared(statements[query.name], now_us=qualify(now_us), tables=qualify)
        found = prepared[query.name]
        binds = {"channel": schema, **query.binds}  # Where all processes of one schema meet; see `Listener`.
        return [(found.commands[index].text, values) for index, values in found.calls(query._replace(binds=binds))]

    if kind in _ASYNC:
        execute_async = _ASYNC[kind]

        async def run_inside_async(
            connection: Connection,
            script: Callable[ParamsT, Script[ResultT]],
            *args: ParamsT.args,
            **kwargs: ParamsT.kwargs,
        ) -> ResultT:
            async def ask(query: Query) -> Sequence[Row]:
                return [row for text, values in calls(query) for row in await execute_async(connection, text, values)]

            return await run_async(script(*args, **kwargs), ask)

        return run_inside_async
    if kind in _SYNC:
        execute = _SYNC[kind]

        def run_inside(
            connection: Connection,
            script: Callable[ParamsT, Script[ResultT]],
            *args: ParamsT.args,
            **kwargs: ParamsT.kwargs,
        ) -> ResultT:
            def ask(query: Query) -> Sequence[Row]:
                return [row for text, values in calls(query) for row in execute(connection, text, values)]

            return run(script(*args, **kwargs), ask)

        return run_inside
    raise Unsupported(f"tx: {kind} does not work with PostgreSQL; these do: {', '.join(KINDS)}")


def _tuples(_cursor: object) -> type[tuple[Any, ...]]:
    """Make psycopg's rows plain tuples, whatever the user chose for theirs."""
    return tuple


def _check_begun(connection: Connection) -> None:
    if connection.autocommit and connection.info.transaction_status == 0:  # Idle, and nothing begins by itself.
        raise _no_transaction("with connection.transaction():")


def _no_transaction(how: str) -> InvalidValue:
    return InvalidValue(f"tx: the connection is in no transaction, so there is nothing to be part of; write `{how}`")


def _in_style_of(dialect: Any, text: str, values: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:  # noqa: ANN401 - SQLAlchemy's
    if dialect.name != "postgresql" or dialect.driver not in {"asyncpg", "psycopg", "psycopg_async"}:
        raise InvalidValue(
            f"tx: SQLAlchemy on {dialect.name}+{dialect.driver}; use postgresql+asyncpg or postgresql+psycopg"
        )
    return (text, tuple(values)) if dialect.driver == "asyncpg" else _positional(text, values)


def _positional(text: str, values: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return a command with `%s` for `$n`, and the values in the order of their use.

    Columns become lists: psycopg takes a tuple for one composite value.
    """
    order = [int(match[1]) - 1 for match in _NUMBER.finditer(text)]
    columns = [list(value) if isinstance(value, tuple) else value for value in values]
    return _NUMBER.sub("%s", text.replace("%", "%%")), tuple(columns[place] for place in order)
