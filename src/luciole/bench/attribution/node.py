"""A node that keeps where the time of its event loop's thread goes; else it is what `luciole node` runs.

Run as `python -m luciole.bench.attribution.node`; it takes the options of `luciole node` that the bench uses, and keeps
its looks beside the address file.
"""

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from luciole.bench.attribution.threads import VERBS, ThreadLog, looks_path
from luciole.bench.loops import run_here
from luciole.bench.spans import pass_through
from luciole.limits import MS_US, SECOND_US
from luciole.node import Node
from luciole.running import running_node
from luciole.runtime.clock import SystemClock
from luciole.settings import load_settings
from luciole.wire import codec
from luciole.wiring import open_store

#: A look at least so often: what lies around an end of a window is cut by its share.
_BEAT_US = 10 * MS_US


@click.command()
@click.option("--listen", required=True)
@click.option("--address-file", type=click.Path(dir_okay=False, path_type=Path), required=True)
def node(listen: str, address_file: Path) -> None:
    """Run a node whose thread is looked at, until SIGTERM."""
    run_here(_serve(listen, address_file))


async def _serve(listen: str, address_file: Path) -> None:
    settings = load_settings(dsn=os.environ["LUCIOLE_DSN"], listen=listen)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    store = await open_store(settings.dsn)
    made: list[Node] = []
    log = ThreadLog(
        looks_path(address_file.parent, os.getpid()), SystemClock(), lambda: len(made[0].gateway.flights) if made else 0
    )
    try:
        watched = pass_through(store, {verb: log.verb(verb, getattr(store, verb)) for verb in VERBS})
        with _watched(log):
            async with running_node(settings, watched) as started:
                made.append(started)
                part = address_file.with_name(f"{address_file.name}.part")
                part.write_text(started.settings.listen or "", encoding="utf-8")
                part.replace(address_file)
                await stop.wait()
    finally:
        log.close()
        await store.close()


@contextmanager
def _watched(log: ThreadLog) -> Iterator[None]:
    """Look at what the codec and the collector do, and again and again."""
    plain = codec.encode, codec.decode
    codec.encode, codec.decode = log.step("encode", codec.encode), log.step("decode", codec.decode)
    gc.callbacks.append(log.collected)
    beating = asyncio.get_running_loop().create_task(_beat(log), name="bench-looks")
    try:
        yield
    finally:
        beating.cancel()
        gc.callbacks.remove(log.collected)
        codec.encode, codec.decode = plain


async def _beat(log: ThreadLog) -> None:
    while True:
        await asyncio.sleep(_BEAT_US / SECOND_US)
        log.look()


if __name__ == "__main__":
    node()
