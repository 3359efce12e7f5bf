"""`bench ab`."""

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from luciole.bench.ab.document import page, write_document
from luciole.bench.ab.run import Ab, AbOrders
from luciole.bench.cli.comparing import PERF_FOLDER, share
from luciole.bench.cli.options import end, progress
from luciole.bench.deciding.accepted import read_accepted
from luciole.bench.deciding.kept import Kept
from luciole.bench.deciding.sequential import LOOKS, THRESHOLD
from luciole.bench.profiles import PROFILES
from luciole.bench.verdict import BenchError, Verdict
from luciole.model.instant import to_datetime
from luciole.runtime.chance import system_chance
from luciole.runtime.clock import SystemClock

#: What a slice is without `--slice`: long enough for its figures, short enough for dozens of it.
_SLICES = {"burst": "--size smoke --ceiling none", "micro": "--size smoke"}


@click.command("ab")
@click.argument("base")
@click.argument("head")
@click.option("--profile", type=click.Choice(list(PROFILES)), default="burst", show_default=True)
@click.option(
    "--slice",
    "slice_options",
    metavar="OPTIONS",
    help="Options of each slice, as `bench run PROFILE` takes them.  [default: --size smoke, no ceiling]",
)
@click.option("--threshold", callback=share, metavar="SHARE", default=f"{THRESHOLD:.0%}", show_default=True)
@click.option(
    "--pairs",
    type=click.Choice([str(pairs) for pairs, _ in LOOKS]),
    default=str(LOOKS[-1][0]),
    show_default=True,
    help="Pairs at most; it stops earlier when nothing is open.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Of the order of slices.  [default: a new one]")
@click.option("--strict", is_flag=True, help="End with 5 when something stays open.")
@click.option("--author", help="Recorded with the result.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where ab.json goes.  [default: bench-results/ab-PROFILE-TIME]",
)
@PERF_FOLDER
def ab(base: str, head: str, **options: Any) -> int:  # noqa: ANN401 - the options above
    """Compare two revisions, BASE and HEAD, on this machine; "." is the working copy.

    Short slices in fresh processes on equal fresh databases, interleaved ABBA or BAAB by a recorded seed. It looks
    after 8, 16 and 24 pairs, and confirms what became worse with 8 fresh ones. Both sides run with the packages that
    are installed here.
    """
    clock = SystemClock()
    today = to_datetime(clock.now_us())
    slice_options = options["slice_options"]
    try:
        orders = AbOrders(
            base=base,
            head=head,
            profile=options["profile"],
            options=shlex.split(slice_options or _SLICES.get(options["profile"], "--size smoke")),
            seed=options["seed"] if options["seed"] is not None else int(system_chance()() * 2**32),
            threshold=options["threshold"],
            pairs_max=int(options["pairs"]),
            author=options["author"],
            command=["luciole", *sys.argv[1:]],
            start=Path.cwd(),
            accepted=read_accepted(Kept(options["perf"]).accepted),
            today=today.date(),
        )
    except BenchError as error:
        return end(error.verdict, str(error))
    document = Ab(orders, clock=clock, progress=progress).run()
    folder = options["out"] or Path("bench-results") / f"ab-{orders.profile}-{today.strftime('%Y%m%d-%H%M%S')}"
    path = write_document(document, folder)
    click.echo(page(document))
    click.echo(f"result: {path}")
    code = end(Verdict(document.verdict.code), document.verdict.reason)
    return 0 if code == Verdict.INCONCLUSIVE and not options["strict"] else code
