"""One bench at a time: while a measurement runs, nothing else measures on the machine."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from luciole.bench.verdict import InvalidRun


def lock_path() -> Path:
    """The file that a running bench holds, the same for all users of the machine's folder for temporary files."""
    return Path(tempfile.gettempdir()) / "luciole-bench.lock"


@contextmanager
def only_bench(path: Path | None = None) -> Iterator[None]:
    """Hold the lock of the bench; the system gives it back when the process ends, however it ends.

    Raises:
        InvalidRun: another bench runs; its process id is in the message.
    """
    chosen = path or lock_path()
    descriptor = _open(chosen)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise InvalidRun(
                f"another bench runs (process {holder}, lock {chosen}): two at once measure each other; wait for it"
            ) from None
        with suppress(OSError):  # Another user's file: the lock counts, the number in it is a courtesy.
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except PermissionError:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
