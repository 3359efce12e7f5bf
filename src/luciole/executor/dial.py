"""Out to the nodes over the network: an executor opens the connection, so that nothing has to reach it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from luciole.errors import InvalidValue, Unavailable
from luciole.runtime.extras import require
from luciole.wire.messages import Message
from luciole.wire.transport import CHANNEL_OPTIONS, METHOD, SERVICE, parse_address

with require("grpc"):
    import grpc
    import grpc.aio

    from luciole.wire import codec

_PATH: Final = f"/{SERVICE}/{METHOD}"

#: The pauses between attempts are ours: a channel that shares gRPC's memory of a failure would wait a second first.
_OPTIONS: Final = (*CHANNEL_OPTIONS, ("grpc.use_local_subchannel_pool", 1))


#: What reading and writing raise when the stream is gone; gRPC's own errors of a broken batch are no `RpcError`.
_GONE: Final = (grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError)


class GrpcDial:
    """Opens connections to gateways; what `Executor.run` is given.

    Beyond loopback every connection is encrypted, and the gateway has to prove who it is. On loopback it is so when
    `tls_ca` is set.

    Args:
        tls_ca: path of a PEM file with the authorities to trust; None: those of the system.

    Raises:
        InvalidValue: the file can't be read.
    """

    def __init__(self, tls_ca: str | None = None) -> None:
        try:
            self._authorities = None if tls_ca is None else Path(tls_ca).read_bytes()
        except OSError as problem:
            raise InvalidValue(f"tls_ca: {tls_ca} can't be read: {problem.strerror}") from None

    async def __call__(self, address: str) -> "ClientConnection":
        """Open a connection.

        Args:
            address: "host:port" of a gateway.

        Raises:
            Unavailable: nobody answers there, or nobody who can prove to be trusted.
            InvalidValue: it is no address.
        """
        where = parse_address(address, field="nodes")
        if where.loopback and self._authorities is None:
            channel = grpc.aio.insecure_channel(where.text, options=_OPTIONS)
        else:
            proofs = grpc.ssl_channel_credentials(root_certificates=self._authorities)
            channel = grpc.aio.secure_channel(where.text, proofs, options=_OPTIONS)
        call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(_PATH)()
        try:
            await call.wait_for_connection()
        except _GONE as problem:
            await channel.close()
            raise Unavailable(f"no gateway answers at {where.text}: {_details(problem)}") from None
        except BaseException:
            await channel.close()
            raise
        return ClientConnection(where.text, channel, call)


class ClientConnection:
    """The executor's end of its stream to one node."""

    def __init__(
        self, address: str, channel: "grpc.aio.Channel", call: "grpc.aio.StreamStreamCall[bytes, bytes]"
    ) -> None:
        self._address = address
        self._channel = channel
        self._call = call

    async def send(self, frame: Sequence[Message]) -> None:
        """Send one frame; waits while the network is slower.

        Raises:
            Unavailable: the stream is gone.
        """
        for part in codec.encode(frame):
            try:
                await self._call.write(part)
            except _GONE as problem:
                raise Unavailable(f"the connection to {self._address} is gone: {_details(problem)}") from None

    async def receive(self) -> Sequence[Message]:
        """Return the next frame; an empty one says that the node closed in order.

        Raises:
            Unavailable: the stream broke.
            ProtocolMismatch: what came is no frame.
            InvalidValue: what came is over a limit.
        """
        while True:
            try:
                encoded: object = await self._call.read()
                if not isinstance(encoded, bytes):  # grpc.aio.EOF
                    code = await self._call.code()
                    if code is grpc.StatusCode.OK:
                        return ()
                    raise Unavailable(f"the connection to {self._address} broke: {code.name}")
            except _GONE as problem:
                raise Unavailable(f"the connection to {self._address} broke: {_details(problem)}") from None
            if frame := codec.decode(encoded):
                return frame  # One that holds nothing that this version knows would look like the end.

    async def close(self) -> None:
        """End the stream; safe to repeat."""
        self._call.cancel()
        await self._channel.close()


def _details(problem: Exception) -> str:
    return str(problem.details()) if isinstance(problem, grpc.aio.AioRpcError) else str(problem)
