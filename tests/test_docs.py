"""The pages are true: their code runs, their commands exist, their tables say what the code says."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from luciole import errors
from luciole.cli.run import COMMANDS, cli
from luciole.service.jobs import JOB_OPTIONS
from luciole.service.requests import REQUEST_OPTIONS
from luciole.testing import contract
from tests import house_docs
from tests.cli.processes import PATIENCE_S, luciole

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> dict[str, str]:
    """The Python files of a page, by the name in their first line."""
    return dict(BLOCK.findall((ROOT / page).read_text(encoding="utf-8")))


def unpack(page: str, folder: Path) -> list[str]:
    """Write the files of a page into a folder."""
    found = blocks(page)
    for name, code in found.items():
        (folder / name).write_text(code, encoding="utf-8")
    return list(found)


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("README.md", "order 42 paid\n"),
        ("docs/quickstart.md", "order 42: 12.50 paid\nSUCCEEDED\n"),
    ],
)
def test_the_start_of_a_page_works(page: str, printed: str, tmp_path: Path) -> None:
    assert unpack(page, tmp_path) == ["app.py", "send.py"]
    with luciole("up", "app:app", folder=tmp_path) as up:
        up.wait_for("Ctrl-C drains")
        sent = python("send.py", folder=tmp_path)
        assert (sent.stdout, sent.stderr) == (printed, "")


@pytest.mark.slow
def test_the_handlers_page_defines_what_it_shows(tmp_path: Path) -> None:
    names = unpack("docs/handlers.md", tmp_path)
    assert names == ["shop.py", "batch.py", "orders.py", "schedules.py", "steer.py"]
    modules = ", ".join(name.removesuffix(".py") for name in names)
    order = (
        "import sqlite3; c = sqlite3.connect('luciole.db'); c.execute('CREATE TABLE orders (id INTEGER)'); "
        "orders.place_order(c, 42); print(c.execute('SELECT count(*) FROM orders').fetchone()[0]); c.close()"
    )
    ran = python("-c", f"import {modules}; {order}", folder=tmp_path)
    assert (ran.stdout, ran.stderr) == ("1\n", "")


@pytest.mark.slow
def test_the_tests_of_the_testing_page_pass(tmp_path: Path) -> None:
    unpack("docs/testing.md", tmp_path)
    ran = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", ".", folder=tmp_path)
    assert "5 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.slow
def test_the_tests_of_the_stores_page_pass(tmp_path: Path) -> None:
    assert unpack("docs/stores.md", tmp_path) == ["test_mine.py"]
    ran = python("-m", "pytest", "-q", "-p", "no:cacheprovider", ".", folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert int(re.findall(r"(\d+) passed", ran.stdout)[0]) > len(contract.__all__)


def test_each_block_of_python_has_a_name_and_is_run() -> None:
    for page in ("README.md", "docs/quickstart.md", "docs/handlers.md", "docs/testing.md", "docs/stores.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert text.count("```python\n") == len(blocks(page)), page


def subcommands() -> set[str]:
    context = click.Context(cli)
    found: set[str] = set()
    for name in COMMANDS:
        command = cli.get_command(context, name)
        found |= (
            {f"{name} {inner}" for inner in command.commands}
            if isinstance(command, click.Group) and name != "bench"
            else {name}
        )
    return found


def test_the_command_line_page_names_each_command() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert {name for name in subcommands() if f"`luciole {name}" not in page} == set()


def test_the_command_line_page_names_each_exit_code() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.LucioleError)]
    codes = {kind.exit_code for kind in kinds}
    assert {code for code in codes if f"| {code} |" not in page} == set()


def test_the_handlers_page_names_each_option() -> None:
    page = (ROOT / "docs/handlers.md").read_text(encoding="utf-8")
    assert {name for name in JOB_OPTIONS | REQUEST_OPTIONS if f"`{name}`" not in page} == set()


def test_the_table_of_invariants_leads_to_their_tags() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (I\d+) \|(.*)\|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == [f"I{number}" for number in range(1, 12)]
    for name, row in rows:
        for path in re.findall(r"\]\(([^)]+)\)", row):
            text = (ROOT / path).read_text(encoding="utf-8")
            tagged = any(name in match[1].split(", ") for match in house_docs.TAG.finditer(text))
            assert tagged or path.endswith("limits.py"), f"{path} has no tag {name}"
