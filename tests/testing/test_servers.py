"""Servers of our own start, crash, come back, and leave nothing behind, however their process ends."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from luciole.testing import servers
from luciole.testing.servers import PostgresServer


def test_a_database_is_copied_from_its_template(postgres: PostgresServer) -> None:
    template = postgres.create_database()
    postgres.execute("CREATE TABLE kept AS SELECT 7 AS x", template)
    assert postgres.execute("SELECT x FROM kept", postgres.create_database(template)) == "7"


def test_durability_is_on(postgres: PostgresServer) -> None:
    names = ("fsync", "synchronous_commit", "full_page_writes")
    assert [postgres.execute(f"SHOW {name}") for name in names] == ["on", "on", "on"]


def test_a_committed_row_and_the_port_survive_a_crash(postgres: PostgresServer, postgres_dsn: str) -> None:
    postgres.execute("CREATE TABLE kept AS SELECT 7 AS x", postgres_dsn)
    before, port = postgres.pid, urlsplit(postgres.dsn).port
    postgres.stop("immediate")
    assert not answers(postgres.dsn)
    postgres.start()
    assert postgres.pid != before
    assert urlsplit(postgres.dsn).port == port
    assert postgres.execute("SELECT x FROM kept", postgres_dsn) == "7"


def test_a_wrong_password_is_refused(postgres: PostgresServer) -> None:
    stranger = postgres.dsn.replace(urlsplit(postgres.dsn).password or "", "guess")
    with pytest.raises(servers.ServerFailed, match="password authentication failed"):
        postgres.execute("SELECT 1", stranger)


def test_the_server_is_never_root(postgres: PostgresServer) -> None:
    assert postgres.datadir.stat().st_uid != 0


def test_a_statement_that_fails_says_why(postgres: PostgresServer) -> None:
    with pytest.raises(servers.ServerFailed, match='relation "nowhere" does not exist'):
        postgres.execute("SELECT * FROM nowhere")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_is_typed_at_our_terminal_ends_no_statement_of_the_server(postgres: PostgresServer) -> None:
    """Goal: Ctrl-C lets us clean up, and what cleans up is a statement of a program beside us."""
    session = postgres.execute(r"\! cut -d ' ' -f 6 /proc/$$/stat")
    assert session.isdecimal()
    assert int(session) != os.getsid(0)


def test_a_taken_port_is_tried_again_elsewhere(postgres_wheel: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = urlsplit(postgres_wheel.dsn).port, servers.free_port()
    ports = iter([taken, free])
    monkeypatch.setattr(servers, "free_port", lambda: next(ports))
    with PostgresServer(postgres_wheel.programs) as server:
        assert urlsplit(server.dsn).port == free


def test_programs_that_the_servers_user_cannot_reach_are_copied(postgres_wheel: PostgresServer, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root's folders are closed to the server's user")
    tmp_path.chmod(0o700)
    programs = postgres_wheel.programs.copy(tmp_path)
    with PostgresServer(programs) as server:
        assert server.bindir != programs.bindir
        assert server.execute("SELECT 1") == "1"


def answers(dsn: str) -> bool:
    """Whether anybody listens where this DSN points."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", urlsplit(dsn).port)) == 0


def test_closing_leaves_neither_server_nor_folder(postgres_wheel: PostgresServer) -> None:
    with PostgresServer(postgres_wheel.programs) as server:
        folder, dsn = server.datadir.parent, server.dsn
        assert answers(dsn)
    assert not folder.exists()
    assert not answers(dsn)


@pytest.mark.usefixtures("postgres_wheel")
def test_a_killed_process_leaves_neither_server_nor_folder() -> None:
    """Goal: nothing stays behind after `kill -9` of a test run.

    Method: a process starts a server and is killed; its guardian keeps standard error open until it is done.
    """
    code = (
        "import sys; from luciole.testing.servers import *;"
        "server = PostgresServer(PostgresPrograms.from_wheel()); server.start();"
        "print(server.datadir.parent, server.dsn, flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe, text=True) as victim:
        assert victim.stdout
        assert victim.stderr
        folder, dsn = victim.stdout.readline().split()
        assert answers(dsn)
        victim.send_signal(signal.SIGKILL)
        assert victim.stderr.read() == ""
    assert not Path(folder).exists()
    assert not answers(dsn)
