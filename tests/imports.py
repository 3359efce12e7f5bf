"""Import each module of the package as the first one of its process, with or without what is optional."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: The packages that an extra brings, by the name that they are imported by.
OPTIONAL = {
    "asyncpg": "postgres",
    "google": "grpc",
    "grpc": "grpc",
    "uvloop": "speed",
    "hdrh": "bench",
    "psutil": "bench",
    "pytest": "testing",
    "pytest_asyncio": "testing",
    "hypothesis": "testing",
}

# A fork for each module makes it the first of its process, without an interpreter's start for each. What they all
# need is loaded before; nothing of ours is.
_EACH_IN_A_FORK = """
import asyncio, dataclasses, importlib, json, logging, os, sqlite3, sys, typing, zoneinfo
import click, msgspec
for name in json.loads(sys.argv[2]):
    sys.modules[name] = None
for module in json.loads(sys.argv[1]):
    pid = os.fork()
    if not pid:
        try:
            importlib.import_module(module)
        except BaseException as error:
            print(json.dumps([module, f"{type(error).__name__}: {error}"]), flush=True)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if status:
        print(json.dumps([module, f"the process died: {status}"]), flush=True)
"""


def modules(package: Path = ROOT / "src/luciole") -> list[str]:
    """The dotted names of all modules of a package, without those that programs start with and generated ones."""
    names = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return [name for name in names if not name.endswith(("__main__", "_pb2"))]


def failures(
    names: Iterable[str], *, without: Iterable[str] = (), python: str | Path = sys.executable, path: str = ""
) -> dict[str, str]:
    """Import each of these alone.

    Args:
        names: modules, by their dotted names.
        without: packages that are made to look as if they were not installed.
        python: the interpreter that does it.
        path: a folder to search before all others.

    Returns:
        The error of each module that could not be imported.
    """
    done = subprocess.run(
        [python, "-c", _EACH_IN_A_FORK, json.dumps(list(names)), json.dumps(list(without))],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": path} if path else {},
    )
    return dict(json.loads(line) for line in done.stdout.splitlines())
