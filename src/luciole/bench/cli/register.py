"""`bench run register`."""

from typing import Any

import click
import msgspec

from luciole.bench.ceiling.lanes import measure_rows
from luciole.bench.cli.options import backend_of, chosen_of, measured, progress, shared
from luciole.bench.profiles.register import REGISTER
from luciole.bench.register import RegisterOrders
from luciole.bench.result import Result
from luciole.bench.run import fresh_place, in_process
from luciole.runtime.clock import SystemClock


@click.command(help=REGISTER.question)
@shared
@click.option("--jobs", type=click.IntRange(min=1), help="Schedules in bulk.")
@click.option("--singles", type=click.IntRange(min=1), help="Schedules one by one.")
@click.option("--registrars", type=click.IntRange(1, 64), help="Callers at once, each with a share of them.")
def register(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the register profile; return the exit code."""
    chosen = chosen_of(REGISTER, options)
    backend = backend_of(options)

    counts = {name: chosen[name] for name in ("jobs", "singles", "registrars")}

    async def measure(result: Result) -> None:
        for index in range(chosen["repeats"]):
            async with fresh_place(backend) as place:
                orders = RegisterOrders(index=index, place=place, **counts)
                told = await in_process("luciole.bench.register", "repeat", **msgspec.to_builtins(orders))
            async with fresh_place(backend) as place:
                rows = await measure_rows(place, ("register", "find"), chosen["jobs"], SystemClock())
            told.figures |= {f"{work}_ceiling_rate": rate for work, rate in rows.items()}
            result.repeats.append(told)
            progress(f"repeat {index + 1}/{chosen['repeats']}: {told.figures['bulk_rate']:,.0f} schedules/s")

    requested = {**chosen}
    return measured(REGISTER, backend, measure, requested, options)
