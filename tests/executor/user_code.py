"""Handlers as a user writes them; processes import them from here."""

import logging
import os
import signal
from dataclasses import dataclass

from luciole.executor.context import RetryLater, Stop, current

log = logging.getLogger("user")


@dataclass
class Receipt:
    order_id: int
    note: str


def receipt(order_id: int, note: str = "-") -> Receipt:
    return Receipt(order_id, note)


async def receipt_async(order_id: int, note: str = "-") -> Receipt:
    return Receipt(order_id, note)


def odd(kind: str) -> object:
    """Return or raise something that breaks schedulers."""
    if kind == "exit":
        raise SystemExit(3)
    if kind == "raise":
        raise ValueError("boom \x00 \ud800 " + "x" * 100_000)
    if kind == "later":
        raise RetryLater(90, "come back")
    if kind == "stop":
        raise Stop("never again")
    return {
        "nan": float("nan"),
        "big": 2**70,
        "nul": "a\x00b",
        "surrogate": "\ud800",
        "object": object(),
        "huge": "x" * 50_000_000,
        "cycle": _cycle(),
    }[kind]


async def odd_async(kind: str) -> object:
    return odd(kind)


def _cycle() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


def dies(how: str) -> None:
    if how == "exit":
        os._exit(7)
    os.kill(os.getpid(), signal.SIGKILL)


def spins() -> None:
    """Keep a core busy until somebody kills the process."""
    while True:
        pass


def pid() -> int:
    return os.getpid()


def asks() -> str:
    """Say how far it is, and go on until it is told to end."""
    context = current()
    context.progress("waiting")
    while not context.wait(60):
        pass
    context.check()
    return "not reached"


def prints() -> str:
    print("to standard output", flush=True)  # noqa: T201
    return "printed"


def logs() -> None:
    log.warning("from a handler")
