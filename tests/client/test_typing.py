"""Types: the handler's own signature checks every enqueue."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from luciole.model.job import Misfire, MisfireWord, Overlap, OverlapWord
from tests.test_docs import unpack

pytestmark = pytest.mark.slow

SNIPPET = """
import asyncio
from collections.abc import Coroutine
from typing import Any, assert_type

from luciole import App, Handle, Retry, cron, every

app = App()

@app.job(retry=Retry(5), timeout="30s")
async def charge(order_id: int, note: str = "") -> str:
    return note

@app.job
def add(left: int, right: int) -> int:
    return left + right

@app.job
def beat() -> None:
    return None

async def main() -> None:
    assert_type(await charge.enqueue(42), Handle[str])
    assert_type(await (await charge.enqueue(42, note="x")).result(), str)
    assert_type(await charge(42), str)
    assert_type(add(1, 2), int)
    assert_type((await add.options(delay="5m", priority=5, key="k").enqueue(1, 2)), Handle[int])
    assert_type(await charge.enqueue_many([1, 2]), list[Handle[str]])
    assert_type(charge.enqueue_sync(42), Handle[str])
    assert_type(charge.enqueue_sync(42).result_sync(), str)
    app.schedule("a", charge.bind(42), cron("30 2 * * *", tz="Europe/Berlin"), misfire="fire_once")
    app.schedule("b", beat, every("10s"), overlap="allow")
    await charge.enqueue("42")  # error
    await charge.enqueue()  # error
    await charge.enqueue(42, nte="x")  # error
    charge.enqueue_sync("42")  # error
    await add.options(dealy="5m").enqueue(1, 2)  # error
    await add.options(delay="5m").enqueue(1, "2")  # error
    charge.bind("42")  # error
    charge("42")  # error
    app.schedule("c", add, every("10s"))  # error
    app.schedule("d", beat, "10s")  # error
    app.schedule("e", beat, every("10s"), overlaps="allow")  # error
    app.schedule("f", beat, every("10s"), overlap="forbidden")  # error
    app.schedule("g", beat, every("10s"), misfire="fire-once")  # error
    cron("30 2 * * *", gap="before")  # error
    cron("30 2 * * *", fold="last")  # error
    app.job(retires=5)  # error
"""


ROOT = Path(__file__).parents[2]


def check(folder: Path, *files: str) -> str:
    """Return what the type checker says of some files."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--config-file", "", *files]
    environ = {"MYPYPATH": str(ROOT / "src")}
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=environ).stdout


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md", "docs/handlers.md", "docs/testing.md"])
def test_what_pages_show_is_typed(page: str, tmp_path: Path) -> None:
    names = unpack(page, tmp_path)
    assert "Success" in check(tmp_path, *names)


def test_wrong_arguments_are_errors_of_the_type_checker(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET, encoding="utf-8")
    wanted = {n for n, line in enumerate(SNIPPET.splitlines(), 1) if line.endswith("# error")}
    said = check(tmp_path, str(snippet))
    found = {int(number) for number in re.findall(r"snippet\.py:(\d+): error", said)}
    assert found == wanted, said


def test_the_words_that_a_type_checker_knows_are_those_of_the_policies() -> None:
    known = [set(get_args(get_args(words)[0])) for words in (MisfireWord, OverlapWord)]
    assert known == [set(Misfire), set(Overlap)]
