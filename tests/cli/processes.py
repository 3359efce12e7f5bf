"""Real `luciole` processes for end-to-end tests: their output is watched, and none outlives its test."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

#: Far more than any of it takes; a test that hangs ends all the same.
PATIENCE_S = 60


class Process:
    """One process, and the lines that it wrote so far."""

    def __init__(
        self,
        *arguments: str,
        folder: Path,
        environ: Mapping[str, str] | None = None,
        python: str | Path = sys.executable,
    ) -> None:
        self._process = subprocess.Popen(
            [python, "-W", "error", "-m", "luciole", *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **(environ or {})},
        )
        self.pid = self._process.pid
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, text: str) -> str:
        """Return the first line that holds a text, once it is written."""
        with self._changed:
            found = self._changed.wait_for(lambda: self._find(text) is not None or self._ended, PATIENCE_S)
        line = self._find(text)
        assert found, f"no {text!r} in {PATIENCE_S} s: {self.lines}"
        assert line is not None, f"ended without {text!r}: {self.lines}"
        return line

    def send(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self._process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Return the exit code, once it has ended."""
        code = self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def kill(self) -> None:
        """End it for good, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _find(self, text: str) -> str | None:
        return next((line for line in self.lines if text in line), None)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


@contextmanager
def luciole(
    *arguments: str, folder: Path, environ: Mapping[str, str] | None = None, python: str | Path = sys.executable
) -> Iterator[Process]:
    """Start `luciole ARGUMENTS`, and end it with the block."""
    process = Process(*arguments, folder=folder, environ=environ, python=python)
    try:
        yield process
    finally:
        process.kill()


def command(*arguments: str, folder: Path, environ: Mapping[str, str] | None = None, code: int = 0) -> str:
    """Run a command to its end; return what it wrote."""
    ended = subprocess.run(
        [sys.executable, "-m", "luciole", *arguments],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **(environ or {})},
    )
    assert ended.returncode == code, (ended.stdout, ended.stderr)
    return ended.stdout if code == 0 else ended.stderr
