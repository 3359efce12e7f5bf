"""`bench baseline`, `bench trend`, `bench calibrate`: what is kept from run to run."""

import shlex
import shutil
import tempfile
from datetime import date, timedelta
from math import ceil
from pathlib import Path

import click

from luciole.bench.ab.slices import run_here
from luciole.bench.backends import durable_folder
from luciole.bench.cli.comparing import PERF_FOLDER
from luciole.bench.cli.options import end
from luciole.bench.deciding.accepted import Accepted, accept
from luciole.bench.deciding.comparing import Found, Row, Terms, compare
from luciole.bench.deciding.kept import Kept, results_below
from luciole.bench.deciding.noise import REPEATS_MIN, noise_of
from luciole.bench.deciding.trend import trend
from luciole.bench.profiles import PROFILES
from luciole.bench.result import Result, read_result
from luciole.bench.verdict import BenchError, NotReadable, Usage, Verdict
from luciole.model.instant import to_datetime
from luciole.runtime.clock import SystemClock


@click.group()
def baseline() -> None:
    """Keep results that later ones are compared with, by the machine that they are from."""


@baseline.command("save")
@click.argument("result", type=click.Path(path_type=Path))
@click.option("--name", default="rolling", show_default=True, help="Such as `rolling` or the name of a release.")
@PERF_FOLDER
def save(result: Path, name: str, perf: Path) -> int:
    """Keep RESULT; it replaces the one of its name, machine, profile and backend."""
    try:
        path = Kept(perf).save_baseline(read_result(result), name)
    except BenchError as error:
        return end(error.verdict, str(error))
    return end(Verdict.OK, f"baseline {name}: {path}")


@baseline.command("list")
@PERF_FOLDER
def list_baselines(perf: Path) -> int:
    """List what is kept; what can't be read is named."""
    broken = 0
    for path, found in Kept(perf).baselines():
        broken += isinstance(found, NotReadable)
        click.echo(f"{path}  {_origin(found)}")
    if broken:
        return end(Verdict.NOT_COMPARABLE, f"{broken} baselines can't be read")
    return end(Verdict.OK, f"listed what is kept in {perf}")


@baseline.command("accept")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--metric", "metrics", multiple=True, help="Which; without it, all that became worse.")
@click.option("--reason", required=True, help="Why it may stay.")
@click.option("--expires", type=click.DateTime(["%Y-%m-%d"]), help="Until when.  [default: in 90 days]")
@PERF_FOLDER
def accept_regressions(
    old: Path, new: Path, metrics: tuple[str, ...], reason: str, expires: date | None, perf: Path
) -> int:
    """Accept what became worse from OLD to NEW, with a reason and for a time, in accepted.toml."""
    today = to_datetime(SystemClock().now_us()).date()
    kept = Kept(perf)
    try:
        after = read_result(new)
        rows = compare(read_result(old), after, Terms(today=today)).rows
        worse = [row for row in rows if row.found is Found.REGRESSED]
        chosen = [row for row in worse if not metrics or _metric(row) in metrics]
        missing = set(metrics) - {_metric(row) for row in chosen}
        if missing or not chosen:
            raise Usage(f"{', '.join(sorted(missing)) or 'nothing'}: became no worse from {old} to {new}")
        until = date(expires.year, expires.month, expires.day) if expires else today + timedelta(days=90)
        for metric in dict.fromkeys(_metric(row) for row in chosen):
            size = max(abs(row.change or 0.0) for row in chosen if _metric(row) == metric)
            entry = Accepted(
                profile=after.profile,
                metric=metric,
                size=ceil(size * 1_000) / 1_000,
                reason=reason,
                expires=until,
                backend=str(after.backend.get("name")),
            )
            accept(kept.accepted, entry)
            click.echo(f"{entry.profile} {entry.metric}: {entry.size:.1%} until {entry.expires}")
    except BenchError as error:
        return end(error.verdict, str(error))
    return end(Verdict.OK, f"accepted in {kept.accepted}")


@click.command("trend")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--profile", type=click.Choice(list(PROFILES)), help="Only this one.")
@click.option("--metric", "metrics", multiple=True, help="Only these figures.")
def trend_command(folder: Path, profile: str | None, metrics: tuple[str, ...]) -> int:
    """Show the results below FOLDER over time, a table for each machine, profile and set of parameters."""
    results, broken = [], 0
    for path, found in results_below(folder):
        if isinstance(found, NotReadable):
            broken += 1
            click.echo(f"left out: {found}", err=True)
        elif profile in {None, found.profile}:
            results.append(found)
            del path
    if not results:
        return end(Verdict.NOT_COMPARABLE, f"{folder}: no result that can be read ({broken} that can't)")
    click.echo(trend(results, metrics=metrics))
    return end(Verdict.OK, f"{len(results)} results, {broken} that can't be read")


@click.command("calibrate")
@click.argument("profile", type=click.Choice(list(PROFILES)))
@click.option("--options", "options_text", default="--size ci", show_default=True, help="As `bench run PROFILE` takes.")
@click.option("--repeats", type=click.IntRange(REPEATS_MIN, 100), default=10, show_default=True)
@PERF_FOLDER
def calibrate(profile: str, options_text: str, repeats: int, perf: Path) -> int:
    """Run the same code several times and keep how much each figure of PROFILE varies on this machine."""
    folder = Path(tempfile.mkdtemp(prefix="luciole-calibrate-", dir=durable_folder()))
    try:
        words = ["bench", "run", profile, *shlex.split(options_text), "--repeats", str(repeats), "--out", str(folder)]
        code, last = run_here(words)
        if code not in {Verdict.OK, Verdict.OBJECTIVE_MISSED}:
            return end(Verdict(code) if code in set(Verdict) else Verdict.INVALID, last)
        result = read_result(folder)
        noise = noise_of(result)
        path = Kept(perf).save_noise(result, noise)
    except BenchError as error:
        return end(error.verdict, str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    click.echo("| figure | noise |\n|---|--:|")
    for name, spread in noise.spread.items():
        click.echo(f"| {name} | {spread:.1%} |")
    return end(Verdict.OK, f"the noise of {len(noise.spread)} figures over {repeats} repeats: {path}")


def _metric(row: Row) -> str:
    return row.name.partition(" ")[0]


def _origin(found: Result | NotReadable) -> str:
    if isinstance(found, NotReadable):
        return f"can't be read: {found}"
    return f"{found.started[:16]}Z revision {str(found.product.get('revision'))[:12]}, {len(found.repeats)} repeats"
