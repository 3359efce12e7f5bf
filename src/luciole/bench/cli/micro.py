"""`bench run micro`."""

from typing import Any

import click

from luciole.bench.cli.options import COMPARE, OUT, finish, run_of
from luciole.bench.profiles import SIZES
from luciole.bench.profiles.micro import MICRO
from luciole.bench.result import Result
from luciole.bench.run import in_process, perform
from luciole.runtime.clock import SystemClock


@click.command(help=MICRO.question)
@click.option("--size", type=click.Choice(SIZES), default="full", show_default=True)
@click.option("--repeats", type=click.IntRange(1, 100), help="Repeats, each in a process of its own.")
@click.option("--author", help="Recorded with the result.")
@OUT
@COMPARE
def micro(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the micro profile; return the exit code."""
    repeats = options["repeats"] or MICRO.parameters[options["size"]]["repeats"]

    async def measure(result: Result) -> None:
        for index in range(repeats):
            told = await in_process("luciole.bench.micro", "repeat", index=index)
            told.actual = {"repeats": repeats}
            result.repeats.append(told)

    requested = {"size": options["size"], "repeats": repeats}
    return finish(perform(run_of(MICRO, None, requested, options), measure, clock=SystemClock()), options["out"])
