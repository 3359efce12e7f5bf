"""`bench run backlog`."""

from typing import Any

import click
import msgspec

from luciole.bench.backlog.measure import BacklogMeasure, BacklogSpec
from luciole.bench.cli.options import chosen_of, measured, own_backend_of, progress, shared
from luciole.bench.profiles.backlog import BACKLOG
from luciole.bench.verdict import Usage
from luciole.runtime.clock import SystemClock


@click.command(help=BACKLOG.question)
@shared
@click.option("--overdue", type=click.IntRange(3, 1_000_000), help="Schedules whose fire times pass.")
@click.option("--fresh-rate", type=click.IntRange(1, 5_000), help="New fires a second meanwhile.")
@click.option("--fresh-s", type=click.IntRange(10, 3_600), help="For so long; whole tens of seconds.")
@click.option("--nodes", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
@click.option("--executors", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
@click.option("--slots", type=click.IntRange(1, 100_000), default=2_000, show_default=True, help="Of all executors.")
@click.option("--shards", type=click.IntRange(1, 4_096), default=32, show_default=True)
def backlog(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the backlog profile; return the exit code."""
    chosen = chosen_of(BACKLOG, options)
    words = {**options, **chosen}
    backend = own_backend_of(options)
    if words["fresh_s"] % 10:
        raise Usage("--fresh-s: new schedules have a period of 10 s; give whole tens of seconds")
    spec = msgspec.convert({name: words[name] for name in BacklogSpec.__struct_fields__}, BacklogSpec)
    clock = SystemClock()
    measure = BacklogMeasure(spec, backend, repeats=chosen["repeats"], clock=clock, progress=progress)
    requested = {**msgspec.to_builtins(spec), **chosen}
    return measured(BACKLOG, backend, measure, requested, options)
