"""`bench run micro`, which is `bench micro`, too."""

from typing import Any

import click

from luciole.bench.cli.options import COMPARE, OUT, SLO, chosen_of, measured
from luciole.bench.micro.counting import COUNTERS, checked
from luciole.bench.profiles import SIZES
from luciole.bench.profiles.micro import MICRO
from luciole.bench.result import Result
from luciole.bench.run import in_process


@click.command(help=MICRO.question)
@click.option("--size", type=click.Choice(SIZES), default="full", show_default=True)
@click.option("--repeats", type=click.IntRange(1, 100), help="Repeats, each in a process of its own.")
@click.option(
    "--counter",
    type=click.Choice(COUNTERS),
    help="What counts the work of a step: Python's opcodes, or the processor's instructions.  [default: opcodes]",
)
@click.option("--author", help="Recorded with the result.")
@SLO
@OUT
@COMPARE
def micro(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the micro profile; return the exit code."""
    chosen = chosen_of(MICRO, options)
    checked(chosen["counter"])

    async def measure(result: Result) -> None:
        for index in range(chosen["repeats"]):
            told = await in_process(
                "luciole.bench.micro.measure",
                "repeat",
                {"PYTHONHASHSEED": "0"},  # The order of sets is part of what a step does.
                index=index,
                counter=chosen["counter"],
            )
            told.actual = dict(chosen)
            result.repeats.append(told)

    requested = {**chosen}
    return measured(MICRO, None, measure, requested, options)
