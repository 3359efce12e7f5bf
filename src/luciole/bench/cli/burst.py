"""`bench run burst`."""

from typing import Any

import click
import msgspec

from luciole.bench.burst.run import BurstMeasure
from luciole.bench.burst.spec import BurstSpec
from luciole.bench.cli.options import backend_of, chosen_of, end, finish, progress, run_of, shared
from luciole.bench.profiles.burst import BURST
from luciole.bench.run import perform
from luciole.bench.verdict import BenchError
from luciole.runtime.clock import SystemClock


@click.command(help=BURST.question)
@shared
@click.option("--jobs", type=click.IntRange(min=1), help="Schedules that are due at once.")
@click.option("--shards", type=click.IntRange(1, 4_096), default=32, show_default=True)
@click.option("--schedulers", type=click.IntRange(1, 64), help="Processes that plan.  [default: 1; contention: 2]")
@click.option(
    "--topology",
    type=click.Choice(["partitioned", "contention"]),
    default="partitioned",
    show_default=True,
    help="Each shard has one scheduler, or all schedulers share every lease and only compare-and-set decides.",
)
@click.option(
    "--path",
    type=click.Choice(["batch", "single"]),
    default="batch",
    show_default=True,
    help="Chunks as the product makes them, or one transaction a job: the runnable 'before'.",
)
@click.option("--start", type=click.Choice(["cold"]), default="cold", show_default=True)
@click.option("--batch", type=click.IntRange(1, 2_000), help="The floor of a chunk.  [default: the product's]")
@click.option("--batch-max", type=click.IntRange(1, 2_000), help="The most of a chunk.  [default: the store's]")
@click.option("--connections", type=click.IntRange(1, 64), help="Chunks in flight.  [default: the store's]")
@click.option("--reporters", type=click.IntRange(1, 64), default=4, show_default=True)
@click.option("--report-batch", type=click.IntRange(1, 1_000), default=500, show_default=True)
@click.option("--pool", type=click.IntRange(1, 64), help="Connections for each purpose; fewer make calls queue.")
@click.option("--sample-waits", is_flag=True, help="Sample whom the server's sessions wait for, 20 times a second.")
@click.option("--ceiling", type=click.Choice(["full", "short", "none"]), help="How widely the ceiling is searched.")
def burst(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the burst profile; return the exit code."""
    chosen = chosen_of(BURST, options)
    schedulers = options["schedulers"] or (2 if options["topology"] == "contention" else 1)
    try:
        spec = msgspec.convert(
            {**{name: options[name] for name in BurstSpec.__struct_fields__ if name in options}, **chosen}
            | {"schedulers": schedulers},
            BurstSpec,
        )
        backend = backend_of(options)
    except BenchError as error:
        return end(error.verdict, str(error))
    clock = SystemClock()
    measure = BurstMeasure(
        spec,
        backend,
        repeats=chosen["repeats"],
        ceiling=chosen["ceiling"],
        clock=clock,
        progress=progress,
        sample_waits=options["sample_waits"],
    )
    requested = {**msgspec.to_builtins(spec), "size": options["size"], **chosen, "backend": options["backend"]}
    measured = perform(run_of(BURST, backend, requested, options), measure, clock=clock)
    return finish(measured, options["out"])
