"""`luciole demo`."""

import asyncio
import sys

import click

from luciole.cli.output import print_facts, print_json, span
from luciole.cli.progress import Progress


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the audit as JSON.")
@click.pass_context
def demo(ctx: click.Context, *, as_json: bool) -> None:
    """See it all in a minute, with a kill in the middle, and check the outcome.

    On an embedded store in a temporary folder: a few hundred schedules, a node process, an executor process that
    is killed with SIGKILL half-way, and another that takes over. The audit at the end computes every fire time anew
    and reads what became of it. Exits with 1 when a promise did not hold.
    """
    from luciole.demo.run import run_demo  # noqa: PLC0415 - its app is not for other commands
    from luciole.runtime.clock import SystemClock  # noqa: PLC0415 - same

    clock = SystemClock()
    progress = Progress(clock, to=sys.stderr)
    audit = asyncio.run(run_demo(clock=clock, say=progress.say, show=progress.show))
    progress.end()
    facts = {
        "schedules": audit.schedules,
        "fire times": audit.expected,
        "fired": audit.fired,
        "skipped by overlap": audit.skipped,
        "succeeded": audit.succeeded,
        "retried": audit.retried,
        "rescued": audit.rescued,
        "lost": audit.lost,
        "doubled": audit.doubled,
        "overlaps": audit.overlaps,
        "unfinished": audit.unfinished,
    }
    lags = {"lag p50": audit.lag_us(0.50), "lag p99": audit.lag_us(0.99)}
    if as_json:
        document = {name.replace(" ", "_"): count for name, count in facts.items()}
        document |= {f"{name.replace(' ', '_')}_us": lag for name, lag in lags.items()}
        print_json({**document, "problems": audit.problems, "held": audit.held})
        ctx.exit(int(not audit.held))
    click.echo()
    print_facts({name: f"{count:,}" for name, count in facts.items()} | {name: span(lag) for name, lag in lags.items()})
    click.echo()
    for problem in audit.problems:
        click.secho(problem, fg="red")
    if audit.held:
        click.secho("Every fire time has one outcome; nothing was lost, doubled or overlapped.", fg="green")
    else:
        click.secho("A promise did not hold.", fg="red", bold=True)
    ctx.exit(int(not audit.held))
