"""`bench run enqueue`."""

from typing import Any

import click
import msgspec

from luciole.bench.cli.options import chosen_of, duration, looking, measured, own_backend_of, progress, shared, watch_of
from luciole.bench.enqueue.measure import EnqueueMeasure, EnqueueSpec
from luciole.bench.profiles.enqueue import ENQUEUE
from luciole.runtime.clock import SystemClock


@click.command(help=ENQUEUE.question)
@shared
@click.option("--singles", type=click.IntRange(50, 1_000_000), help="Enqueues one by one, of each kind.")
@click.option("--bulk", type=click.IntRange(1, 10_000_000), help="Enqueues in one call.")
@click.option("--rate", type=click.IntRange(1, 100_000), help="Enqueues a second in the open loop.")
@duration(1, 3_600, text="Length of the open loop.")
@click.option("--payload", "payload_bytes", type=click.IntRange(0, 1_000_000), help="Bytes of each argument.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the instants in the open loop.")
@looking
def enqueue(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the enqueue profile; return the exit code."""
    chosen = chosen_of(ENQUEUE, options)
    backend = own_backend_of(options)
    clock = SystemClock()
    figures = {name: value for name, value in chosen.items() if name != "repeats"}
    spec = EnqueueSpec(**figures, seed=options["seed"])
    measure = EnqueueMeasure(
        spec, backend, repeats=chosen["repeats"], clock=clock, progress=progress, watch=watch_of(options)
    )
    requested = {**msgspec.to_builtins(spec), **chosen}
    return measured(ENQUEUE, backend, measure, requested, options)
