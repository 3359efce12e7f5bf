"""A flame graph of one process of a revision's own bench, while a profile runs: for the ledger, before and after.

    python scripts/flame_graph.py REVISION OUT.svg --process "luciole node" -- run steady --backend postgres …

The revision's code runs with the packages of this environment. Profiled is the first process below the bench whose
command holds the words of `--process`, from `--after` seconds after it was there, for `--seconds`: samples of whoever
holds the interpreter, 400 a second.
"""

import argparse
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import psutil

from luciole.bench.attribution.profiling import RATE, find_profiler

ROOT = Path(__file__).parents[1]
_LOOKS_MAX = 1_200

#: What py-spy calls its picture: its own command line, with paths of this machine.
_TITLE = re.compile(r'(<text id="title"[^>]*>)[^<]*')
_LOOK_S = 0.1


def _unpack(revision: str, folder: Path) -> Path:
    """Bring the sources of a revision into a folder; return the one that Python looks into."""
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision, "src"], check=True, capture_output=True, timeout=60
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def _find(bench: int, words: str) -> int | None:
    for child in psutil.Process(bench).children(recursive=True):
        try:
            if words in " ".join(child.cmdline()):
                return child.pid
        except psutil.Error:  # It ended meanwhile.
            continue
    return None


def record(revision: str, out: Path, *, words: str, after_s: float, seconds: int, command: Sequence[str]) -> int:
    """Run a bench of a revision and write the flame graph of one of its processes; return the exit code."""
    profiler = find_profiler()
    if profiler is None:
        sys.exit("py-spy is missing: pip install 'luciole[bench]'")
    pause = Event()
    with tempfile.TemporaryDirectory(prefix="luciole-flame-") as name:
        source = _unpack(revision, Path(name))
        environment = {**os.environ, "PYTHONPATH": str(source)}
        words_of_bench = [sys.executable, "-m", "luciole", "bench", *command, "--out", str(Path(name) / "out")]
        with subprocess.Popen(words_of_bench, env=environment, cwd=name) as bench:
            pid = None
            for _ in range(_LOOKS_MAX):
                if (pid := _find(bench.pid, words)) or bench.poll() is not None:
                    break
                pause.wait(_LOOK_S)
            if pid is None:
                bench.terminate()
                sys.exit(f"no process of the bench was called {words!r}")
            pause.wait(after_s)
            how = ("--gil", "--function", "--rate", str(RATE), "--duration", str(seconds), "--format", "flamegraph")
            subprocess.run(
                [profiler, "record", "--pid", str(pid), *how, "--output", str(out)],
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=seconds + 60,
            )
            text = out.read_text(encoding="utf-8")
            title = f"{words}, {' '.join(command)}, revision {revision}"
            out.write_text(_TITLE.sub(lambda found: found[1] + title, text, count=1), encoding="utf-8")
            return bench.wait()


def main() -> int:
    """Read the command line."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("revision")
    reader.add_argument("out", type=Path)
    reader.add_argument("--process", required=True)
    reader.add_argument("--after", type=float, default=0.0)
    reader.add_argument("--seconds", type=int, default=10)
    reader.add_argument("command", nargs="+")
    told = reader.parse_args()
    return record(
        told.revision,
        told.out.resolve(),
        words=told.process,
        after_s=told.after,
        seconds=told.seconds,
        command=told.command,
    )


if __name__ == "__main__":
    sys.exit(main())
