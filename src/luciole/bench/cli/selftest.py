"""`bench selftest`."""

import click

from luciole.bench.cli.options import end, progress
from luciole.bench.leash import ended_by_sigterm
from luciole.bench.lock import only_bench
from luciole.bench.selftest.cases import CASES
from luciole.bench.selftest.laboratory import laboratory
from luciole.bench.selftest.seen import judged, table
from luciole.bench.verdict import BenchError, Verdict
from luciole.runtime.clock import SystemClock

#: Pairs of a comparison of identical code.
_PAIRS = {"quick": 8, "full": 24}


@click.command("selftest")
@click.option(
    "--size",
    type=click.Choice(list(_PAIRS)),
    default="quick",
    show_default=True,
    help="How long identical code is compared with itself.",
)
def selftest(size: str) -> int:
    """Plant faults and show that each is seen by the layer that should: the bench can fail.

    Exit codes: 0 every fault was seen and identical code stayed green, 6 one was not: the bench can't be trusted.
    """
    try:
        bring = laboratory(clock=SystemClock(), progress=progress, pairs=_PAIRS[size])
        with ended_by_sigterm(), only_bench(), bring as lab:
            seen = [(case, case.plant(lab)) for case in CASES]
    except BenchError as error:
        return end(error.verdict, str(error))
    except KeyboardInterrupt:
        return end(Verdict.INVALID, "interrupted")
    click.echo(table(seen))
    return end(*judged(seen))
