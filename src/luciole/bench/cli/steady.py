"""`bench run steady`."""

from typing import Any

import click
import msgspec

from luciole.bench.cli.options import (
    PLAN_AHEAD,
    Seconds,
    chosen_of,
    duration,
    looking,
    measured,
    own_backend_of,
    plan_ahead_us,
    progress,
    shared,
    watch_of,
)
from luciole.bench.profiles.steady import STEADY
from luciole.bench.steady.measure import SteadyMeasure
from luciole.bench.steady.spec import SteadySpec
from luciole.runtime.clock import SystemClock


def load_options(command: Any) -> Any:  # noqa: ANN401 - a decorator of a click command
    """Add the options that say what fires and on what it runs."""
    for option in reversed(
        (
            click.option("--period-s", type=click.IntRange(1, 86_400), help="Of each, in seconds."),
            click.option(
                "--handler",
                default="sleep:200ms",
                show_default=True,
                metavar="KIND",
                help="What each run does: sleep:200ms, cpu:5ms, block:5ms (waits and holds its loop) or noop.",
            ),
            click.option("--nodes", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes."),
            click.option("--executors", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes."),
            click.option(
                "--slots",
                type=click.IntRange(1, 100_000),
                default=8_000,
                show_default=True,
                help="Of all executors together.",
            ),
            click.option("--shards", type=click.IntRange(1, 4_096), default=32, show_default=True),
        )
    ):
        command = option(command)
    return command


@click.command(help=STEADY.question)
@shared
@click.option("--schedules", type=click.IntRange(1, 5_000_000), help="How many.")
@load_options
@click.option(
    "--phase",
    type=click.Choice(["spread", "aligned"]),
    default="spread",
    show_default=True,
    help="Fires spread over the period, or all at one instant of it.",
)
@PLAN_AHEAD
@duration(1, 86_400, text="Whole periods, or less than one.")
@click.option(
    "--warmup",
    "--warmup-s",
    "warmup_s",
    type=Seconds(0, 86_400),
    help="The beginning of it that does not count for punctuality.",
)
@looking
def steady(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the steady profile; return the exit code."""
    chosen = chosen_of(STEADY, options)
    backend = own_backend_of(options)
    spec = spec_of(options, chosen)
    clock = SystemClock()
    measure = SteadyMeasure(
        spec, backend, repeats=chosen["repeats"], clock=clock, progress=progress, watch=watch_of(options)
    )
    requested = {**msgspec.to_builtins(spec), **chosen}
    return measured(STEADY, backend, measure, requested, options)


def spec_of(options: dict[str, Any], chosen: dict[str, Any]) -> SteadySpec:
    """Return the load that options and the parameters of a size describe.

    Raises:
        Usage: they contradict each other.
    """
    words = {**options, **chosen, "plan_ahead_us": plan_ahead_us(options.get("plan_ahead", "0s"))}
    spec = msgspec.convert({name: words[name] for name in SteadySpec.__struct_fields__ if name in words}, SteadySpec)
    spec.check()
    return spec
