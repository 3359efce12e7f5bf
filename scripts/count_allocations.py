"""Count how often memory is allocated for each durable append on the embedded store, by a revision's own code.

    python scripts/count_allocations.py [--revision REVISION [--measured-by REVISION]] CALLERS COUNT

It compiles allocations.c and puts that in front of the C library of `python -m luciole.bench.micro.appends`, with
Python's own allocator switched off. One figure is the difference of two runs, one twice as long, by the appends that
it has more: what starting takes is in neither. `--measured-by` takes the measuring modules from another revision, for
one that is older than they are. Needs Linux with glibc and a C compiler.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = Path(__file__).parent / "allocations.c"
MODULES = ("src/luciole/bench/micro/appends.py", "src/luciole/bench/micro/durable.py")
_RUN_S_MAX = 300


def unpack(revision: str, folder: Path, *paths: str) -> None:
    """Bring files of a revision into a folder."""
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision, *(paths or ["src"])], check=True, capture_output=True, timeout=60
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def allocated(library: Path, source: Path, callers: int, count: int) -> tuple[int, int]:
    """Return how often memory was allocated in a run of so many appends, and how many bytes were asked for."""
    told = library.with_suffix(".txt")
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "ALLOCATIONS_FILE": str(told),
        "PYTHONMALLOC": "malloc",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(source),
    }
    command = [sys.executable, "-m", "luciole.bench.micro.appends", str(callers), str(count)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, timeout=_RUN_S_MAX)
    calls, size = told.read_text(encoding="ascii").split()
    return int(calls), int(size)


def main() -> None:
    """Print one line of JSON."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--revision")
    reader.add_argument("--measured-by")
    reader.add_argument("callers", type=int)
    reader.add_argument("count", type=int)
    told = reader.parse_args()
    with tempfile.TemporaryDirectory(prefix="luciole-allocations-") as name:
        folder = Path(name)
        library = folder / "allocations.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(SOURCE), "-o", str(library)], check=True, timeout=60)
        source = ROOT / "src"
        if told.revision:
            unpack(told.revision, folder)
            source = folder / "src"
        if told.measured_by:
            unpack(told.measured_by, folder, *MODULES)
        short = allocated(library, source, told.callers, told.count)
        long = allocated(library, source, told.callers, 2 * told.count)
    calls, size = ((after - before) / told.count for before, after in zip(short, long, strict=True))
    found = {"callers": told.callers, "allocations": round(calls, 1), "bytes": round(size)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
