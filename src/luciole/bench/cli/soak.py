"""`bench run soak`."""

from typing import Any

import click
import msgspec

from luciole.bench.cli.options import backend_of, chosen_of, duration, end, finish, progress, refuse_dsn, run_of, shared
from luciole.bench.cli.steady import load_options, spec_of
from luciole.bench.profiles.soak import SOAK
from luciole.bench.run import perform
from luciole.bench.steady.soak import SoakMeasure
from luciole.bench.verdict import BenchError
from luciole.runtime.clock import SystemClock


@click.command(help=SOAK.question)
@shared
@click.option("--schedules", type=click.IntRange(1, 5_000_000), help="How many: 60 % of what `capacity steady` found.")
@load_options
@duration(1, 604_800, text="Whole periods.")
def soak(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the soak profile; return the exit code."""
    chosen = chosen_of(SOAK, options)
    try:
        backend = backend_of(options)
        refuse_dsn(options)
        load = spec_of(options, chosen)
    except BenchError as error:
        return end(error.verdict, str(error))
    clock = SystemClock()
    measure = SoakMeasure(load, backend, repeats=chosen["repeats"], clock=clock, progress=progress)
    requested = {**msgspec.to_builtins(load), **chosen, "size": options["size"], "backend": options["backend"]}
    return finish(perform(run_of(SOAK, backend, requested, options), measure, clock=clock), options["out"])
