"""Count how often the bytes of a payload are copied on their way from the caller to the handler and back.

usage: .venv/bin/python scripts/count_copies.py [--backend sqlite|postgres] [--payload BYTES] [--jobs COUNT]

It compiles copies.c and starts itself again with that in front of the C library, so that each memcpy and memmove of
this process counts, whichever library calls it. One figure is bytes copied for each byte of payload. What the kernel
copies (a socket or a file: one in, one out), what a database server does, and realloc do not count. Needs Linux and a
C compiler.
"""

import argparse
import asyncio
import ctypes
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from luciole import limits
from luciole.bench.backends import Backend, make_backend
from luciole.bench.stores import open_fresh
from luciole.executor.dial import GrpcDial
from luciole.gateway.local import LocalGateway
from luciole.gateway.server import GatewayServer, ServerSettings
from luciole.model.execution import EnqueueRequest, ExecutionState
from luciole.model.ids import NO_SCHEDULE, ExecutionKey
from luciole.model.job import JobSpec
from luciole.model.outbox import AttemptOutcome, Entry, Report, Settlement
from luciole.store.spi import Store
from luciole.wire import codec
from luciole.wire.calls import JSON, CallCodec
from luciole.wire.connection import Connection
from luciole.wire.messages import Deliver, Delivered, Message, Reports

SOURCE = Path(__file__).parent / "copies.c"
FLAGS = ("-O2", "-shared", "-fPIC", "-fno-builtin", "-fno-tree-loop-distribute-patterns")
#: Smaller copies are not of payloads.
LEAST_BYTES: Final = 1_024
SHARDS: Final = 32
#: What is so little is no copy of a payload.
NOTHING: Final = 0.01


