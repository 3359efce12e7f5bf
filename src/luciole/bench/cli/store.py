"""`bench run store`."""

from typing import Any

import click

from luciole.bench.cli.options import backend_of, chosen_of, looking, measured, progress, shared, watch_of
from luciole.bench.profiles.store import STORE
from luciole.bench.storage.measure import StoreMeasure, StoreSpec
from luciole.runtime.clock import SystemClock


@click.command(help=STORE.question)
@shared
@click.option("--tasks", type=click.IntRange(min=64), help="Enqueues of each payload by each number of callers.")
@click.option("--reads", type=click.IntRange(min=1), help="Loads by id, of each payload.")
@click.option("--workers", type=click.IntRange(1, 64), help="Tasks that deliver, settle and load at once.")
@click.option("--claim-batch", type=click.IntRange(1, 1_000), help="Entries of a shard that a worker reads at once.")
@looking
def store(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the store profile; return the exit code."""
    chosen = chosen_of(STORE, options)
    backend = backend_of(options)
    spec = StoreSpec(**{name: value for name, value in chosen.items() if name != "repeats"})
    measure = StoreMeasure(
        spec,
        backend,
        repeats=chosen["repeats"],
        clock=SystemClock(),
        progress=progress,
        watch=watch_of(options),
    )
    return measured(STORE, backend, measure, {**chosen}, options)
