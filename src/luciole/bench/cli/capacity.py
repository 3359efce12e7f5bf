"""`bench capacity`."""

from typing import Any

import click
import msgspec

from luciole.bench.cli.options import chosen_of, clauses_of, duration, measured, own_backend_of, progress, shared
from luciole.bench.cli.steady import load_options, spec_of
from luciole.bench.profiles.capacity import CAPACITY_STEADY
from luciole.bench.steady.capacity import CapacityMeasure, CapacitySpec
from luciole.runtime.clock import SystemClock


@click.group()
def capacity() -> None:
    """Find the most that meets an objective here, and what binds."""


@capacity.command("steady", help=CAPACITY_STEADY.question)
@shared
@load_options
@click.option("--start", type=click.IntRange(1, 5_000_000), help="Schedules of the first step.")
@click.option("--most", type=click.IntRange(1, 5_000_000), help="Never more.")
@click.option("--precision", type=click.FloatRange(0.01, 1), help="How close the bounds come, as a share.")
@duration(1, 3_600, text="Of a step.")
@click.option("--confirm-s", type=click.IntRange(1, 3_600), help="Of a step that confirms.")
@click.option("--budget-s", type=click.IntRange(1, 86_400), help="The search ends then, with the bounds that it has.")
@click.option("--goal", type=click.IntRange(min=0), default=0, help="Fewer schedules than this end with 7.")
def steady(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Search; return the exit code."""
    chosen = chosen_of(CAPACITY_STEADY, options)
    backend = own_backend_of(options)
    load = spec_of(options, {**chosen, "schedules": chosen["start"]})
    words = {**options, **chosen}
    spec = msgspec.convert({name: words[name] for name in CapacitySpec.__struct_fields__}, CapacitySpec)
    clock = SystemClock()
    measure = CapacityMeasure(
        spec,
        load,
        backend,
        repeats=chosen["repeats"],
        clock=clock,
        progress=progress,
        slo=clauses_of(CAPACITY_STEADY, options),
    )
    requested = {
        **msgspec.to_builtins(load),
        **msgspec.to_builtins(spec),
        "repeats": chosen["repeats"],
    }
    return measured(CAPACITY_STEADY, backend, measure, requested, options)
