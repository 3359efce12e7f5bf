"""`bench run burst`."""

from typing import Any

import click
import msgspec

from luciole.bench.burst.run import BurstMeasure
from luciole.bench.burst.spec import SCHEDULERS, BurstSpec
from luciole.bench.cli.options import (
    PLAN_AHEAD,
    backend_of,
    chosen_of,
    looking,
    measured,
    plan_ahead_us,
    progress,
    shared,
    watch_of,
)
from luciole.bench.profiles.burst import BURST
from luciole.bench.verdict import Usage
from luciole.runtime.clock import SystemClock


@click.command(help=BURST.question)
@shared
@click.option("--jobs", type=click.IntRange(min=1), help="Schedules that are due at once.")
@click.option("--shards", type=click.IntRange(1, 4_096), default=32, show_default=True)
@click.option(
    "--schedulers", type=click.IntRange(1, 64), help="Processes that plan.  [default: 1; contention: 2; flap: 3]"
)
@click.option(
    "--topology",
    type=click.Choice(list(SCHEDULERS)),
    default="partitioned",
    show_default=True,
    help="Each shard has one scheduler; or all share every lease and only compare-and-set decides; or former holders "
    "keep writing under their outdated fences; or shards change hands and one scheduler is killed in the middle.",
)
@click.option(
    "--path",
    type=click.Choice(["batch", "single"]),
    default="batch",
    show_default=True,
    help="Chunks as the product makes them, or one transaction a job: the runnable 'before'.",
)
@click.option(
    "--start",
    type=click.Choice(["cold", "warm"]),
    default="cold",
    show_default=True,
    help="The plan loop opens at the instant, or it runs already.",
)
@PLAN_AHEAD
@click.option("--batch", type=click.IntRange(1, 2_000), help="The floor of a chunk.  [default: the product's]")
@click.option("--batch-max", type=click.IntRange(1, 2_000), help="The most of a chunk.  [default: the store's]")
@click.option("--connections", type=click.IntRange(1, 64), help="Chunks in flight.  [default: the store's]")
@click.option("--reporters", type=click.IntRange(1, 64), default=4, show_default=True)
@click.option("--report-batch", type=click.IntRange(1, 1_000), default=500, show_default=True)
@click.option("--pool", type=click.IntRange(1, 64), help="Connections for each purpose; fewer make calls queue.")
@looking
@click.option("--ceiling", type=click.Choice(["full", "short", "none"]), help="How widely the ceiling is searched.")
def burst(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the burst profile; return the exit code."""
    chosen = chosen_of(BURST, options)
    spec = _spec(options, chosen)
    backend = backend_of(options)
    clock = SystemClock()
    measure = BurstMeasure(
        spec,
        backend,
        repeats=chosen["repeats"],
        ceiling=chosen["ceiling"],
        clock=clock,
        progress=progress,
        watch=watch_of(options),
    )
    requested = {**msgspec.to_builtins(spec), **chosen}
    return measured(BURST, backend, measure, requested, options)


def _spec(options: dict[str, Any], chosen: dict[str, Any]) -> BurstSpec:
    """Return what the options ask for.

    Raises:
        Usage: they contradict each other.
    """
    topology = options["topology"]
    schedulers = options["schedulers"] or SCHEDULERS[topology]
    ahead_us = plan_ahead_us(options["plan_ahead"])
    if ahead_us and options["start"] != "warm":
        raise Usage("--plan-ahead: only a plan loop that runs can plan ahead; add --start warm")
    if topology == "zombie" and options["start"] != "cold":
        raise Usage("--start: former holders are let loose at the instant; choose cold with --topology zombie")
    if topology == "flap" and schedulers < SCHEDULERS["flap"]:
        raise Usage("--schedulers: one is killed and shards move between the others; flap takes at least 3")
    given = {name: options[name] for name in BurstSpec.__struct_fields__ if name in options}
    whole = given | chosen | {"schedulers": schedulers, "plan_ahead_us": ahead_us}
    return msgspec.convert({name: whole[name] for name in BurstSpec.__struct_fields__ if name in whole}, BurstSpec)
