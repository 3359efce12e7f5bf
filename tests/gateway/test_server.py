"""The gateway on the network: real gRPC on loopback, with TLS, wrong tokens, noise, and a wire that is cut."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
import pytest

from luciole.errors import AuthenticationFailed, InvalidValue, ProtocolMismatch, Unavailable
from luciole.executor.connection import Dial
from luciole.executor.context import current
from luciole.executor.dial import GrpcDial
from luciole.executor.executor import Executor, ExecutorSettings
from luciole.executor.registry import HandlerRegistry
from luciole.gateway.server import GatewayServer, ServerConnection, ServerSettings
from luciole.limits import SECOND_US
from luciole.model.outbox import AttemptOutcome
from luciole.node import Node
from luciole.runtime.clock import SystemClock
from luciole.settings import Settings
from luciole.store.memory import MemoryState, MemoryStore
from luciole.wire import codec
from luciole.wire.messages import Drain, Grant, Hello, Message, Refuse, Welcome
from luciole.wire.transport import CHANNEL_OPTIONS, METHOD, SERVICE, parse_address, refuse_bare_listening
from tests.executor.scripted import ScriptedNode, a_key, an_attempt
from tests.gateway.network import Certificates, a_wire, free_port, make_certificates

HERE = "127.0.0.1:0"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"), "127.0.0.1", "localhost")


@asynccontextmanager
async def serving(node: ScriptedNode, settings: ServerSettings | None = None) -> AsyncIterator[GatewayServer]:
    server = GatewayServer(node.serve, settings or ServerSettings(listen=HERE))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def running(
    registry: HandlerRegistry,
    addresses: Sequence[str],
    dial: Dial | None = None,
    settings: ExecutorSettings | None = None,
) -> AsyncIterator["asyncio.Task[None]"]:
    executor = Executor(registry, clock=SystemClock(), settings=settings)
    task = asyncio.create_task(executor.run(dial or GrpcDial(), addresses))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def double(number: int) -> int:
    return 2 * number


@pytest.fixture
def registry() -> HandlerRegistry:
    handlers = HandlerRegistry()
    handlers.add("double", double)
    return handlers


@pytest.fixture
def node() -> ScriptedNode:
    return ScriptedNode(SystemClock())


async def doubled(node: ScriptedNode) -> bytes | None:
    return (await node.run(an_attempt("double", b'{"number":21}'))).result


async def test_an_execution_runs_over_the_network(registry: HandlerRegistry, node: ScriptedNode) -> None:
    async with serving(node) as server, running(registry, [server.address]):
        assert await doubled(node) == b"42"
    assert node.hellos[0].handlers == ("double",)


async def test_the_largest_results_travel_in_one_batch(node: ScriptedNode) -> None:
    """40 results of a MiB are far over what one frame may hold."""
    handlers = HandlerRegistry()
    handlers.add("large", lambda: "x" * 1_000_000)
    async with serving(node) as server, running(handlers, [server.address]):
        await node.until(lambda: node.credits >= 40)
        await node.deliver(*(an_attempt("large", number=number) for number in range(40)))
        await node.until(lambda: len(node.reports) == 40)
    assert {report.outcome for report in node.reports} == {AttemptOutcome.SUCCEEDED}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_an_execution_runs_over_tls(
    registry: HandlerRegistry, node: ScriptedNode, certificates: Certificates, host: str
) -> None:
    settings = ServerSettings(listen=f"{host}:0", tls_cert=certificates.cert, tls_key=certificates.key)
    async with serving(node, settings) as server, running(registry, [server.address], GrpcDial(certificates.ca)):
        assert await doubled(node) == b"42"


async def test_a_gateway_that_can_not_prove_who_it_is_gets_nothing(
    node: ScriptedNode, certificates: Certificates, tmp_path: Path
) -> None:
    """Goal: neither the token nor a payload goes to a stranger. Method: another authority's certificate, and none."""
    others = make_certificates(tmp_path, "127.0.0.1")
    settings = ServerSettings(listen=HERE, tls_cert=others.cert, tls_key=others.key)
    async with serving(node, settings) as server:
        with pytest.raises(Unavailable, match="no gateway answers"):
            await GrpcDial(certificates.ca)(server.address)
        with pytest.raises(Unavailable, match="no gateway answers"):
            await GrpcDial()(server.address)
    async with serving(node) as server:
        with pytest.raises(Unavailable, match="no gateway answers"):
            await GrpcDial(certificates.ca)(server.address)
    assert node.seen == []


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.7:7440", "scheduler.example:7440"])
@pytest.mark.parametrize(
    ("token", "encrypted", "named"),
    [
        (None, False, "tls_cert and tls_key and token"),
        ("secret", False, "tls_cert and tls_key"),
        (None, True, "token"),
    ],
)
async def test_nothing_listens_to_other_machines_without_encryption_and_token(
    node: ScriptedNode, certificates: Certificates, listen: str, token: str | None, named: str, *, encrypted: bool
) -> None:
    tls = (certificates.cert, certificates.key) if encrypted else (None, None)
    with pytest.raises(InvalidValue, match=rf"^listen: .*; set {named}, or listen on 127.0.0.1"):
        GatewayServer(node.serve, ServerSettings(listen=listen, token=token, tls_cert=tls[0], tls_key=tls[1]))
    refuse_bare_listening(parse_address(listen, field="listen"), encrypted=True, token="secret")


