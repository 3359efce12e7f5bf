"""What SQLite's errors mean to a caller."""

import sqlite3

from luciole.errors import LucioleError, OutcomeUnknown, StoreCorrupt, StoreFull, StoreUnavailable

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_DOWN = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PROTOCOL,
    *_BUSY,
}


def primary_code(error: BaseException) -> int:
    """Return SQLite's primary result code of an error; 0 when it has none."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF if isinstance(code, int) else 0


def is_busy(error: BaseException) -> bool:
    """Whether another process has the file at the moment."""
    return primary_code(error) in _BUSY


def meaning(error: BaseException, path: str, *, committing: bool = False) -> BaseException:
    """Return the error that a caller sees; errors that are no database's stay as they are.

    Args:
        error: what was raised.
        path: the file, for the message.
        committing: the commit itself failed, so that its outcome may be unknown.
    """
    if isinstance(error, LucioleError) or not isinstance(error, sqlite3.Error):
        return error
    code = primary_code(error)
    told: LucioleError
    if code == sqlite3.SQLITE_FULL:
        told = StoreFull(
            f"{path}: the disk (or max_page_count) is full; nothing was written. Free some space, "
            "and work goes on by itself"
        )
    elif code in _CORRUPT:
        told = StoreCorrupt(
            f"{path}: {error}. Stop, and restore the file from a backup (`PRAGMA integrity_check` says more)"
        )
    elif committing and code not in _BUSY:
        told = OutcomeUnknown(f"{path}: {error} in the commit; repeat the call to learn what became of it")
    elif code in _DOWN:
        told = StoreUnavailable(f"{path}: {error}; nothing was written")
    else:
        return error
    told.__cause__ = error
    return told
