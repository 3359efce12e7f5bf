"""`bench run soak`."""

from typing import Any

import click
import msgspec

from luciole.bench.cli.options import chosen_of, duration, measured, own_backend_of, progress, shared
from luciole.bench.cli.steady import load_options, spec_of
from luciole.bench.profiles.soak import SOAK
from luciole.bench.steady.soak import SoakMeasure
from luciole.runtime.clock import SystemClock


@click.command(help=SOAK.question)
@shared
@click.option("--schedules", type=click.IntRange(1, 5_000_000), help="How many: 60 % of what `capacity steady` found.")
@load_options
@duration(1, 604_800, text="Whole periods.")
def soak(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the soak profile; return the exit code."""
    chosen = chosen_of(SOAK, options)
    backend = own_backend_of(options)
    load = spec_of(options, chosen)
    clock = SystemClock()
    measure = SoakMeasure(load, backend, repeats=chosen["repeats"], clock=clock, progress=progress)
    requested = {**msgspec.to_builtins(load), **chosen}
    return measured(SOAK, backend, measure, requested, options)
