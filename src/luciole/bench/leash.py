"""Ends: a bench that is told to stop cleans up, and its children end with it, however it ends itself."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

#: Linux: the signal that this process gets when its parent ends.
_PR_SET_PDEATHSIG = 1

#: What a bench that is stopped may take to end its servers.
STOP_S_MAX = 20


def leash() -> Callable[[], None] | None:
    """Return what a child of this process runs before its program, so that it is killed when this process ends.

    None where the system knows no such thing: a child there ends with its standard input.
    """
    if sys.platform != "linux":
        return None
    parent = os.getpid()
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # Looked up here: after a fork, as little as possible.

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # It ended in the moment between.
            os._exit(1)

    return bind


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end what runs as Ctrl-C does, which cleans up; further ones wait for that.

    What a script starts in the background ignores Ctrl-C, so that either would be lost: not so a bench.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.raise_signal(signal.SIGINT)

    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_to_its_end(command: Sequence[str]) -> int:
    """Run a bench whose output is ours, and return its exit code; when we are interrupted, it cleans up first."""
    with (
        heeding_interrupts() as heed,
        subprocess.Popen(  # noqa: S603 - the caller's own words
            command,
            start_new_session=True,  # Ctrl-C reaches us alone; we tell it.
            preexec_fn=leash(),  # noqa: PLW1509 - this process has no threads
        ) as child,
    ):
        try:
            heed()  # What was raised while it was started may be lost.
            return child.wait()
        finally:
            stop(child)


def stop(child: "subprocess.Popen[Any]") -> None:
    """End a bench and all that it started: first so that it cleans up, then at once."""
    if child.poll() is None:
        child.terminate()  # SIGINT may be ignored until it has begun; then there is nothing to clean up.
        with suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=STOP_S_MAX)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


@contextmanager
def heeding_interrupts() -> Iterator[Callable[[], None]]:
    """Yield a question that raises `KeyboardInterrupt` when SIGINT came, even if what it raised then was lost.

    Python drops what is raised in its hooks around a fork, and whoever starts many processes is often there.
    """
    heard = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard = True
        signal.default_int_handler(number, frame)

    def heed() -> None:
        if heard:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield heed
    finally:
        signal.signal(signal.SIGINT, before)
