"""The user's own transaction: which technology a `tx=` connection is of."""

from typing import Final

from luciole.errors import InvalidValue

#: Class of a connection -> the kind of `Store.enqueue_sql`.
_KINDS: Final = {
    "asyncpg.Connection": "asyncpg",
    "asyncpg.PoolConnectionProxy": "asyncpg",
    "psycopg.AsyncConnection": "psycopg",
    "psycopg.Connection": "psycopg_sync",
    "sqlalchemy.AsyncSession": "sqlalchemy",
    "sqlalchemy.AsyncConnection": "sqlalchemy",
    "sqlalchemy.Session": "sqlalchemy_sync",
    "sqlalchemy.Connection": "sqlalchemy_sync",
    "sqlite3.Connection": "sqlite3",
}


#: Kinds whose calls are awaited.
_ASYNC: Final = frozenset({"asyncpg", "psycopg", "sqlalchemy"})


def needs_loop(connection: object) -> bool:
    """Tell whether a user's connection is used by awaiting it.

    Raises:
        InvalidValue: it is none that an enqueue can join.
    """
    return transaction_kind(connection) in _ASYNC


def transaction_kind(connection: object) -> str:
    """Return the kind of a user's connection or session, without importing its package.

    Raises:
        InvalidValue: it is none that an enqueue can join.
    """
    for kind in type(connection).__mro__:
        found = _KINDS.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}")
        if found is not None:
            return found
    raise InvalidValue(
        f"tx: a {type(connection).__module__}.{type(connection).__qualname__} is no connection that an enqueue can "
        "join; pass one of asyncpg, psycopg, SQLAlchemy (a session does as well) or sqlite3"
    )
