"""Opening the file, and beginning to write in it."""

import sqlite3
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from threading import Event

from luciole import limits
from luciole.runtime.chance import Chance
from luciole.store.sql.sqlite.binding import BATCH_TABLE, STRIDE_TABLES
from luciole.store.sql.sqlite.failures import is_busy, meaning

#: As many statements stay prepared on a connection: each in up to three sizes.
_CACHED_STATEMENTS = 512

_PRAGMAS = (
    "journal_mode = WAL",
    "secure_delete = OFF",  # Some builds overwrite deleted rows with zeros: twice the writing.
    "temp_store = MEMORY",
    f"cache_size = -{limits.SQLITE_CACHE_BYTES // 1024}",
    f"wal_autocheckpoint = {limits.SQLITE_CHECKPOINT_PAGES}",
    f"journal_size_limit = {limits.SQLITE_WAL_KEPT_BYTES}",
)

_TABLES = (BATCH_TABLE, *STRIDE_TABLES)


class Durability(StrEnum):
    """What a commit survives. The end of the process never loses one, whichever is chosen."""

    FULL = "full"  #: a power cut loses nothing that was acknowledged
    NORMAL = "normal"  #: a power cut may lose the commits since the last checkpoint; the file stays sound
    OFF = "off"  #: a power cut may damage the file


def connect(
    path: Path,
    durability: Durability,
    *,
    chance: Chance,
    monotonic_us: Callable[[], int],
    has_table: bool = False,
) -> sqlite3.Connection:
    """Open a connection of our own; it may move between threads, but only one uses it at a time.

    Args:
        path: the file; it is made when it is missing.
        durability: what a commit survives.
        chance: spreads the tries of those that wait for each other.
        monotonic_us: a monotonic clock, microseconds.
        has_table: with the temporary tables that large batches and strides take.

    Raises:
        StoreUnavailable: the file can't be opened.
        StoreCorrupt: it is no database.
    """
    try:
        connection = sqlite3.connect(
            path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=_CACHED_STATEMENTS
        )
    except sqlite3.Error as problem:
        raise meaning(problem, str(path)) from problem
    try:
        settings = (f"PRAGMA {pragma}" for pragma in (*_PRAGMAS, f"synchronous = {durability}"))
        for step in (*settings, *(_TABLES if has_table else ())):
            # Who makes or leaves a file's log keeps the others out, and SQLite's own waiting does not cover all of it.
            _when_free(connection, step, chance=chance, monotonic_us=monotonic_us)
        # A reader hardly ever waits: while another process recovers the log, or leaves the file as its last.
        connection.execute(f"PRAGMA busy_timeout = {limits.SQLITE_BUSY_US // limits.MS_US}")
    except sqlite3.Error as problem:
        connection.close()
        raise meaning(problem, str(path)) from problem
    return connection


def begin_writing(connection: sqlite3.Connection, *, chance: Chance, monotonic_us: Callable[[], int]) -> None:
    """Begin a transaction that may write: at once, or as soon as no other process is writing.

    Never begins by reading: a reader that turns writer can find itself too late to commit.

    Raises:
        sqlite3.OperationalError: the others kept the file for longer than `limits.SQLITE_BUSY_US`.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    _when_free(connection, "BEGIN IMMEDIATE", chance=chance, monotonic_us=monotonic_us)


def _when_free(
    connection: sqlite3.Connection, statement: str, *, chance: Chance, monotonic_us: Callable[[], int]
) -> None:
    """Execute a statement, as soon as the others let it.

    SQLite's own waiting grows to 100 ms a try, the same for everybody; short spread tries let two busy processes
    take turns.

    Raises:
        sqlite3.OperationalError: the others kept the file for longer than `limits.SQLITE_BUSY_US`.
    """
    until_us = monotonic_us() + limits.SQLITE_BUSY_US
    pause_us = limits.SQLITE_BUSY_PAUSE_MIN_US
    tries = 0
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as problem:
            tries += 1
            if not is_busy(problem) or (monotonic_us() >= until_us) or tries >= limits.SQLITE_BUSY_TRIES_MAX:
                raise
            Event().wait(chance() * pause_us / limits.SECOND_US)
            pause_us = min(2 * pause_us, limits.SQLITE_BUSY_PAUSE_MAX_US)
        else:
            return
