"""`bench run register`."""

from typing import Any

import click

from luciole.bench.cli.options import backend_of, chosen_of, looking, measured, progress, shared, watch_of
from luciole.bench.profiles.register import REGISTER
from luciole.bench.register.measure import RegisterMeasure, RegisterSpec
from luciole.runtime.clock import SystemClock


@click.command(help=REGISTER.question)
@shared
@click.option("--jobs", type=click.IntRange(min=1), help="Schedules in bulk.")
@click.option("--singles", type=click.IntRange(min=1), help="Schedules one by one.")
@click.option("--registrars", type=click.IntRange(1, 64), help="Callers at once, each with a share of them.")
@looking
def register(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the register profile; return the exit code."""
    chosen = chosen_of(REGISTER, options)
    backend = backend_of(options)
    spec = RegisterSpec(jobs=chosen["jobs"], singles=chosen["singles"], registrars=chosen["registrars"])
    measure = RegisterMeasure(
        spec,
        backend,
        repeats=chosen["repeats"],
        clock=SystemClock(),
        progress=progress,
        watch=watch_of(options),
    )
    return measured(REGISTER, backend, measure, {**chosen}, options)
