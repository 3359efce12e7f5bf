"""`bench export` and `bench repro`: results for other tools, and for doing it again."""

import os
import sys
from pathlib import Path

import click

from luciole.bench.cli.options import end
from luciole.bench.exporting import bmf, csv, gha, openmetrics, pyperf
from luciole.bench.exporting.gha import Better
from luciole.bench.leash import run_to_its_end
from luciole.bench.repeating import VARIABLE, read_origin, runnable
from luciole.bench.result import read_result
from luciole.bench.verdict import BenchError, Verdict

_FORMATS = {"bmf": bmf, "csv": csv, "openmetrics": openmetrics, "pyperf": pyperf}


@click.command("export")
@click.argument("result", type=click.Path(path_type=Path))
@click.option("--as", "form", type=click.Choice(["bmf", "gha", "pyperf", "openmetrics", "csv"]), required=True)
@click.option(
    "--better",
    type=click.Choice(["bigger", "smaller"]),
    default="smaller",
    show_default=True,
    help="With `--as gha`: which figures; that tool takes one direction a file.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file.  [default: the output]")
def export(result: Path, form: str, better: Better, out: Path | None) -> int:
    """Print RESULT in the format of another tool."""
    try:
        read = read_result(result)
        if read.verdict.code == Verdict.INCORRECT:
            return end(Verdict.INCORRECT, f"the figures are void: {read.verdict.reason}")
        text = gha(read, better) if form == "gha" else _FORMATS[form](read)
    except BenchError as error:
        return end(error.verdict, str(error))
    if out is None:
        click.echo(text, nl=False)
        return int(Verdict.OK)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        return end(Verdict.USAGE, f"--out: {out}: {error.strerror or error}")
    return end(Verdict.OK, f"{form}: {out}")


@click.command("repro")
@click.argument("result", type=click.Path(path_type=Path))
@click.option("--run", "again", is_flag=True, help=f"Run it; a password is taken from {VARIABLE}.")
def repro(result: Path, again: bool) -> int:  # noqa: FBT001 - a flag of the command
    """Print the exact command that RESULT came from, with its revision and machine; or run it again."""
    try:
        origin = read_origin(result)
        command = runnable(
            origin.command,
            interpreter=sys.executable,
            password=os.environ.get(VARIABLE) if again else "",
        )
    except BenchError as error:
        return end(error.verdict, str(error))
    if not again:
        product = origin.product
        changed = ", with changes that nobody committed" if product.get("dirty") else ""
        click.echo(f"# measured {origin.started} on machine {origin.environment.get('fingerprint', 'unknown')}")
        click.echo(f"# revision {product.get('revision', 'see the result')}{changed}")
        click.echo(origin.line())
        return end(Verdict.OK, "add --run to run it again")
    return run_to_its_end(command)
