"""A network between client and server that a test can cut."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    """Passes bytes on, until it is told to lose an answer or to fall silent."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._lose_after: bytes | None = None
        self._silent = False
        self._writers: list[asyncio.StreamWriter] = []
        self._pumps: set[asyncio.Task[None]] = set()
        self.lost = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.cut()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    @property
    def dsn(self) -> str:
        """The server's DSN, through here."""
        port = self._server.sockets[0].getsockname()[1]
        return self._dsn.replace(f":{urlsplit(self._dsn).port}/", f":{port}/")

    def lose_answer_to(self, sent: bytes) -> None:
        """Cut the connection when the server has answered what the client sent with these bytes in it, once."""
        self._lose_after = sent
        self.lost.clear()

    def fall_silent(self) -> None:
        """Pass nothing on any more, and keep the connections."""
        self._silent = True

    def cut(self) -> None:
        """Cut every connection; new ones work."""
        self._silent = False
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = urlsplit(self._dsn)
        server_reader, server_writer = await asyncio.open_connection(address.hostname, address.port)
        self._writers += [writer, server_writer]
        awaited = asyncio.Event()  # The next answer is one to lose.
        for pump in (
            self._pass_on(reader, server_writer, awaited, from_client=True),
            self._pass_on(server_reader, writer, awaited, from_client=False),
        ):
            task = asyncio.create_task(pump)
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, awaited: asyncio.Event, *, from_client: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if self._silent:
                    continue
                if from_client and self._lose_after is not None and self._lose_after in data:
                    self._lose_after = None
                    awaited.set()
                elif not from_client and awaited.is_set():
                    self.lost.set()
                    self.cut()
                    return
                writer.write(data)
                await writer.drain()
        writer.close()
