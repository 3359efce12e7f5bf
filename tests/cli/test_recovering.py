"""Whole processes whose database goes away: they stay up, and work again when it is back."""

import json
import signal
from pathlib import Path

import pytest

from luciole.app import App
from luciole.testing.servers import PostgresServer
from tests.cli.processes import command, luciole

pytestmark = pytest.mark.slow

SHOP = """
from luciole import App, every

app = App(name="shop")

@app.job
async def note() -> None:
    print("noted", flush=True)

@app.job
async def double(number: int) -> int:
    return number * 2

app.schedule("often", note.bind(), every("1s"), overlap="allow")
"""


@pytest.mark.parametrize("how", ["immediate", "terminated"])
def test_an_app_works_again_after_its_database_was_away(
    tmp_path: Path, postgres: PostgresServer, postgres_dsn: str, how: str
) -> None:
    """Goal: nobody has to restart a process that was up and did nothing."""
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    environ = {"LUCIOLE_DSN": postgres_dsn}
    command("migrate", folder=tmp_path, environ=environ)
    with luciole("up", "shop:app", folder=tmp_path, environ=environ) as up:
        up.wait_for("noted")
        if how == "immediate":
            postgres.stop("immediate")
            up.wait_for("failed")  # It has noticed.
            postgres.start()
        else:
            everybody = "datname = current_database() AND pid <> pg_backend_pid()"
            statement = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {everybody}"
            assert int(postgres.execute(statement, postgres_dsn)) > 3
        with App(postgres_dsn, name="shop") as client:
            answer = json.loads(
                command(
                    "jobs",
                    "enqueue",
                    "shop.double",
                    "--args",
                    '{"number": 21}',
                    "--json",
                    folder=tmp_path,
                    environ=environ,
                )
            )
            assert client.find_execution(answer["execution"]).result_sync(timeout="30s") == 42
        up.lines.clear()
        up.wait_for("noted")  # Its schedules fire again, too.
        assert up.end(signal.SIGTERM) == 0
    outcomes = json.loads(
        command("executions", "list", "--schedule", "often", "--json", folder=tmp_path, environ=environ)
    )
    assert {execution["state"] for execution in outcomes} <= {"succeeded", "ready", "held"}


@pytest.mark.parametrize("arguments", [("up", "shop:app"), ("node",)])
def test_a_process_that_starts_before_its_database_waits_for_it(
    tmp_path: Path, postgres: PostgresServer, postgres_dsn: str, arguments: tuple[str, ...]
) -> None:
    """Goal: what is started together comes up together, in any order."""
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    environ = {"LUCIOLE_DSN": postgres_dsn}
    command("migrate", folder=tmp_path, environ=environ)
    postgres.stop("immediate")
    try:
        with luciole(*arguments, folder=tmp_path, environ=environ) as process:
            process.wait_for("the store is down")
            postgres.start()
            process.wait_for("the store is there")
            process.wait_for("luciole: node")
            assert process.end(signal.SIGTERM) == 0
    finally:
        if postgres.pid is None:
            postgres.start()


def test_a_process_that_waits_for_its_database_can_be_told_to_stop(tmp_path: Path) -> None:
    environ = {"LUCIOLE_DSN": "postgresql://me:secret@127.0.0.1:1/x"}
    with luciole("node", folder=tmp_path, environ=environ) as node:
        node.wait_for("the store is down")
        assert node.end(signal.SIGTERM) == 4
        assert not any("secret" in line for line in node.lines)