@pytest.mark.parametrize("text", ["", "7440", "host:", ":7440", "host:x", "host:70000", "::1:7440", "host:٣"])
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidValue, match=r"^nodes: .*write "):
        parse_address(text, field="nodes")


async def test_a_port_that_is_taken_is_refused_by_name(node: ScriptedNode) -> None:
    async with serving(node) as server:
        second = GatewayServer(node.serve, ServerSettings(listen=server.address))
        with pytest.raises(InvalidValue, match=r"^listen: .* can't be had"):
            await second.start()


async def test_a_certificate_that_can_not_be_read_is_refused_by_name(node: ScriptedNode, tmp_path: Path) -> None:
    missing = str(tmp_path / "none.pem")
    server = GatewayServer(node.serve, ServerSettings(listen=HERE, tls_cert=missing, tls_key=missing))
    with pytest.raises(InvalidValue, match=r"^tls_key: .* can't be read: No such file"):
        await server.start()
    with pytest.raises(InvalidValue, match=r"^tls_ca: .* can't be read: No such file"):
        GrpcDial(missing)


async def test_a_key_that_does_not_belong_to_the_certificate_is_refused_by_name(
    node: ScriptedNode, certificates: Certificates, tmp_path: Path
) -> None:
    others = make_certificates(tmp_path, "127.0.0.1")
    server = GatewayServer(node.serve, ServerSettings(listen=HERE, tls_cert=certificates.cert, tls_key=others.key))
    with pytest.raises(InvalidValue, match=r"^listen: .* tls_cert and tls_key do not belong together"):
        await server.start()


@asynccontextmanager
async def a_real_node(token: str | None = None) -> AsyncIterator[tuple[Node, str]]:
    """Serve with the sessions of a node whose loops do not run: here only the talk with executors matters."""
    clock = SystemClock()
    node = Node(Settings(token=token), MemoryStore(MemoryState(), clock))
    now_us = clock.monotonic_us()
    node.store_clock.observe(clock.now_us(), sent_us=now_us, received_us=now_us)
    server = GatewayServer(node.sessions.serve, ServerSettings(listen=HERE, token=token))
    await server.start()
    try:
        yield node, server.address
    finally:
        await server.stop()


@pytest.mark.parametrize("shown", [None, "", "wrong", "secre", "secret "])
async def test_a_wrong_token_ends_the_executor_with_a_clear_error(registry: HandlerRegistry, shown: str | None) -> None:
    async with a_real_node("secret") as (node, address):
        async with running(registry, [address], settings=ExecutorSettings(token=shown)) as executor:
            with pytest.raises(AuthenticationFailed, match=r"^token: "):
                await executor
        assert node.sessions.by_executor == {}


async def test_the_right_token_is_let_in(registry: HandlerRegistry) -> None:
    async with a_real_node("secret") as (_, address):
        connection = await GrpcDial()(address)
        await connection.send((Hello(executor_id="e" * 16, handlers=registry.names(), slots=1, token="secret"),))
        assert isinstance((await connection.receive())[0], Welcome)
        await connection.close()


async def test_a_version_without_overlap_is_refused_with_both_ranges() -> None:
    async with a_real_node() as (_, address):
        connection = await GrpcDial()(address)
        await connection.send((Hello(executor_id="e" * 16, handlers=(), slots=1, protocol_min=98, protocol_max=99),))
        (refusal,) = await connection.receive()
        assert isinstance(refusal, Refuse)
        assert refusal.code == ProtocolMismatch.code
        assert "98 to 99" in refusal.message
        assert await connection.receive() == ()
        await connection.close()


async def raw_call(address: str, *parts: bytes) -> list[Message]:
    """Send bytes as they are, and return what comes back until the gateway ends the stream."""
    answers: list[Message] = []
    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(f"/{SERVICE}/{METHOD}")()
        for part in parts:
            await call.write(part)
        while isinstance(answer := await call.read(), bytes):
            answers += codec.decode(answer)
    return answers


