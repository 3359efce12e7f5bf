"""The contract suite runs outside this tree, on a store that somebody else wrote."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # It starts interpreters.

FILE = """
import pytest_asyncio
from luciole.testing.contract import *
from luciole.testing.contract.harness import MemoryHarness

async def make():
    return await MemoryHarness.make()

@pytest_asyncio.fixture
async def harness():
    made = await make()
    yield made
    await made.close()
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["test_mine.py"],
        [
            "-p",
            "luciole.testing.contract.plugin",
            "--pyargs",
            "luciole.testing.contract",
            "--store-harness=test_mine:make",
        ],
    ],
    ids=["imported", "named"],
)
def test_a_store_of_somebody_else_runs_the_suite(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "test_mine.py").write_text(FILE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "TestEnds or TestIds", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 12
