"""`luciole node`."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from luciole.cli.options import dsn_option
from luciole.cli.run import hide_passwords
from luciole.cli.serving import serve, set_up_logging, verbose_option, wait_for_store_option

if TYPE_CHECKING:
    from luciole.node import Node


@click.command()
@dsn_option
@click.option("--listen", metavar="HOST:PORT", help="Where executors connect; port 0: the system chooses.")
@click.option("--advertise", metavar="HOST:PORT", help="How executors reach it, when not by --listen.")
@click.option("--address-file", type=click.Path(dir_okay=False, path_type=Path), help="Write the address there.")
@click.option("--token", envvar="LUCIOLE_TOKEN", show_envvar=True, help="The secret that executors show.")
@click.option("--tls-cert", metavar="FILE", help="PEM: the certificate and its chain; needed beyond loopback.")
@click.option("--tls-key", metavar="FILE", help="PEM: its private key.")
@click.option("--drain-grace", metavar="DURATION", help="What running executions get when it is told to stop.")
@wait_for_store_option
@verbose_option
def node(  # noqa: PLR0913, PLR0917 - one parameter for each option
    dsn: str,
    listen: str | None,
    advertise: str | None,
    address_file: Path | None,
    token: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    drain_grace: str | None,
    wait_for_store: str | None,
    *,
    verbose: bool,
) -> None:
    """Run a node: plan what is due and deliver it to executors.

    Any number of nodes may share a store; they share its shards, and take over those of one that dies. Each setting has
    an environment variable, too: see docs/settings.md.
    """
    from luciole.running import run_node  # noqa: PLC0415 - `--help` needs no engine
    from luciole.settings import load_settings  # noqa: PLC0415 - same

    set_up_logging(verbose=verbose)
    settings = load_settings(
        dsn=dsn,
        listen=listen or os.environ.get("LUCIOLE_LISTEN") or "127.0.0.1:0",
        advertise=advertise,
        token=token,
        tls_cert=tls_cert,
        tls_key=tls_key,
        drain_grace=drain_grace,
        wait_for_store=wait_for_store,
    )

    def tell(started: "Node", address: str) -> None:
        if address_file is not None:
            _write(address_file, address)
        click.echo(f"luciole: node {started.node_id} listens on {address}, store {hide_passwords(dsn)}", err=True)

    async def run(stop: asyncio.Event) -> None:
        await run_node(settings, stop=stop, started=tell)

    serve(run)


def _write(file: Path, address: str) -> None:
    """Write the address so that whoever waits for the file never reads half of it."""
    part = file.with_name(f"{file.name}.part")
    part.write_text(f"{address}\n", encoding="utf-8")
    part.replace(file)
