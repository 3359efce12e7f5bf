"""`bench run idle`."""

from typing import Any

import click
import msgspec

from luciole.bench.cli.options import chosen_of, duration, measured, own_backend_of, progress, shared
from luciole.bench.idle import IdleMeasure, IdleSpec
from luciole.bench.profiles.idle import IDLE
from luciole.runtime.clock import SystemClock


@click.command(help=IDLE.question)
@shared
@click.option("--jobs", type=click.IntRange(min=1), help="Schedules that are far away.")
@duration(1, 3_600, text="Length of the window.")
def idle(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the idle profile; return the exit code."""
    chosen = chosen_of(IDLE, options)
    backend = own_backend_of(options)
    clock = SystemClock()
    spec = IdleSpec(jobs=chosen["jobs"], duration_s=chosen["duration_s"])
    measure = IdleMeasure(spec, backend, repeats=chosen["repeats"], clock=clock, progress=progress)
    requested = {**msgspec.to_builtins(spec), **chosen}
    return measured(IDLE, backend, measure, requested, options)
