"""Ends: a bench that is told to stop cleans up, and its children end with it, however it ends itself."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: Linux: the signal that this process gets when its parent ends.
_PR_SET_PDEATHSIG = 1


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
    """Let SIGTERM end what runs as Ctrl-C does, which cleans up; further ones wait for that."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # A script's shell gives that to what it runs beside it.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
