"""`bench report`."""

from pathlib import Path

import click

from luciole.bench.cli.options import end
from luciole.bench.report import page, summary
from luciole.bench.result import read_result
from luciole.bench.verdict import BenchError, Verdict


@click.command("report")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
def report_command(results: tuple[Path, ...]) -> int:
    """Print RESULTS as Markdown: one in full, several as a page."""
    try:
        read = [read_result(path) for path in results]
    except BenchError as error:
        return end(error.verdict, str(error))
    click.echo(summary(read[0]) if len(read) == 1 else page(read), nl=len(read) == 1)
    return int(Verdict.OK)
