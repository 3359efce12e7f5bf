"""The app that the bench measures: what its executor processes import, as a user's would be."""

import asyncio
import os
import socket

from luciole.app import App
from luciole.executor.context import current
from luciole.runtime.clock import SystemClock

NAMESPACE = "bench"

#: The UDP port on loopback that is told of each start.
PORT_VARIABLE = "BENCH_STARTS_PORT"

#: The file that each start of `work` appends a line to.
LEDGER_VARIABLE = "BENCH_LEDGER"

app = App(name="bench", namespace=NAMESPACE)

_clock = SystemClock()
_listeners: list[socket.socket] = []  #: who is told of starts, once somebody is
_ledger: list[int] = []  #: the open ledger, once there is one


def tell(port: int) -> None:
    """Tell starts to a port of this machine; 0 tells nobody."""
    while _listeners:
        _listeners.pop().close()
    if port:
        listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listener.connect(("127.0.0.1", port))
        _listeners.append(listener)


tell(int(os.environ.get(PORT_VARIABLE, "0")))


@app.job
async def note(number: int) -> None:
    """Tell when it started, by the machine's monotonic clock, which all its processes share."""
    started_us = _clock.monotonic_us()
    for listener in _listeners:
        listener.send(f"{number} {started_us}".encode("ascii"))


@app.job
async def work(duration_ms: int) -> None:
    """Enter the start into the ledger, then take a while."""
    if not _ledger:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        _ledger.append(os.open(os.environ[LEDGER_VARIABLE], flags, 0o600))
    context = current()
    os.write(_ledger[0], f"{context.execution_id} {context.attempt}\n".encode("ascii"))
    await asyncio.sleep(duration_ms / 1_000)


@app.job
async def nothing(filler: str) -> None:
    """Take some bytes and do nothing with them."""
    del filler