async def test_noise_ends_its_own_session_and_no_other() -> None:
    """Goal: a malformed frame is answered with what is wrong, and the server goes on for everybody else."""
    hello = codec.encode([Hello(executor_id="f" * 16, handlers=(), slots=1)])[0]
    async with a_real_node() as (node, address):
        good = await GrpcDial()(address)
        await good.send((Hello(executor_id="e" * 16, handlers=("double",), slots=1),))
        assert isinstance((await good.receive())[0], Welcome)
        for noise in (b"\xff\xff", b"GET / HTTP/1.1\r\n\r\n", hello[:-3]):
            (refusal,) = await raw_call(address, noise)
            assert isinstance(refusal, Refuse)
            assert refusal.code == ProtocolMismatch.code
        welcome, refusal = await raw_call(address, hello, b"\x0a\x04noise")
        assert isinstance(welcome, Welcome)
        assert isinstance(refusal, Refuse)
        await good.send((Grant(credits=1),))
        assert set(node.sessions.by_executor) == {"e" * 16}
        await good.close()


async def test_a_node_that_closes_says_so_in_order(registry: HandlerRegistry) -> None:
    async with a_real_node() as (node, address):
        connection = await GrpcDial()(address)
        await connection.send((Hello(executor_id="e" * 16, handlers=registry.names(), slots=1),))
        assert isinstance((await connection.receive())[0], Welcome)
        await node.sessions.close()
        assert await connection.receive() == ()
        await connection.close()


async def test_an_executor_waits_for_a_node_that_is_not_there_yet(
    registry: HandlerRegistry, node: ScriptedNode
) -> None:
    address = f"127.0.0.1:{free_port()}"
    async with running(registry, [address]), serving(node, ServerSettings(listen=address)):
        assert await doubled(node) == b"42"


async def test_a_run_survives_a_cut_wire_and_is_announced(node: ScriptedNode) -> None:
    """Goal: what runs goes on while the network is away. Method: cut the wire, refuse once, then let it through."""
    started = asyncio.Event()
    release = asyncio.Event()
    attempts: list[int] = []

    async def handler() -> str:
        attempts.append(current().attempt)
        started.set()
        await release.wait()
        return "done"

    handlers = HandlerRegistry()
    handlers.add("h", handler)
    settings = ExecutorSettings(own_loop=False)
    async with serving(node) as server, a_wire(server.address) as wire:
        async with running(handlers, [wire.address], settings=settings):
            await node.until(lambda: node.credits > 0)
            await node.deliver(an_attempt("h"))
            await started.wait()
            wire.open = False
            wire.cut()
            await wire.refused.wait()
            wire.open = True
            await node.until(lambda: len(node.hellos) == 2)
            release.set()
            report = await node.next_report()
        assert report.result == b'"done"'
        assert [held.key for held in node.hellos[1].held] == [a_key()]
        assert attempts == [1]


async def test_a_silent_wire_is_left_and_what_ran_over_it_is_handed_back(node: ScriptedNode) -> None:
    """Goal: told nothing for the session's lease, an executor ends its runs: the node may have given them away.

    Method: a wire that swallows everything without an error, as a firewall does; a second node hears the report.
    """
    node.ttl_us = SECOND_US
    other = ScriptedNode(SystemClock(), "b" * 16)
    started = asyncio.Event()
    ended = asyncio.Event()

    async def handler() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    handlers = HandlerRegistry()
    handlers.add("h", handler)
    settings = ExecutorSettings(own_loop=False)
    async with (
        serving(node) as server,
        serving(other) as second,
        a_wire(server.address) as wire,
        running(handlers, [wire.address, second.address], settings=settings),
    ):
        await node.until(lambda: node.credits > 0)
        await other.until(lambda: other.hellos)
        await node.deliver(an_attempt("h"))
        await started.wait()
        wire.passes.clear()
        report = await other.next_report()
        assert ended.is_set()
    assert (report.outcome, report.key) == (AttemptOutcome.RETURNED, a_key())
    assert report.error == "no node answered for the session's lease: the run was ended"
    assert report.started_us is not None


class BrokenContext:
    """A stream whose peer was killed, as gRPC tells of it in the middle of a batch."""

    async def write(self, part: bytes) -> None:
        del part
        raise grpc.aio.InternalError("Failed execute_batch")

    async def read(self) -> bytes:
        raise grpc.aio.InternalError("Failed execute_batch")

    def peer(self) -> str:
        return "ipv4:127.0.0.1:1"


async def test_a_stream_that_breaks_in_the_middle_of_a_batch_is_gone() -> None:
    """GRPC has a family of errors for it that are none of its `RpcError`."""
    connection = ServerConnection(cast("Any", BrokenContext()))
    with pytest.raises(Unavailable, match="is gone"):
        await connection.send((Drain(grace_us=0),))
    with pytest.raises(Unavailable, match="broke"):
        await connection.receive()
