"""`bench run store`."""

from typing import Any

import click
import msgspec

from luciole.bench.ceiling.lanes import Work, measure_rows
from luciole.bench.cli.options import backend_of, chosen_of, measured, progress, shared
from luciole.bench.profiles.store import CALLERS, PAYLOADS, STORE
from luciole.bench.result import Result
from luciole.bench.run import fresh_place, in_process
from luciole.bench.storage.worker import StorageOrders, label
from luciole.runtime.clock import SystemClock


@click.command(help=STORE.question)
@shared
@click.option("--tasks", type=click.IntRange(min=64), help="Enqueues of each payload by each number of callers.")
@click.option("--reads", type=click.IntRange(min=1), help="Loads by id, of each payload.")
@click.option("--workers", type=click.IntRange(1, 64), help="Tasks that deliver, settle and load at once.")
@click.option("--claim-batch", type=click.IntRange(1, 1_000), help="Entries of a shard that a worker reads at once.")
def store(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the store profile; return the exit code."""
    chosen = chosen_of(STORE, options)
    backend = backend_of(options)

    async def measure(result: Result) -> None:
        for index in range(chosen["repeats"]):
            async with fresh_place(backend) as place:
                orders = StorageOrders(
                    index=index,
                    place=place,
                    payloads=PAYLOADS,
                    callers=CALLERS,
                    **{name: value for name, value in chosen.items() if name != "repeats"},
                )
                told = await in_process("luciole.bench.storage.worker", "repeat", **msgspec.to_builtins(orders))
            for size in PAYLOADS:
                async with fresh_place(backend) as place:
                    works: tuple[Work, ...] = ("enqueue", "settle", "load")
                    rows = await measure_rows(place, works, chosen["tasks"], SystemClock(), payload=b"x" * size)
                told.figures |= {f"{work}_{label(size)}_ceiling_rate": rate for work, rate in rows.items()}
            result.repeats.append(told)
            rates = {name: told.figures[f"{name}_rate"] for name in ("enqueue_0_by_1", "enqueue_0_by_64", "settle_0")}
            shown = ", ".join(f"{name} {rate:,.0f}/s" for name, rate in rates.items())
            progress(f"repeat {index + 1}/{chosen['repeats']}: {shown}")

    requested = {**chosen}
    return measured(STORE, backend, measure, requested, options)
