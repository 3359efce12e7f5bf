"""One slice: a run of one repeat by one side's own code, in processes, databases and a lock of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from luciole.bench.ab.arms import Side
from luciole.bench.leash import heeding_interrupts, leash, stop
from luciole.bench.result import Result, read_result
from luciole.bench.verdict import (
    BackendUnavailable,
    BenchError,
    Incorrect,
    InvalidRun,
    NotReadable,
    Verdict,
)

#: A slice that takes longer hangs.
_SLICE_S_MAX = 1_800

_WORDS_MAX = 600


class Slices(msgspec.Struct, frozen=True, kw_only=True):
    """How slices run."""

    profile: str
    options: Sequence[str]  #: of `bench run PROFILE`
    folder: Path  #: where everything of theirs lies while they run
    #: More environment of each side: how faults are asked for.
    environment: Mapping[str, Mapping[str, str]] = {}

    def run(self, name: str, side: Side) -> Result:
        """Run a slice of a side and return its result.

        Raises:
            Incorrect: correctness is violated.
            InvalidRun: this slice says nothing; another may.
            BackendUnavailable: the store can't be had here.
            NotReadable: this side can't be measured so, or its result can't be read.
        """
        out = self.folder / "slice"
        scratch = self.folder / "scratch"  # The bench's lock lies there too: ours is the machine's.
        scratch.mkdir(mode=0o1777, exist_ok=True)
        scratch.chmod(0o1777)  # Servers do not run as root.
        command = [sys.executable, "-m", "luciole", "bench", "run", self.profile, *self.options]
        environment = {
            **os.environ,
            **self.environment.get(name, {}),
            "PYTHONPATH": str(side.source),
            "PYTHONHASHSEED": "0",
            "TMPDIR": str(scratch),
        }
        try:
            code, words = _run([*command, "--repeats", "1", "--out", str(out)], self.folder, environment)
            return _result(out, code, f"{side.asked}: {words}")
        finally:
            shutil.rmtree(out, ignore_errors=True)
            shutil.rmtree(scratch, ignore_errors=True)


def run_here(words: Sequence[str]) -> tuple[int, str]:
    """Run `luciole` with these words on the code that is running now; return its exit code and its last words."""
    return run_with(words, Path.cwd(), {})


def run_with(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run `luciole` with these words in a folder and with more environment; return exit code and last words."""
    return _run([sys.executable, "-m", "luciole", *words], folder, {**os.environ, **environment})


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command in a session of its own; return its exit code and its last words."""
    with (
        heeding_interrupts() as heed,
        subprocess.Popen(  # noqa: S603 - our own words
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=leash(),  # noqa: PLW1509 - this process has no threads
        ) as child,
    ):
        try:
            heed()  # What was raised while it was started may be lost.
            said, _ = child.communicate(timeout=_SLICE_S_MAX)
        except subprocess.TimeoutExpired:
            raise InvalidRun(f"a slice took more than {_SLICE_S_MAX} s") from None
        finally:
            stop(child)
    return child.returncode, said.strip().rpartition("\n")[2][-_WORDS_MAX:]


def _result(out: Path, code: int, words: str) -> Result:
    refused: dict[int, type[BenchError]] = {
        Verdict.INCORRECT: Incorrect,
        Verdict.INVALID: InvalidRun,
        Verdict.BACKEND_UNAVAILABLE: BackendUnavailable,
    }
    if code in refused:
        raise refused[code](words)
    if code not in {Verdict.OK, Verdict.OBJECTIVE_MISSED}:
        raise NotReadable(f"it ended with code {code}: {words}")
    return read_result(out)
