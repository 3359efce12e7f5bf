"""`bench compare`."""

from pathlib import Path
from typing import Any

import click

from luciole.bench.cli.comparing import compared, comparing
from luciole.bench.cli.options import end
from luciole.bench.result import read_result
from luciole.bench.verdict import BenchError


@click.command("compare")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@comparing
def compare(old: Path, new: Path, **options: Any) -> int:  # noqa: ANN401 - the options above
    """Compare two stored results, OLD and NEW, figure by figure.

    Prints a Markdown table. Exit codes: 0 nothing became worse, 1 something did, 4 they can't be compared: another
    machine, other parameters, a figure that is missing, unknown or of another unit.
    """
    try:
        comparison = compared(read_result(old), read_result(new), options)
    except BenchError as error:
        return end(error.verdict, str(error))
    return end(comparison.verdict, comparison.reason)
