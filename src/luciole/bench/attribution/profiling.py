"""Profiles of the processes of a window, by py-spy; only in repeats that count for nothing."""

import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self

from luciole.bench.attribution.document import Flame

Kind = Literal["cpu", "wall"]

#: Samples a second of each process.
RATE = 400

#: Stacks that a profile keeps: the rest is too rare to be seen.
STACKS_MAX = 3_000

_READY_S = 5
_END_S = 20

#: `cpu` sees who holds the interpreter; `wall` sees everybody, those who wait included.
_SEES = {"cpu": "--gil", "wall": "--idle"}

MISSING = "py-spy is missing, so that nothing was profiled: pip install 'luciole[bench]'"


class Profiler:
    """Profiles processes from its begin to its end; a context manager.

    Args:
        pids: of the processes, by their names.
        kind: of the profile.
    """

    def __init__(self, pids: Mapping[str, int], kind: Kind) -> None:
        self._pids = dict(pids)
        self._kind = kind
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="luciole-bench-profile-")
        self.flames: list[Flame] = []  #: once it has ended
        self.failed: list[str] = []  #: why there is no profile of a process

    async def __aenter__(self) -> Self:
        program = find_profiler()
        if program is None:
            self.failed.append(MISSING)
            return self
        for name, pid in self._pids.items():
            self._running[name] = await asyncio.create_subprocess_exec(
                program,
                "record",
                *("--pid", str(pid), "--format", "raw", "--function", "--rate", str(RATE), _SEES[self._kind]),
                *("--output", str(self._path(pid))),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        for profiling in self._running.values():
            with suppress(TimeoutError):
                async with asyncio.timeout(_READY_S):
                    assert profiling.stderr
                    await profiling.stderr.read(1)  # It speaks once it samples, or once it failed.
        return self

    async def __aexit__(self, *_: object) -> None:
        for name, profiling in self._running.items():
            with suppress(ProcessLookupError):
                profiling.send_signal(signal.SIGINT)
            try:
                async with asyncio.timeout(_END_S):
                    said = (await profiling.communicate())[1]
            except TimeoutError:
                profiling.kill()
                await profiling.wait()
                said = b"it did not end"
            path = self._path(self._pids[name])
            if path.exists():
                self.flames.append(flame_of(name, self._kind, path.read_text(encoding="utf-8", errors="replace")))
            else:
                words = " ".join(said.decode("utf-8", "replace").split())
                self.failed.append(f"{name} could not be profiled: {words[-300:]}")
        self._folder.cleanup()

    def _path(self, pid: int) -> Path:
        return Path(self._folder.name) / f"{pid}.raw"


def find_profiler() -> str | None:
    """Return py-spy: beside this interpreter, or wherever the system finds it."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def flame_of(name: str, kind: Kind, raw: str) -> Flame:
    """Return a profile from folded stacks, one a line with its samples; lines that are none are left out."""
    stacks: dict[str, int] = {}
    for line in raw.splitlines():
        stack, _, samples = line.rpartition(" ")
        if stack and samples.isdigit():
            short = ";".join(_frame(word) for word in stack.split(";"))
            stacks[short] = stacks.get(short, 0) + int(samples)
    most = sorted(stacks.items(), key=lambda pair: -pair[1])[:STACKS_MAX]
    return Flame(name=name, kind=kind, samples=sum(stacks.values()), stacks=dict(most))


def _frame(word: str) -> str:
    """Return a frame without the folders that its file lies in, but for those of its package."""
    name, found, place = word.strip().partition(" (")
    if not found:
        return word.strip()
    parts = place.rstrip(")").replace("\\", "/").split("/")
    for root in ("site-packages", "src"):
        if root in parts:
            parts = parts[len(parts) - parts[::-1].index(root) :]
            break
    else:
        parts = parts[-2:] if len(parts) > 1 else parts
    return f"{name} ({'/'.join(parts)})"
