"""The writing probes by fio, where it is installed: deeper queues than threads of one interpreter can keep full."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from luciole.bench.check import judge
from luciole.bench.probing.spec import Probed, ProbeSpec
from luciole.bench.probing.writing import Pattern
from luciole.bench.verdict import InvalidRun

_MIB = 1_048_576
_NS_PER_US = 1_000


def has_fio() -> bool:
    """Whether fio can be run."""
    return shutil.which("fio") is not None


def fio_pattern(folder: Path, pattern: Pattern, spec: ProbeSpec) -> Probed:
    """Let fio write over a file of its own for a while.

    Raises:
        InvalidRun: it failed; its words are in the message.
    """
    path = folder / f"probe-{pattern.name}"
    command = [
        "fio",
        f"--name={pattern.name}",
        f"--filename={path}",
        f"--rw={'randwrite' if pattern.is_random else 'write'}",
        f"--bs={pattern.block_bytes}",
        f"--iodepth={pattern.depth}",
        "--ioengine=libaio",
        "--direct=1",
        f"--size={spec.file_mib}M",
        f"--runtime={spec.duration_s:g}",
        "--time_based",
        "--end_fsync=1",
        "--output-format=json",
    ]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - our own words
    except OSError as error:
        raise InvalidRun(f"fio can't be run: {error.strerror}") from None
    finally:
        path.unlink(missing_ok=True)
    if done.returncode:
        raise InvalidRun(f"fio ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
    return read_fio(done.stdout, pattern)


def read_fio(said: str, pattern: Pattern) -> Probed:
    """Return what fio found, from its JSON.

    Raises:
        InvalidRun: it is no answer of fio.
    """
    try:
        told: dict[str, Any] = msgspec.json.decode(said[said.index("{") :])
        (job,) = told["jobs"]
        write = job["write"]
        figures = {
            f"{pattern.name}_rate": float(write["iops"]),
            f"{pattern.name}_mib_rate": float(write["bw_bytes"]) / _MIB,
            f"{pattern.name}_p99_us": float(write["clat_ns"]["percentile"]["99.000000"]) / _NS_PER_US,
        }
        failed = int(job["error"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRun(f"fio said something else than it does: {type(error).__name__}: {error}") from None
    return Probed(
        figures=figures,
        check=judge(f"{pattern.name}_errors", "report", "= 0", failed, {}),
        distributions={},
        tool=str(told.get("fio version", "fio")),
    )
