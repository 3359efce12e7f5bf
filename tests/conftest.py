"""What all tests share: real PostgreSQL servers, and the report of the stores that ran.

Each process of a parallel run has servers of its own. One shared by all would save half a second of `initdb`,
but a test that crashes its server would then crash everybody's.
"""

import os
import signal
from collections.abc import Iterator

import hypothesis
import pytest

from luciole.testing.servers import PostgresPrograms, PostgresServer
from tests import stores

# Machines are slow now and then: that is no finding. What a finding needs is a way to repeat it.
hypothesis.settings.register_profile("luciole", deadline=None, print_blob=True)
hypothesis.settings.load_profile("luciole")

# gRPC prepares a forked process for going on with it. Ours only begin a program, as another user, and died of that.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# A shell that runs us in the background has SIGINT ignored, and so would each process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # Before -m looks at the marks.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(name.startswith("postgres") for name in getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.postgres)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["stores"] = vars(stores.REPORT)


@pytest.hookimpl(optionalhook=True)  # Of xdist.
def pytest_testnodedown(node: object) -> None:
    stores.REPORT.merge(getattr(node, "workeroutput", {}).get("stores", {"ran": {}, "missing": {}}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = stores.REPORT.lines()
    if lines:
        terminalreporter.section("stores")
    for line in lines:
        terminalreporter.write_line(line, red=line.startswith("MISSING"), bold=line.startswith("MISSING"))


@pytest.fixture(scope="session")
def postgres_wheel() -> Iterator[PostgresServer]:
    """A server of the newest PostgreSQL, as the wheel brings it."""
    yield from _server(PostgresPrograms.from_wheel(), "PostgreSQL of the wheel")


@pytest.fixture(scope="session")
def postgres_system() -> Iterator[PostgresServer]:
    """A server of the PostgreSQL that the machine has installed."""
    yield from _server(PostgresPrograms.from_system(), "PostgreSQL of the machine")


def _server(programs: PostgresPrograms | None, name: str) -> Iterator[PostgresServer]:
    if programs is None:
        stores.refuse_missing(name)
    with PostgresServer(programs) as server:
        stores.note_ran(name, server.version)
        yield server


@pytest.fixture(scope="session", params=["wheel", "system"])
def postgres(request: pytest.FixtureRequest) -> PostgresServer:
    """Each PostgreSQL server that there is, one after the other."""
    server: PostgresServer = request.getfixturevalue(f"postgres_{request.param}")
    return server


@pytest.fixture(scope="module")
def postgres_dsn(postgres: PostgresServer) -> Iterator[str]:
    """An empty database on each server, new for each file of tests."""
    dsn = postgres.create_database()
    yield dsn
    postgres.drop_database(dsn)
