"""`bench compare`."""

from pathlib import Path
from typing import Any

import click

from luciole.bench.cli.comparing import compared, comparing
from luciole.bench.cli.options import end
from luciole.bench.deciding.kept import Kept
from luciole.bench.result import read_result
from luciole.bench.verdict import BenchError

#: Before the name of a baseline, in place of a file.
_BASELINE = "baseline:"


@click.command("compare")
@click.argument("old")
@click.argument("new", type=click.Path(path_type=Path))
@comparing
def compare(old: str, new: Path, **options: Any) -> int:  # noqa: ANN401 - the options above
    """Compare two stored results, OLD and NEW, figure by figure; OLD may be `baseline:NAME`.

    Prints a Markdown table. Exit codes: 0 nothing became worse, 1 something did, 4 they can't be compared: another
    machine, other parameters, a figure that is missing, unknown or of another unit.
    """
    try:
        after = read_result(new)
        named = old.removeprefix(_BASELINE)
        before = read_result(Path(old)) if named == old else Kept(options["perf"]).read_baseline(after, named)
        comparison = compared(before, after, options)
    except BenchError as error:
        return end(error.verdict, str(error))
    return end(comparison.verdict, comparison.reason)