class Copies:
    """What the preloaded library has counted."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)

    def reset(self) -> None:
        """Count from here on."""
        self._library.copies_reset(ctypes.c_size_t(LEAST_BYTES))

    def by_place(self) -> Counter[str]:
        """Return the bytes copied since, by library."""
        found: Counter[str] = Counter()
        library, function, count = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_size_t()
        outs = [ctypes.byref(each) for each in (library, function, count)]
        at = 0
        while self._library.copies_place(ctypes.c_size_t(at), *outs):
            if count.value:
                found[_short(library.value or b"")] += count.value
            at += 1
        return found


def _short(library: bytes) -> str:
    return Path(library.decode()).name.partition(".")[0]


@dataclass
class Table:
    """Bytes copied in each step, by library, for each byte of payload."""

    bytes_: int  #: of all payloads of a step
    copies: Copies
    steps: dict[str, Mapping[str, float]] = field(default_factory=dict)

    async def count(self, step: str, work: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 - whatever it returns
        """Do a step and count."""
        self.copies.reset()
        result = await work()
        self.steps[step] = {place: count / self.bytes_ for place, count in self.copies.by_place().items()}
        return result

    def lines(self, *, by_place: bool) -> Iterator[str]:
        """Yield the table as Markdown."""
        yield "| step | copies |" + (" by |" if by_place else "")
        yield "|---|---|" + ("---|" if by_place else "")
        for step, places in self.steps.items():
            named = ", ".join(f"{place} {count:.2f}" for place, count in sorted(places.items()) if count >= NOTHING)
            yield f"| {step} | {sum(places.values()):.2f} |" + (f" {named} |" if by_place else "")


#: The node's end of a connection, and the executor's.
Wire: TypeAlias = tuple[Connection, Connection]


def echo(text: str) -> str:
    """Return its argument: the handler whose calls are counted."""
    return text


async def measure(store: Store, payload_bytes: int, jobs: int, copies: Copies) -> Table:
    """Take jobs the whole way, step by step."""
    calls = CallCodec("echo", echo)
    texts = [f"{number:09d}" + "x" * (payload_bytes - 20) for number in range(jobs)]
    table = Table(payload_bytes * jobs, copies)
    (job_id,) = await store.intern_jobs([JobSpec(handler="echo")])
    await _enqueued(store, job_id, [b"{}"] * jobs)  # Statements are prepared, and buffers of the driver made.
    await store.ready_entries(range(SHARDS), limits.INSTANT_MAX_US, limit=jobs)

    payloads = await table.count("call as bytes", lambda: _now(lambda: [calls.encode((text,), {}) for text in texts]))
    await table.count("enqueued", lambda: _enqueued(store, job_id, payloads))
    found = await table.count(
        "found", lambda: store.ready_entries(range(SHARDS), limits.INSTANT_MAX_US, limit=limits.HELD_MAX)
    )
    entries = [entry for entry in found.entries if len(entry.payload or b"") > LEAST_BYTES]
    out = [Deliver(attempts=tuple(map(_delivered, entries)))]
    reports: Sequence[Report] = ()
    async with wires(out) as connections:
        for name, wire in connections.items():
            reports = await _there_and_back(name, wire, out, calls, table)
    frames = await table.count("frame as bytes", lambda: _now(lambda: codec.encode(out)))
    await table.count("bytes as frame", lambda: _now(lambda: [codec.decode(frame) for frame in frames]))
    await table.count("settled", lambda: store.settle([_settlement(report) for report in reports]))
    views = await table.count("read", lambda: _views(store, [report.key for report in reports]))
    ended = await table.count(
        "bytes as result", lambda: _now(lambda: [calls.decode_result(view.result) for view in views])
    )
    assert sorted(ended) == texts
    return table


async def _there_and_back(
    name: str, wire: Wire, out: Sequence[Message], calls: CallCodec, table: Table
) -> Sequence[Report]:
    """Deliver, call the handler, and report."""
    got = await table.count(f"there, {name}", lambda: _passed(wire, out))
    called = [each for message in got for each in message.attempts]
    args = await table.count("bytes as call", lambda: _now(lambda: [calls.decode(each.payload)[0] for each in called]))
    results = await table.count(
        "result as bytes", lambda: _now(lambda: [calls.encode_result(each[0]) for each in args])
    )
    done = tuple(_reported(one, result) for one, result in zip(called, results, strict=True))
    heard = await table.count(f"back, {name}", lambda: _passed(wire, [Reports(reports=done)]))
    return [report for message in heard for report in message.reports]


async def _now(work: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
    return work()


async def _enqueued(store: Store, job_id: int, payloads: Sequence[bytes]) -> None:
    ids = await store.take_ids(len(payloads))
    await store.enqueue(
        [
            EnqueueRequest(
                request_id=ids.first + place, shard=place % SHARDS, job_id=job_id, payload=payload, content_type=JSON
            )
            for place, payload in enumerate(payloads)
        ]
    )


async def _views(store: Store, keys: Sequence[ExecutionKey]) -> list[Any]:
    return [await store.get_execution(key) for key in keys]


async def _passed(wire: Wire, frame: Sequence[Message]) -> list[Any]:
    """Send over one end; return what comes out at the other, however many frames it took."""
    here, there = wire if isinstance(frame[0], Deliver) else wire[::-1]
    sending = asyncio.ensure_future(here.send(frame))
    got: list[Any] = []
    while _count(got) < _count(frame):
        got += await there.receive()
    await sending
    return got


def _count(messages: Sequence[Any]) -> int:
    return sum([len(one.attempts if isinstance(one, Deliver) else one.reports) for one in messages])


@asynccontextmanager
async def wires(warm: Sequence[Message]) -> AsyncIterator[dict[str, Wire]]:
    """Both ways between a node and an executor."""
    node_ends: asyncio.Queue[Connection] = asyncio.Queue()
    done = asyncio.Event()

    async def serve(connection: Connection) -> None:
        await node_ends.put(connection)
        await done.wait()

    local, server = LocalGateway(serve), GatewayServer(serve, ServerSettings(listen="127.0.0.1:0"))
    await server.start()
    try:
        local_there = await local.connect()
        local_here = await node_ends.get()
        grpc_there = await GrpcDial()(server.address)
        grpc_here = await node_ends.get()
        await _passed((grpc_here, grpc_there), warm)
        yield {"in one process": (local_here, local_there), "by gRPC": (grpc_here, grpc_there)}
        await grpc_there.close()
    finally:
        done.set()
        await local.close()
        await server.stop()


def _delivered(entry: Entry) -> Delivered:
    assert entry.payload is not None
    key = entry.key
    return Delivered(key, entry.attempt, "echo", entry.payload, JSON, key.fire_us, entry.due_us, None, None, None)


def _reported(one: Delivered, result: bytes) -> Report:
    return Report(one.key, one.attempt, AttemptOutcome.SUCCEEDED, one.due_us, one.due_us, result, JSON)


def _settlement(report: Report) -> Settlement:
    assert report.key.schedule_id == NO_SCHEDULE
    return Settlement(
        report.key,
        report.attempt,
        ExecutionState.SUCCEEDED,
        report.outcome,
        report.started_us,
        report.finished_us,
        "e",
        report.result,
        report.result_type,
    )


async def _main(backend: Backend, payload_bytes: int, jobs: int, copies: Copies) -> Table:
    place = await backend.fresh()
    store = await open_fresh(place, shards=SHARDS)
    try:
        return await measure(store, payload_bytes, jobs, copies)
    finally:
        await store.close()
        await backend.remove(place)


def main(arguments: Sequence[str]) -> None:
    """Compile, start again with the counter, measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--backend", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--payload", type=int, default=1_000_000, metavar="BYTES")
    parser.add_argument("--jobs", type=int, default=1, metavar="COUNT")
    parser.add_argument("--by-place", action="store_true", help="also by the library that copies")
    chosen = parser.parse_args(arguments)
    if "LUCIOLE_COPIES" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "copies.so"
            subprocess.run(["cc", *FLAGS, "-o", library, SOURCE, "-ldl"], check=True)
            environment = {**os.environ, "LD_PRELOAD": str(library), "LUCIOLE_COPIES": "1"}
            done = subprocess.run([sys.executable, __file__, *arguments], check=False, env=environment)
        sys.exit(done.returncode)
    del os.environ["LD_PRELOAD"]  # Of this process alone.
    with make_backend(chosen.backend, dsn=None, programs="wheel", settings={}, folder=None) as backend:
        table = asyncio.run(_main(backend, chosen.payload, chosen.jobs, Copies()))
    print(f"{chosen.backend}, {chosen.jobs} of {chosen.payload:,} bytes, copies for each byte of payload:\n")
    for line in table.lines(by_place=chosen.by_place):
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
