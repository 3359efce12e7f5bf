"""`bench run drain`."""

from typing import Any

import click
import msgspec

from luciole.bench.cli.options import chosen_of, looking, measured, own_backend_of, progress, shared, watch_of
from luciole.bench.drain.measure import DrainMeasure, DrainSpec
from luciole.bench.profiles.drain import DRAIN
from luciole.bench.verdict import Usage
from luciole.runtime.clock import SystemClock


@click.command(help=DRAIN.question)
@shared
@click.option("--jobs", type=click.IntRange(1, 1_000_000), help="Executions that become due at once.")
@click.option("--slots", type=click.IntRange(1, 100_000), help="Slots of the executor.")
@click.option("--payload", "payload_bytes", type=click.IntRange(0, 1_000_000), help="Bytes of each argument.")
@click.option(
    "--forgotten-transaction",
    is_flag=True,
    help="Hold a REPEATABLE READ transaction open, so that dead rows pile up; PostgreSQL.",
)
@click.option("--churn", type=click.IntRange(1, 1_000_000), help="Executions beside it, before those that count.")
@looking
def drain(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the drain profile; return the exit code."""
    chosen = chosen_of(DRAIN, options)
    backend = own_backend_of(options)
    churn = _churn(options, chosen.pop("churn"))
    clock = SystemClock()
    spec = DrainSpec(jobs=chosen["jobs"], slots=chosen["slots"], payload_bytes=chosen["payload_bytes"], churn=churn)
    measure = DrainMeasure(
        spec, backend, repeats=chosen["repeats"], clock=clock, progress=progress, watch=watch_of(options)
    )
    asked = {name: value for name, value in msgspec.to_builtins(spec).items() if value is not None}
    requested = {**asked, **chosen}
    return measured(DRAIN, backend, measure, requested, options)


def _churn(options: dict[str, Any], churn: int) -> int | None:
    """Return how many executions run beside a forgotten transaction first; None: there is none."""
    if options["forgotten_transaction"]:
        if options["backend"] != "postgres":
            raise Usage("--forgotten-transaction: on SQLite it holds no dead rows back; name --backend postgres")
        return churn
    if options["churn"] is not None:
        raise Usage("--churn: it makes the dead rows that a forgotten transaction keeps; add --forgotten-transaction")
    return None
