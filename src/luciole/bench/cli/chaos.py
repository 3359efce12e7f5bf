"""`bench run chaos`."""

from typing import Any

import click
import msgspec

from luciole.bench.chaos.measure import ChaosMeasure, ChaosSpec
from luciole.bench.cli.options import chosen_of, measured, own_backend_of, progress, shared
from luciole.bench.profiles.chaos import CHAOS
from luciole.bench.verdict import Usage
from luciole.runtime.clock import SystemClock


@click.command(help=CHAOS.question)
@shared
@click.option("--rate", type=click.IntRange(32, 5_000), help="Fires a second.")
@click.option("--node-kills", type=click.IntRange(min=0), help="SIGKILLs of nodes.")
@click.option("--executor-kills", type=click.IntRange(min=0), help="SIGKILLs of executors.")
@click.option("--freezes", type=click.IntRange(min=0), help="SIGSTOPs of nodes for three leases, of each kind.")
@click.option("--disconnects", type=click.IntRange(min=0), help="Ends of all connections at once.")
def chaos(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the chaos profile; return the exit code."""
    chosen = chosen_of(CHAOS, options)
    backend = own_backend_of(options)
    if backend.name != "postgres":
        raise Usage("--backend: the nodes of this profile share a server; choose postgres")
    clock = SystemClock()
    spec = msgspec.convert({name: chosen[name] for name in chosen if name != "repeats"}, ChaosSpec)
    measure = ChaosMeasure(spec, backend, repeats=chosen["repeats"], clock=clock, progress=progress)
    requested = {**msgspec.to_builtins(spec), **chosen}
    return measured(CHAOS, backend, measure, requested, options)
