"""`bench run mixed`."""

from typing import Any

import click
import msgspec

from luciole.bench.cli.options import chosen_of, duration, measured, own_backend_of, progress, shared
from luciole.bench.cli.steady import load_options, spec_of
from luciole.bench.mixed.measure import MixedMeasure
from luciole.bench.profiles.mixed import MIXED
from luciole.runtime.clock import SystemClock


@click.command(help=MIXED.question)
@shared
@click.option("--schedules", type=click.IntRange(1, 5_000_000), help="How many.")
@load_options
@duration(1, 86_400, text="Whole periods, or less than one.")
@click.option("--request-rate", type=click.IntRange(1, 10_000), help="Requests a second beside them.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the requests' instants and kinds.")
def mixed(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the mixed profile; return the exit code."""
    chosen = chosen_of(MIXED, options)
    backend = own_backend_of(options)
    load = spec_of(options, chosen)
    clock = SystemClock()
    measure = MixedMeasure(
        load,
        backend,
        request_rate=chosen["request_rate"],
        seed=options["seed"],
        repeats=chosen["repeats"],
        clock=clock,
        progress=progress,
    )
    requested = {
        **msgspec.to_builtins(load),
        **chosen,
        "seed": options["seed"],
    }
    return measured(MIXED, backend, measure, requested, options)
