"""Whole processes: up, node, executor and demo, as somebody starts, kills and stops them."""

import json
import os
import signal
from pathlib import Path

import pytest

from luciole.app import App
from tests.cli.processes import command, luciole

pytestmark = pytest.mark.slow

SHOP = """
import asyncio
import time

from luciole import App, Retry, current, every

app = App(name="shop")

@app.job
async def double(number: int) -> int:
    return number * 2

@app.job
def greet(name: str) -> str:
    return "hello " + name

@app.job
async def relay(number: int) -> str:
    return (await double.enqueue(number)).id

@app.job(run_in="process")
def crunch(number: int) -> int:
    return sum(range(number))

@app.job
async def linger() -> str:
    print("lingering", flush=True)
    await asyncio.sleep(1.5)
    return "done"

@app.job
async def hang() -> str:
    print("hanging", flush=True)
    await asyncio.sleep(600)
    return "never"

app.schedule("often", double.bind(1), every("1s"), overlap="allow")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    return tmp_path


def client_of(folder: Path) -> App:
    """The app as another process sees it, which has only the DSN."""
    return App(f"sqlite:///{folder / 'luciole.db'}", name="shop")


def enqueue(folder: Path, handler: str, arguments: str) -> str:
    done = command("jobs", "enqueue", f"shop.{handler}", "--args", arguments, "--json", folder=folder)
    return str(json.loads(done)["execution"])


def test_up_runs_an_app_and_drains_when_told(folder: Path) -> None:
    with luciole("up", "shop:app", folder=folder) as up:
        up.wait_for("runs shop (6 jobs, 1 schedules)")
        with client_of(folder) as app:
            number = app.find_execution(enqueue(folder, "double", '{"number": 21}')).result_sync(timeout="20s")
            word = app.find_execution(enqueue(folder, "greet", '{"name": "you"}')).result_sync(timeout="20s")
            total = app.find_execution(enqueue(folder, "crunch", '{"number": 10}')).result_sync(timeout="30s")
            relayed = app.find_execution(enqueue(folder, "relay", '{"number": 4}')).result_sync(timeout="20s")
            inner = app.find_execution(str(relayed)).result_sync(timeout="20s")
            lingering = app.find_execution(enqueue(folder, "linger", "{}"))
            up.wait_for("lingering")
            assert up.end(signal.SIGTERM) == 0
            assert lingering.result_sync(timeout="1s") == "done"
        assert (number, word, total, inner) == (42, "hello you", 45, 8)
    (schedule,) = json.loads(command("schedules", "list", "--json", folder=folder))
    assert (schedule["name"], schedule["owner"], schedule["state"]) == ("often", "shop", "active")
    executions = json.loads(command("executions", "list", "--schedule", "often", "--json", folder=folder))
    assert {execution["state"] for execution in executions} <= {"succeeded", "ready", "held"}


def test_an_executor_that_is_killed_is_replaced_without_a_loss(folder: Path) -> None:
    address_file = folder / "address"
    node_command = ("node", "--listen", "127.0.0.1:0", "--address-file", str(address_file))
    with luciole(*node_command, folder=folder) as node:
        node.wait_for("listens on 127.0.0.1:")
        address = address_file.read_text(encoding="utf-8").strip()
        with luciole("executor", "shop:app", "--node", address, folder=folder) as executor:
            executor.wait_for("connected to node")
            execution_id = enqueue(folder, "linger", "{}")
            executor.wait_for("lingering")
            os.kill(executor.pid, signal.SIGKILL)
            executor.wait()
        with luciole("executor", "shop:app", "--node", address, folder=folder) as second:
            second.wait_for("lingering")
            with client_of(folder) as app:
                assert app.find_execution(execution_id).result_sync(timeout="30s") == "done"
            assert second.end(signal.SIGINT) == 0
        assert node.end(signal.SIGTERM) == 0
    shown = json.loads(command("executions", "show", execution_id, "--json", folder=folder))
    assert [attempt["outcome"] for attempt in shown["attempts"]] == ["lost"]
    assert shown["attempt"] == 2


def test_an_executor_with_a_wrong_token_is_told_and_ends(folder: Path) -> None:
    address_file = folder / "address"
    with luciole("node", "--address-file", str(address_file), "--token", "right", folder=folder) as node:
        node.wait_for("listens on")
        address = address_file.read_text(encoding="utf-8").strip()
        wrong = command("executor", "shop:app", "--node", address, "--token", "wrong", folder=folder, code=2)
        assert "token" in wrong
        with luciole("executor", "shop:app", "--node", address, "--token", "right", folder=folder) as executor:
            executor.wait_for("connected to node")


def test_an_app_that_is_up_takes_executors_from_elsewhere(folder: Path) -> None:
    with luciole("up", "shop:app", "--listen", "127.0.0.1:0", folder=folder) as up:
        up.wait_for("runs shop")
        (one,) = json.loads(command("nodes", "--json", folder=folder))["nodes"]
        with luciole("executor", "shop:app", "--node", one["address"], folder=folder) as executor:
            executor.wait_for("connected to node")
            assert executor.end(signal.SIGTERM) == 0


def test_a_second_signal_ends_a_drain_at_once(folder: Path) -> None:
    with luciole("up", "shop:app", folder=folder) as up:
        up.wait_for("runs shop")
        enqueue(folder, "hang", "{}")
        up.wait_for("hanging")
        up.send(signal.SIGINT)
        up.wait_for("draining")
        assert up.end(signal.SIGINT) == -signal.SIGINT


def test_a_cancelled_execution_ends_wherever_it_runs(folder: Path) -> None:
    with luciole("up", "shop:app", folder=folder) as up:
        up.wait_for("runs shop")
        execution_id = enqueue(folder, "hang", "{}")
        up.wait_for("hanging")
        command("executions", "cancel", execution_id, folder=folder)
        command("executions", "wait", execution_id, "--timeout", "20s", folder=folder, code=3)
    shown = json.loads(command("executions", "show", execution_id, "--json", folder=folder))
    assert shown["state"] == "cancelled"


NOWHERE = "postgresql://me:secret@127.0.0.1:1/x"


@pytest.mark.parametrize(
    ("arguments", "code", "seen"),
    [
        (("up", "nowhere:app"), 2, "there is no module 'nowhere'"),
        (("up", "shop:application"), 2, "there are: app"),
        (("up", "shop:double"), 2, "no App"),
        (("up", "broken:app"), 2, "ZeroDivisionError"),
        (("up", "shop:app", "--dsn", NOWHERE, "--wait-for-store", "0s"), 4, "127.0.0.1"),
        (("node", "--dsn", NOWHERE, "--wait-for-store", "300ms"), 4, "127.0.0.1"),
        (("up", "shop:app", "--slots", "1000000"), 2, "slots"),
        (("executor", "shop:app"), 2, "--node"),
        (("executor", "shop:app", "--node", "nonsense"), 2, "'nonsense' is no address"),
        (("node", "--listen", "0.0.0.0:0"), 2, "TLS"),
        (("node", "--listen", "nonsense"), 2, "listen"),
    ],
)
def test_a_wrong_start_is_one_line_that_names_the_knob(
    folder: Path, arguments: tuple[str, ...], code: int, seen: str
) -> None:
    (folder / "broken.py").write_text("x = 1 / 0\n", encoding="utf-8")
    complaint = command(*arguments, folder=folder, code=code)
    assert seen.lower() in complaint.lower()
    assert "Traceback" not in complaint
    assert "secret" not in complaint


def test_the_demo_holds(tmp_path: Path) -> None:
    audit = json.loads(command("demo", "--json", folder=tmp_path, environ={"TMPDIR": str(tmp_path)}))
    assert audit["held"]
    assert audit["fired"] > 2_500
    assert audit["rescued"] > 0
    assert audit["retried"] > 0
    assert audit["skipped_by_overlap"] > 0
    assert list(tmp_path.iterdir()) == []


def test_the_demo_leaves_nothing_behind_when_it_is_interrupted(tmp_path: Path) -> None:
    with luciole("demo", folder=tmp_path, environ={"TMPDIR": str(tmp_path)}) as demo:
        line = demo.wait_for("executor ")
        pid = int(line.split("executor ")[1].split()[0])
        assert demo.end(signal.SIGINT) == 130
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_postgres_is_migrated_then_served_by_node_and_executor(folder: Path, postgres_dsn: str) -> None:
    environ = {"LUCIOLE_DSN": postgres_dsn}
    complaint = command("node", folder=folder, environ=environ, code=5)
    assert "luciole migrate" in complaint
    assert "ran" in command("migrate", folder=folder, environ=environ)
    assert "already up to date" in command("migrate", folder=folder, environ=environ)
    address_file = folder / "address"
    with luciole("node", "--address-file", str(address_file), folder=folder, environ=environ) as node:
        node.wait_for("listens on")
        address = address_file.read_text(encoding="utf-8").strip()
        with luciole("executor", "shop:app", "--node", address, folder=folder, environ=environ) as executor:
            executor.wait_for("connected to node")
            done = command(
                "jobs", "enqueue", "shop.relay", "--args", '{"number": 4}', "--json", folder=folder, environ=environ
            )
            execution_id = json.loads(done)["execution"]
            inner = json.loads(
                command("executions", "wait", execution_id, "--timeout", "30s", folder=folder, environ=environ)
            )
            assert command("executions", "wait", inner, "--timeout", "30s", folder=folder, environ=environ) == "8\n"
            cluster = json.loads(command("nodes", "--json", folder=folder, environ=environ))
            assert [(one["address"], one["shards"]) for one in cluster["nodes"]] == [(address, 32)]
            assert "ok" in command("doctor", folder=folder, environ=environ)
            assert executor.end(signal.SIGTERM) == 0
        assert node.end(signal.SIGTERM) == 0
