"""What is published works in an empty environment: the wheel is complete, and nothing else is in it."""

import shutil
import signal
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests import imports
from tests.cli.processes import luciole

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow

TILL = """
from luciole import App, every

app = App(name="till")

@app.job
async def charge(order_id: int) -> str:
    print("charging", order_id, flush=True)
    return f"order {order_id} paid"

app.schedule("often", charge.bind(1), every("1s"))
"""

SEND = """
from till import charge

print(charge.enqueue_sync(42).result_sync(timeout="30s"))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what the tree holds."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", "dist"]
    subprocess.run(build, cwd=tree, check=True, capture_output=True)
    (built,) = (tree / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel and what it depends on, without extras."""
    folder = tmp_path_factory.mktemp("environment")
    uv = shutil.which("uv")
    venv.create(folder, with_pip=not uv)
    found = folder / "bin" / "python"
    install = [uv, "pip", "install", "--python", str(found)] if uv else [str(found), "-m", "pip", "install"]
    subprocess.run([*install, "--quiet", str(wheel)], check=True)
    return found


def test_the_wheel_holds_each_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    files = (path for path in (ROOT / "src" / "luciole").rglob("*") if path.is_file())
    ours = {str(path.relative_to(ROOT / "src")) for path in files if "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert "luciole/py.typed" in packed
    assert packed == ours


def test_the_wheel_carries_its_licence_and_its_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        notes = {Path(name).name: name for name in archive.namelist() if ".dist-info/" in name}
        assert "luciole = luciole.cli:main" in archive.read(notes["entry_points.txt"]).decode()
    assert "LICENSE" in notes


def test_each_module_imports_without_extras_or_names_the_one_it_needs(python: Path) -> None:
    found = imports.failures(imports.modules(), python=python)
    assert {name: text for name, text in found.items() if not text.startswith("MissingExtra: ")} == {}


SHOP = """
import asyncio

from luciole import App, every

app = App(name="shop")

@app.job
async def double(number: int) -> int:
    return number * 2

app.schedule("often", double.bind(1), every("1s"))

async def main() -> None:
    async with app.running():
        print(await (await double.enqueue(21)).result(timeout="30s"))

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_a_job_runs_there_on_the_embedded_store_without_any_extra(python: Path, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    ran = subprocess.run([python, "shop.py"], cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.returncode) == ("42\n", 0), ran.stderr
    command = [str(python.with_name("luciole")), "schedules", "list", "--json"]
    listed = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)
    assert '"shop.double"' in listed.stdout, listed.stderr
    command = [str(python.with_name("luciole")), "node"]
    refused = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)
    assert (refused.returncode, "pip install 'luciole[grpc]'" in refused.stderr) == (2, True), refused.stderr


def test_up_serves_there_what_another_process_enqueues(python: Path, tmp_path: Path) -> None:
    """Goal: migrations, statements and tables of zones are all in the wheel: a schedule fires, and an enqueue succeeds.

    Method: `up` on SQLite in a folder of its own, and a second process that enqueues.
    """
    (tmp_path / "till.py").write_text(TILL, encoding="utf-8")
    (tmp_path / "send.py").write_text(SEND, encoding="utf-8")
    with luciole("up", "till:app", folder=tmp_path, python=python) as up:
        up.wait_for("charging 1")
        sent = subprocess.run([python, "send.py"], cwd=tmp_path, check=False, capture_output=True, text=True)
        assert up.end(signal.SIGTERM) == 0
    assert (sent.stdout, sent.stderr) == ("order 42 paid\n", "")
