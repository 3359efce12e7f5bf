"""What PostgreSQL's errors mean to a caller. No message shows a DSN: it may hold a password."""

from luciole.errors import (
    InvalidValue,
    LucioleError,
    OutcomeUnknown,
    SchemaMismatch,
    StoreCorrupt,
    StoreFull,
    StoreUnavailable,
    Unsupported,
)
from luciole.runtime.extras import require

with require("postgres"):
    import asyncpg

#: Lost a race: nothing was written, and the same transaction may win at once.
CONFLICTS = frozenset({"40001", "40P01"})

_DISK_FULL = "53100"
#: Broken by what was sent: text that can't be kept, a number out of range, something too long for a column.
_BAD_DATA = frozenset({"22021", "22P05", "22003", "22001", "54000"})
#: A table, column, function or schema is missing.
_NOT_MIGRATED = frozenset({"42P01", "42703", "42883", "3F000"})
_DAMAGED = frozenset({"XX001", "XX002"})

#: What a server says to one whom it does not let in; waiting does not help.
_REFUSED = {
    "28P01": "the password is wrong, or the role does not exist",
    "28000": "the role may not connect from here (see pg_hba.conf and LOGIN)",
    "3D000": "the database does not exist; create it with `createdb`",
    "42501": "the role may not connect to the database; grant it CONNECT",
}


def sqlstate_of(error: BaseException) -> str:
    """Return the five characters that say what went wrong; empty when the server said nothing."""
    return str(getattr(error, "sqlstate", None) or "")


def is_conflict(error: BaseException) -> bool:
    """Whether the same transaction may be tried again at once."""
    return sqlstate_of(error) in CONFLICTS


def is_there_already(error: BaseException) -> bool:
    """Whether a row of the same key exists: nothing was written."""
    return sqlstate_of(error) == "23505"


def is_held(error: BaseException) -> bool:
    """Whether somebody kept a lock for longer than anybody may wait for it."""
    return sqlstate_of(error) == "55P03"


def is_broken(error: BaseException) -> bool:
    """Whether the connection is gone, or no longer one to trust."""
    if isinstance(error, OSError | TimeoutError | asyncpg.InternalClientError):
        return True
    if isinstance(error, asyncpg.InterfaceError):
        return "closed" in str(error) or "connection" in str(error)
    state = sqlstate_of(error)
    # 57P: shut down, crashed, terminated. 25P03: idle in a transaction for too long. 08: the connection itself.
    return state.startswith(("57P", "08")) or state == "25P03"


def refusal(error: BaseException, place: str) -> LucioleError:
    """Return the error that a caller sees when a connection could not be opened.

    Args:
        error: what was raised.
        place: host, port and database, for the message.
    """
    state = sqlstate_of(error)
    told: LucioleError
    if state in _REFUSED:
        told = InvalidValue(f"postgresql: {place}: {_REFUSED[state]}")
    elif isinstance(error, asyncpg.ClientConfigurationError) and "SSL" in str(error):
        told = InvalidValue(f"postgresql: {place}: the server does not offer the TLS that the DSN asks for")
    else:
        told = StoreUnavailable(f"postgresql: {place}: {_said(error)}; it can't be reached at the moment")
    told.__cause__ = error
    return told


def meaning(error: BaseException, place: str, *, committing: bool) -> BaseException:
    """Return the error that a caller sees; errors that are no database's stay as they are.

    Args:
        error: what was raised.
        place: host, port and database, for the message.
        committing: a commit was under way, so that a broken connection leaves its outcome unknown.
    """
    if isinstance(error, LucioleError):
        return error
    state = sqlstate_of(error)
    told: LucioleError
    if is_broken(error):
        told = _unfinished(error, place, committing=committing)
    elif not isinstance(error, asyncpg.PostgresError):
        return error
    elif state == _DISK_FULL:
        told = StoreFull(f"postgresql: {place}: the disk is full; nothing was written. Free some space there")
    elif state in _BAD_DATA:
        told = InvalidValue(f"postgresql: a value can't be stored: {_said(error)}")
    elif state in _NOT_MIGRATED:
        told = SchemaMismatch(f"postgresql: {place}: {_said(error)}; run `luciole migrate`")
    elif state in _DAMAGED:
        told = StoreCorrupt(f"postgresql: {place}: {_said(error)}; stop, and restore from a backup")
    elif state == "0A000":
        told = Unsupported(f"postgresql: {place}: {_said(error)}")
    elif state.startswith(("40", "53", "55", "57", "25", "42501", "58")):
        told = StoreUnavailable(f"postgresql: {place}: {_said(error)}; nothing was written")
    else:
        return error
    told.__cause__ = error
    return told


def _unfinished(error: BaseException, place: str, *, committing: bool) -> LucioleError:
    if committing:
        return OutcomeUnknown(f"postgresql: {place}: the connection broke in the commit ({_said(error)})")
    return StoreUnavailable(f"postgresql: {place}: the connection broke ({_said(error)}); nothing was written")


def _said(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
