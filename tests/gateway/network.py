"""What the tests of the network share: certificates made on the spot, and a wire that a test can cut."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import trustme


class Certificates(NamedTuple):
    """Paths of PEM files."""

    cert: str
    key: str
    ca: str


def make_certificates(folder: Path, *names: str) -> Certificates:
    """Make an authority, and a certificate of it for these names and addresses."""
    authority = trustme.CA()
    proof = authority.issue_cert(*names)
    paths = Certificates(*(str(folder / name) for name in ("cert.pem", "key.pem", "ca.pem")))
    proof.private_key_pem.write_to_path(paths.key)
    for number, blob in enumerate(proof.cert_chain_pems):
        blob.write_to_path(paths.cert, append=number > 0)
    authority.cert_pem.write_to_path(paths.ca)
    return paths


def free_port() -> int:
    """Return a loopback port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Wire:
    """A TCP relay in front of a server: it can be cut, and be silent without being cut."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.passes = asyncio.Event()  #: cleared: bytes are held back, as by a firewall that drops them
        self.passes.set()
        self.open = True  #: False: new connections are refused
        self.refused = asyncio.Event()  #: set when one was
        self.address = ""

    def cut(self) -> None:
        """Break every connection that there is."""
        for writer in self._writers:
            writer.transport.abort()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection."""
        if not self.open:
            writer.transport.abort()
            self.refused.set()
            return
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        self._writers |= {writer, far_writer}
        for source, target in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._relay(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _relay(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                await self.passes.wait()
                target.write(data)
                await target.drain()
        except ConnectionError:
            pass  # It was cut.
        finally:
            target.transport.abort()
            self._writers.discard(target)


@asynccontextmanager
async def a_wire(target: str) -> AsyncIterator[Wire]:
    """Have a wire in front of a server."""
    wire = Wire(target)
    server = await asyncio.start_server(wire.accept, "127.0.0.1", 0)
    wire.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        server.close()
        wire.passes.set()
        wire.cut()
        await server.wait_closed()
