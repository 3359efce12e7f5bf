"""Every store runs every case of the contract: equal numbers, and no way to be left out."""

import inspect
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from luciole.testing import contract

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CONTRACT = Path(inspect.getfile(contract)).parent

#: The files that put a store through the contract.
RUNNERS = sorted(path.stem for path in HERE.glob("test_contract_*.py") if path.stem != "test_contract_counts")


def cases() -> set[str]:
    """The names of all cases, with their classes."""
    return {
        f"{name}.{case}"
        for name in contract.__all__
        for case, _ in inspect.getmembers(getattr(contract, name), inspect.isfunction)
        if case.startswith("test_")
    }


def collected() -> dict[str, Counter[str]]:
    """How often each file runs each case, as pytest finds them."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    paths = [str(HERE / f"{runner}.py") for runner in RUNNERS]
    said = subprocess.run([*command, *paths], check=True, capture_output=True, text=True, cwd=ROOT)
    found: dict[str, Counter[str]] = {runner: Counter() for runner in RUNNERS}
    for runner, class_name, case in re.findall(r"/(\w+)\.py::(\w+)::(\w+)", said.stdout):
        found[runner][f"{class_name}.{case}"] += 1
    return found


@pytest.mark.slow  # It starts an interpreter.
def test_every_store_runs_every_case_equally_often() -> None:
    """A file may run a case several times, on several versions of its database, but then every case."""
    found = collected()
    for runner, counts in found.items():
        assert set(counts) == cases(), runner
        assert len(set(counts.values())) == 1, runner
    assert len(found) > 1


def test_all_files_of_cases_are_offered() -> None:
    written = set()
    for path in CONTRACT.glob("test_*.py"):
        written |= set(re.findall(r"^class (Test\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    assert written == set(contract.__all__)


def test_no_case_can_leave_itself_out() -> None:
    for path in CONTRACT.glob("*.py"):
        assert not re.search(r"pytest\.(skip|xfail)|mark\.(skip|xfail)", path.read_text(encoding="utf-8")), path.name
