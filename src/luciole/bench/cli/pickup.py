"""`bench run pickup`."""

from typing import Any

import click
import msgspec

from luciole.bench.cli.options import backend_of, chosen_of, end, finish, progress, refuse_dsn, run_of, shared
from luciole.bench.pickup.measure import PickupMeasure, PickupSpec
from luciole.bench.profiles.pickup import PICKUP
from luciole.bench.run import perform
from luciole.bench.verdict import BenchError
from luciole.runtime.clock import SystemClock


@click.command(help=PICKUP.question)
@shared
@click.option("--jobs", type=click.IntRange(min=1), help="Enqueues, one at a time.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the pauses between them.")
def pickup(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the pickup profile; return the exit code."""
    chosen = chosen_of(PICKUP, options)
    try:
        backend = backend_of(options)
        refuse_dsn(options)
    except BenchError as error:
        return end(error.verdict, str(error))
    clock = SystemClock()
    spec = PickupSpec(jobs=chosen["jobs"], seed=options["seed"])
    measure = PickupMeasure(spec, backend, repeats=chosen["repeats"], clock=clock, progress=progress)
    requested = {**msgspec.to_builtins(spec), "size": options["size"], **chosen, "backend": options["backend"]}
    return finish(perform(run_of(PICKUP, backend, requested, options), measure, clock=clock), options["out"])
