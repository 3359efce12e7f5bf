"""`bench probe`: floors and ceilings of this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from luciole.bench.burst.run import BurstMeasure, CeilingMeasure
from luciole.bench.burst.spec import BurstSpec
from luciole.bench.cli.options import backend_of, chosen_of, duration, end, measured, progress, shared
from luciole.bench.probing.measure import PROBES, ProbeMeasure
from luciole.bench.probing.spec import ProbeSpec
from luciole.bench.profiles.probe import PROBE
from luciole.bench.profiles.sql_ceiling import SQL_CEILING
from luciole.bench.verdict import Verdict, worst
from luciole.runtime.clock import SystemClock


def probing(command: Any) -> Any:  # noqa: ANN401 - a decorator of a click command
    """Add the options of the probes that need no schema."""
    for option in (
        click.option("--tool", type=click.Choice(["auto", "fio", "built-in"]), default="auto", show_default=True),
        click.option("--files", type=click.IntRange(1, 1_000_000), help="Files that meta-create makes."),
        click.option("--file-mib", type=click.IntRange(1, 65_536), help="The file that is written over."),
        duration(0.1, 600, text="Of each probe that runs for a time.", whole=False),
    ):
        command = option(command)
    return shared(command)


@click.group(invoke_without_command=True)
@probing
@click.pass_context
def probe(context: click.Context, /, **options: Any) -> int:  # noqa: ANN401 - the options above
    """Measure the floor of this machine: all of it, or one probe."""
    if context.invoked_subcommand is not None:
        return 0
    verdicts = [_probe(tuple(PROBES), options, _part(options["out"], "probe"))]
    sizes = {"jobs": None, "shards": 32, "out": _part(options["out"], "sql-ceiling")}
    verdicts.append(context.invoke(sql_ceiling, **_given(options), **sizes))
    well = sum(code == Verdict.OK for code in verdicts)
    return end(worst([Verdict(code) for code in verdicts]), f"{well} of {len(verdicts)} parts measured")


def _part(out: Path | None, name: str) -> Path | None:
    """Return where one of several results goes: a folder of its own inside the one that was asked for."""
    return out / name if out else None


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that every profile with a backend has."""
    own = {"tool", "files", "file_mib", "duration_s", "out"}
    return {name: value for name, value in options.items() if name not in own}


def _probe(names: Sequence[str], options: dict[str, Any], out: Path | None) -> int:
    """Run some probes; return the exit code."""
    chosen = chosen_of(PROBE, options)
    clock = SystemClock()
    backend = backend_of(options)
    spec = msgspec.convert(
        {name: value for name, value in chosen.items() if name != "repeats"} | {"tool": options["tool"]}, ProbeSpec
    )
    measure = ProbeMeasure(names, spec, backend, repeats=chosen["repeats"], clock=clock, progress=progress)
    requested = {**chosen, "probes": list(names)}
    return measured(PROBE, backend, measure, requested, options, out=out)


def _command(name: str) -> click.Command:
    @click.command(name, help=f"Measure {name} alone.")
    @probing
    def one(**options: Any) -> int:  # noqa: ANN401 - the options above
        return _probe((name,), options, options["out"])

    return one


for _name in PROBES:
    probe.add_command(_command(_name))


@probe.command("sql-ceiling", help=SQL_CEILING.question)
@shared
@click.option("--jobs", type=click.IntRange(min=1), help="Rows a measurement.")
@click.option("--shards", type=click.IntRange(1, 4_096), default=32, show_default=True)
def sql_ceiling(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Measure the ceiling; return the exit code."""
    chosen = chosen_of(SQL_CEILING, options)
    backend = backend_of(options)
    clock = SystemClock()
    spec = BurstSpec(jobs=chosen["jobs"], warm_up_jobs=0, shards=options["shards"])
    burst = BurstMeasure(spec, backend, repeats=1, ceiling=chosen["ceiling"], clock=clock, progress=progress)
    measure = CeilingMeasure(burst, jobs=chosen["jobs"], repeats=chosen["repeats"], progress=progress)
    requested = {**chosen, "shards": options["shards"]}
    return measured(SQL_CEILING, backend, measure, requested, options)
