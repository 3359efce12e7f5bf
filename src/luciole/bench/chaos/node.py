"""A node that trusts its leases for ever: with it only the store's fence stands between two holders.

Run as `python -m luciole.bench.chaos.node`; it takes the options of `luciole node` that the bench uses.
"""

import asyncio
import os
import signal
from pathlib import Path

import click

from luciole.bench.loops import run_here
from luciole.node import Surroundings
from luciole.running import running_node
from luciole.settings import load_settings
from luciole.wiring import open_store


@click.command()
@click.option("--listen", required=True)
@click.option("--address-file", type=click.Path(dir_okay=False, path_type=Path), required=True)
def node(listen: str, address_file: Path) -> None:
    """Run a node whose own deadline check is off, until SIGTERM."""
    run_here(_serve(listen, address_file))


async def _serve(listen: str, address_file: Path) -> None:
    settings = load_settings({}, dsn=os.environ["LUCIOLE_DSN"], listen=listen)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    store = await open_store(settings.dsn)
    try:
        async with running_node(settings, store, surroundings=Surroundings(ignore_deadline=True)) as started:
            part = address_file.with_name(f"{address_file.name}.part")
            part.write_text(started.settings.listen or "", encoding="utf-8")
            part.replace(address_file)
            await stop.wait()
    finally:
        await store.close()


if __name__ == "__main__":
    node()
