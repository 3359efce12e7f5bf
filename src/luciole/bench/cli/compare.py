"""`bench compare`."""

from pathlib import Path
from typing import Any

import click

from luciole.bench.cli.comparing import compared, comparing, share
from luciole.bench.cli.options import end
from luciole.bench.deciding.kept import Kept
from luciole.bench.deciding.together import gains, page, read_all
from luciole.bench.deciding.together import together as mean_of
from luciole.bench.result import read_result
from luciole.bench.verdict import BenchError, Usage, Verdict

#: Before the name of a baseline, in place of a file.
_BASELINE = "baseline:"


@click.command("compare")
@click.argument("old")
@click.argument("new", type=click.Path(path_type=Path))
@comparing
@click.option(
    "--together",
    is_flag=True,
    help="OLD and NEW are folders with results below them: print the ratio of each gated throughput, and their "
    "geometric mean.",
)
@click.option(
    "--at-least", callback=share, metavar="SHARE", default="0", help="With --together: end with 7 when less was won."
)
def compare(old: str, new: Path, **options: Any) -> int:  # noqa: ANN401 - the options above
    """Compare two stored results, OLD and NEW, figure by figure; OLD may be `baseline:NAME`.

    Prints a Markdown table. Exit codes: 0 nothing became worse, 1 something did, 4 they can't be compared: another
    machine, other parameters, a figure that is missing, unknown or of another unit.
    """
    try:
        if options["together"]:
            return _together(Path(old), new, options["at_least"])
        if options["at_least"]:
            raise Usage("--at-least: it asks for what two sets of results won; add --together")
        after = read_result(new)
        named = old.removeprefix(_BASELINE)
        before = read_result(Path(old)) if named == old else Kept(options["perf"]).read_baseline(after, named)
        comparison = compared(before, after, options)
    except BenchError as error:
        return end(error.verdict, str(error))
    return end(comparison.verdict, comparison.reason)


def _together(old: Path, new: Path, least: float) -> int:
    """Show what two sets of results come to; return the exit code.

    Raises:
        NotReadable: they can't be compared.
    """
    found = gains(read_all(old), read_all(new))
    click.echo(page(found))
    won = mean_of([gain.ratio for gain in found]) - 1
    text = f"{won:+.1%} over {len(found)} gated throughputs (geometric mean)"
    return (
        end(Verdict.OK, text) if won >= least else end(Verdict.OBJECTIVE_MISSED, f"{text}; {least:.1%} was asked for")
    )
