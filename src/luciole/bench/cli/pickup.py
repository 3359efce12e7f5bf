"""`bench run pickup`."""

from typing import Any

import click
import msgspec

from luciole.bench.cli.options import chosen_of, measured, own_backend_of, progress, shared
from luciole.bench.pickup.measure import PickupMeasure, PickupSpec
from luciole.bench.profiles.pickup import PICKUP
from luciole.runtime.clock import SystemClock


@click.command(help=PICKUP.question)
@shared
@click.option("--jobs", type=click.IntRange(min=1), help="Enqueues, one at a time.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the pauses between them.")
def pickup(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the pickup profile; return the exit code."""
    chosen = chosen_of(PICKUP, options)
    backend = own_backend_of(options)
    clock = SystemClock()
    spec = PickupSpec(jobs=chosen["jobs"], seed=options["seed"])
    measure = PickupMeasure(spec, backend, repeats=chosen["repeats"], clock=clock, progress=progress)
    requested = {**msgspec.to_builtins(spec), **chosen}
    return measured(PICKUP, backend, measure, requested, options)
