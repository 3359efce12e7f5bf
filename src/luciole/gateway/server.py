"""The gateway on the network: executors dial in, each with one bidirectional stream of frames (gRPC)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from luciole import limits
from luciole.errors import InvalidValue, LucioleError, Unavailable
from luciole.runtime.extras import require
from luciole.wire.connection import Connection
from luciole.wire.messages import Message, Refuse
from luciole.wire.transport import CHANNEL_OPTIONS, METHOD, SERVICE, parse_address, refuse_bare_listening

with require("grpc"):
    import grpc
    import grpc.aio

    from luciole.wire import codec

_log: Final = logging.getLogger("luciole.gateway")

#: A second node on the same port is an error, not a silent half of the executors.
_OPTIONS: Final = (
    *CHANNEL_OPTIONS,
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", limits.KEEPALIVE_PAUSE_US // limits.MS_US // 2),
)


#: What reading and writing raise when the stream is gone; gRPC's own errors of a broken batch are no `RpcError`.
_GONE: Final = (grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError, RuntimeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where a gateway listens and how it proves who it is."""

    listen: str  #: "host:port"; port 0: the system chooses
    token: str | None = None  #: what executors show; checked by the sessions
    tls_cert: str | None = None  #: path of a PEM file: the certificate, then its chain
    tls_key: str | None = None  #: path of a PEM file


class GatewayServer:
    """Accepts executors over the network.

    Args:
        serve: runs the node's end of one connection until it ends (`Sessions.serve`).
        settings: where and how.

    Raises:
        InvalidValue: the address, or listening there without encryption and token, is refused.
    """

    def __init__(self, serve: Callable[[Connection], Awaitable[None]], settings: ServerSettings) -> None:
        self._serve = serve
        self._settings = settings
        self._listen = parse_address(settings.listen, field="listen")
        encrypted = settings.tls_cert is not None and settings.tls_key is not None
        refuse_bare_listening(self._listen, encrypted=encrypted, token=settings.token)
        self._server: grpc.aio.Server | None = None
        self.address = self._listen.text  #: where it listens; with the port that the system chose, once started

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            InvalidValue: the address can't be had, or the certificate can't be used.
        """
        server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=limits.SESSIONS_MAX)
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self._take)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        port = self._bind(server)
        await server.start()
        self._server = server
        self.address = self._listen.text if self._listen.port else self._listen.text[:-1] + str(port)
        _log.info("listening for executors on %s", self.address)

    async def stop(self, grace_us: int = 0) -> None:
        """Stop listening; connections that are not closed within the grace are cut. Safe to repeat."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(grace_us / limits.SECOND_US)

    def _bind(self, server: "grpc.aio.Server") -> int:
        where = self._listen.text
        try:
            if self._settings.tls_cert is None or self._settings.tls_key is None:
                port = server.add_insecure_port(where)
            else:
                pair = (_read(self._settings.tls_key, "tls_key"), _read(self._settings.tls_cert, "tls_cert"))
                port = server.add_secure_port(where, grpc.ssl_server_credentials([pair]))
        except RuntimeError as problem:
            raise InvalidValue(
                f"listen: {where} can't be had: another process may listen there, or tls_cert and tls_key "
                f"do not belong together ({problem})"
            ) from None
        return port

    async def _take(self, requests: object, context: "grpc.aio.ServicerContext[bytes, bytes]") -> None:
        del requests  # The context reads and writes.
        connection = ServerConnection(context)
        try:
            await self._serve(connection)
        finally:
            await connection.close()


class ServerConnection:
    """The node's end of one executor's stream."""

    def __init__(self, context: "grpc.aio.ServicerContext[bytes, bytes]") -> None:
        self._context = context
        self._closed = asyncio.get_running_loop().create_future()

    async def send(self, frame: Sequence[Message]) -> None:
        """Send one frame; waits while the network is slower.

        Raises:
            Unavailable: the stream is gone.
            InvalidValue: the frame has a value that has no form on the wire; nothing was sent.
        """
        for part in codec.encode(frame):
            if self._closed.done():
                raise Unavailable("the connection is closed")
            try:
                await self._context.write(part)
            except _GONE as problem:
                raise Unavailable(f"the connection of {self._context.peer()} is gone: {problem}") from None

    async def receive(self) -> Sequence[Message]:
        """Return the next frame; an empty one says that an end closed in order.

        Raises:
            Unavailable: the stream broke, or brought something malformed, of which its sender was told.
        """
        while not self._closed.done():
            read = asyncio.ensure_future(self._context.read())
            try:
                await asyncio.wait((read, self._closed), return_when=asyncio.FIRST_COMPLETED)
                if not read.done():
                    break
                encoded: object = read.result()
            except _GONE as problem:
                raise Unavailable(f"the connection of {self._context.peer()} broke: {problem}") from None
            finally:
                read.cancel()
            if not isinstance(encoded, bytes):  # grpc.aio.EOF
                break
            if frame := await self._decode(encoded):
                return frame  # One that holds nothing that this version knows would look like the end.
        return ()

    async def close(self) -> None:
        """End the stream; safe to repeat."""
        if not self._closed.done():
            self._closed.set_result(None)

    async def _decode(self, encoded: bytes) -> Sequence[Message]:
        try:
            return codec.decode(encoded)
        except LucioleError as problem:
            _log.warning("a malformed frame from %s: %s", self._context.peer(), problem)
            await self.send((Refuse(code=problem.code, message=str(problem)),))
            raise Unavailable(f"{self._context.peer()} sent a malformed frame: {problem}") from None


def _read(path: str, field: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise InvalidValue(f"{field}: {path} can't be read: {problem.strerror}") from None
