"""`bench probe`: floors and ceilings of this machine."""

from typing import Any

import click

from luciole.bench.burst.run import BurstMeasure, CeilingMeasure
from luciole.bench.burst.spec import BurstSpec
from luciole.bench.cli.options import backend_of, chosen_of, end, finish, progress, run_of, shared
from luciole.bench.profiles.sql_ceiling import SQL_CEILING
from luciole.bench.run import perform
from luciole.bench.verdict import BenchError
from luciole.runtime.clock import SystemClock


@click.group()
def probe() -> None:
    """Measure a floor or a ceiling of this machine."""


@probe.command("sql-ceiling", help=SQL_CEILING.question)
@shared
@click.option("--jobs", type=click.IntRange(min=1), help="Rows a measurement.")
@click.option("--shards", type=click.IntRange(1, 4_096), default=32, show_default=True)
def sql_ceiling(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Measure the ceiling; return the exit code."""
    chosen = chosen_of(SQL_CEILING, options)
    try:
        backend = backend_of(options)
    except BenchError as error:
        return end(error.verdict, str(error))
    clock = SystemClock()
    spec = BurstSpec(jobs=chosen["jobs"], warm_up_jobs=0, shards=options["shards"])
    burst = BurstMeasure(spec, backend, repeats=1, ceiling=chosen["ceiling"], clock=clock, progress=progress)
    measure = CeilingMeasure(burst, jobs=chosen["jobs"], repeats=chosen["repeats"], progress=progress)
    requested = {"size": options["size"], **chosen, "backend": options["backend"], "shards": options["shards"]}
    return finish(perform(run_of(SQL_CEILING, backend, requested, options), measure, clock=clock), options["out"])
