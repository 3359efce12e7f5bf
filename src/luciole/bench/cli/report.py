"""`bench report`."""

from pathlib import Path

import click

from luciole.bench.cli.options import end
from luciole.bench.report.files import write_page
from luciole.bench.report.markdown import page, summary
from luciole.bench.result import read_result
from luciole.bench.verdict import BenchError, Verdict


@click.command("report")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page to this file instead: offline, one file, several results side by side.",
)
def report_command(results: tuple[Path, ...], html: Path | None) -> int:
    """Print RESULTS as Markdown: one in full, several as a page.

    With --html and several results, the first is what the others are held against, and the last is explained in full.
    """
    try:
        read = [read_result(path) for path in results]
    except BenchError as error:
        return end(error.verdict, str(error))
    if html is None:
        click.echo(summary(read[0]) if len(read) == 1 else page(read), nl=len(read) == 1)
        return end(Verdict.OK, f"a report of {len(read)} results")
    try:
        write_page(read, html)
    except OSError as error:
        return end(Verdict.USAGE, f"--html: {html}: {error.strerror or error}")
    return end(Verdict.OK, f"report: {html}")
