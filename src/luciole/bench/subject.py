"""The app that the bench measures: what its executor processes import, as a user's would be."""

import os
import socket

from luciole.app import App
from luciole.runtime.clock import SystemClock

NAMESPACE = "bench"

#: The UDP port on loopback that is told of each start.
PORT_VARIABLE = "BENCH_STARTS_PORT"

app = App(name="bench", namespace=NAMESPACE)

_clock = SystemClock()
_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def tell(port: int) -> None:
    """Tell starts to a port of this machine; 0 tells nobody."""
    if port:
        _socket.connect(("127.0.0.1", port))


tell(int(os.environ.get(PORT_VARIABLE, "0")))


@app.job
async def note(number: int) -> None:
    """Tell when it started, by the machine's monotonic clock, which all its processes share."""
    started_us = _clock.monotonic_us()
    _socket.send(f"{number} {started_us}".encode("ascii"))
