"""`luciole executor`."""

import asyncio
from typing import TYPE_CHECKING

import click

from luciole.cli.options import load_app
from luciole.cli.serving import serve, set_up_logging, verbose_option
from luciole.errors import InvalidValue

if TYPE_CHECKING:
    from luciole.executor.executor import Executor


@click.command()
@click.argument("app", metavar="APP")
@click.option("--node", "nodes", multiple=True, metavar="HOST:PORT", help="A node; repeatable. It tells of the others.")
@click.option("--slots", type=click.IntRange(1), help="Executions at once; default 100.")
@click.option("--processes", type=click.IntRange(1), help="For CPU-bound handlers; default: one a processor.")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="What it offers to jobs; repeatable.")
@click.option("--token", envvar="LUCIOLE_TOKEN", show_envvar=True, help="The secret that the nodes want to see.")
@click.option("--tls-ca", metavar="FILE", help="PEM: the authorities that vouch for nodes; default: the system's.")
@click.option("--drain-grace", metavar="DURATION", help="What running executions get when it is told to stop.")
@click.option("--declare/--no-declare", default=True, help="Store the app's schedules first; default: yes.")
@verbose_option
def executor(  # noqa: PLR0913 - one parameter for each option
    app: str,
    nodes: tuple[str, ...],
    slots: int | None,
    processes: int | None,
    labels: tuple[str, ...],
    token: str | None,
    tls_ca: str | None,
    drain_grace: str | None,
    *,
    declare: bool,
    verbose: bool,
) -> None:
    """Run the handlers of APP (module:attribute) for nodes elsewhere.

    It dials out and needs no port of its own. The store is only needed to declare schedules, and by handlers that
    enqueue.
    """
    from luciole.running import run_executor  # noqa: PLC0415 - `--help` needs no executor
    from luciole.settings import load_settings  # noqa: PLC0415 - same

    set_up_logging(verbose=verbose)
    found = load_app(app)
    settings = load_settings(
        namespace=found.namespace,
        nodes=",".join(nodes) or None,
        slots=slots,
        processes=processes,
        labels=",".join(labels) or None,
        token=token,
        tls_ca=tls_ca,
        drain_grace=drain_grace,
    )
    if not settings.nodes:
        raise InvalidValue("--node: name at least one node, such as --node 127.0.0.1:7450, or set LUCIOLE_NODES")

    def tell(started: "Executor") -> None:
        what = f"{len(found.jobs)} jobs of {found.name}"
        click.echo(f"luciole: executor {started.executor_id} runs {what} for {settings.nodes}", err=True)

    async def run(stop: asyncio.Event) -> None:
        await run_executor(found, settings, stop=stop, started=tell, declares=declare)

    serve(run)
