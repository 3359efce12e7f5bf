"""`luciole up`."""

import asyncio
from typing import TYPE_CHECKING

import click

from luciole.cli.options import load_app
from luciole.cli.run import hide_passwords
from luciole.cli.serving import serve, set_up_logging, verbose_option, wait_for_store_option

if TYPE_CHECKING:
    from luciole.app import App
    from luciole.node import Node
    from luciole.settings import Settings


@click.command()
@click.argument("app", metavar="APP")
@click.option("--dsn", metavar="DSN", help="The store, instead of the app's own.")
@click.option("--slots", type=click.IntRange(1), help="Executions at once; default 100.")
@click.option("--listen", metavar="HOST:PORT", help="Take executors of other processes, too.")
@click.option("--drain-grace", metavar="DURATION", help="What running executions get when it is told to stop.")
@wait_for_store_option
@verbose_option
def up(
    app: str,
    dsn: str | None,
    slots: int | None,
    listen: str | None,
    drain_grace: str | None,
    wait_for_store: str | None,
    *,
    verbose: bool,
) -> None:
    """Run APP (module:attribute): node, gateway and executor in one process.

    Its schedules are declared first. SIGINT and SIGTERM let it drain: what runs may end, what waits stays in the store.
    """
    from luciole.running import run_app  # noqa: PLC0415 - same
    from luciole.settings import load_settings  # noqa: PLC0415 - `--help` needs no settings

    set_up_logging(verbose=verbose)
    found = load_app(app)
    settings = load_settings(
        dsn=dsn or found.dsn,
        namespace=found.namespace,
        slots=slots,
        listen=listen,
        drain_grace=drain_grace,
        wait_for_store=wait_for_store,
    )

    async def run(stop: asyncio.Event) -> None:
        await run_app(found, settings, stop=stop, started=lambda node: _tell(node, found, settings))

    serve(run)


def _tell(node: "Node", app: "App", settings: "Settings") -> None:
    where = hide_passwords(settings.dsn)
    what = f"{len(app.jobs)} jobs, {len(app.declarations)} schedules"
    click.echo(f"luciole: node {node.node_id} runs {app.name} ({what}) on {where}; Ctrl-C drains", err=True)
