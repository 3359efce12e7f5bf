"""`luciole bench`: the command line of the bench."""

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from luciole.bench.backends import Backend, hide_passwords, make_backend
from luciole.bench.burst.run import BurstMeasure, CeilingMeasure
from luciole.bench.burst.spec import BurstSpec
from luciole.bench.chaos.measure import ChaosMeasure, ChaosSpec
from luciole.bench.doctor import findings
from luciole.bench.idle import IdleMeasure, IdleSpec
from luciole.bench.pickup.measure import PickupMeasure, PickupSpec
from luciole.bench.profiles import PROFILES, SIZES, Profile, find_profile
from luciole.bench.register import RegisterOrders
from luciole.bench.report import page, summary
from luciole.bench.result import Result, read_result, write_result
from luciole.bench.run import Run, fresh_place, in_process, perform
from luciole.bench.verdict import BenchError, Usage, Verdict
from luciole.model.instant import to_datetime
from luciole.runtime.clock import SystemClock

_BURST = find_profile("burst")
_CHAOS = find_profile("chaos")
_MICRO = find_profile("micro")
_REGISTER = find_profile("register")
_IDLE = find_profile("idle")
_PICKUP = find_profile("pickup")
_CEILING = find_profile("sql-ceiling")

_OUT = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where result.json goes.  [default: bench-results/PROFILE-BACKEND-TIME]",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def bench() -> None:
    """Measure speed and correctness on this machine, on the product's own code path.

    Exit codes: 0 ok, 2 usage, 3 correctness violated (the figures are void), 6 run invalid, 7 objective not met, 8
    backend unavailable. The last line of the output is `bench: VERDICT`; `result.json` is written on failure too.
    """


@bench.command("list")
def list_profiles() -> None:
    """List the profiles and the question that each answers."""
    for profile in PROFILES.values():
        click.echo(f"{profile.name:10} {profile.question}")
        click.echo(f"{'':10} on {', '.join(profile.backends)}; {profile.border}")


@bench.group()
def run() -> None:
    """Run a profile."""


def _shared(command: Any) -> Any:  # noqa: ANN401 - a decorator of a click command
    for option in reversed(
        (
            click.option("--backend", type=click.Choice(["sqlite", "postgres"]), default="sqlite", show_default=True),
            click.option("--dsn", help="An existing PostgreSQL database; without it, a server of the bench's own."),
            click.option(
                "--programs",
                type=click.Choice(["wheel", "system"]),
                default="wheel",
                show_default=True,
                help="What an own PostgreSQL server is made from.",
            ),
            click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of an own server."),
            click.option(
                "--folder",
                type=click.Path(exists=True, file_okay=False, path_type=Path),
                help="Where the files of SQLite are made; it must be on a disk.",
            ),
            click.option("--size", type=click.Choice(SIZES), default="full", show_default=True),
            click.option("--repeats", type=click.IntRange(1, 100), help="Repeats, each in a process of its own."),
            click.option("--author", help="Recorded with the result."),
            _OUT,
        )
    ):
        command = option(command)
    return command


@run.command(help=_BURST.question)
@_shared
@click.option("--jobs", type=click.IntRange(min=1), help="Schedules that are due at once.")
@click.option("--shards", type=click.IntRange(1, 4_096), default=32, show_default=True)
@click.option("--schedulers", type=click.IntRange(1, 64), help="Processes that plan.  [default: 1; contention: 2]")
@click.option(
    "--topology",
    type=click.Choice(["partitioned", "contention"]),
    default="partitioned",
    show_default=True,
    help="Each shard has one scheduler, or all schedulers share every lease and only compare-and-set decides.",
)
@click.option(
    "--path",
    type=click.Choice(["batch", "single"]),
    default="batch",
    show_default=True,
    help="Chunks as the product makes them, or one transaction a job: the runnable 'before'.",
)
@click.option("--start", type=click.Choice(["cold"]), default="cold", show_default=True)
@click.option("--batch", type=click.IntRange(1, 2_000), help="The floor of a chunk.  [default: the product's]")
@click.option("--batch-max", type=click.IntRange(1, 2_000), help="The most of a chunk.  [default: the store's]")
@click.option("--connections", type=click.IntRange(1, 64), help="Chunks in flight.  [default: the store's]")
@click.option("--reporters", type=click.IntRange(1, 64), default=4, show_default=True)
@click.option("--report-batch", type=click.IntRange(1, 1_000), default=500, show_default=True)
@click.option("--ceiling", type=click.Choice(["full", "short", "none"]), help="How widely the ceiling is searched.")
def burst(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the burst profile; return the exit code."""
    chosen = _chosen(_BURST, options)
    schedulers = options["schedulers"] or (2 if options["topology"] == "contention" else 1)
    try:
        spec = msgspec.convert(
            {**{name: options[name] for name in BurstSpec.__struct_fields__ if name in options}, **chosen}
            | {"schedulers": schedulers},
            BurstSpec,
        )
        backend = _backend(options)
    except BenchError as error:
        return _end(error.verdict, str(error))
    clock = SystemClock()
    measure = BurstMeasure(
        spec, backend, repeats=chosen["repeats"], ceiling=chosen["ceiling"], clock=clock, progress=_progress
    )
    requested = {**msgspec.to_builtins(spec), "size": options["size"], **chosen, "backend": options["backend"]}
    measured = perform(_run(_BURST, backend, requested, options), measure, clock=clock)
    return _finish(measured, options["out"])


@run.command(help=_REGISTER.question)
@_shared
@click.option("--jobs", type=click.IntRange(min=1), help="Schedules in bulk.")
@click.option("--singles", type=click.IntRange(min=1), help="Schedules one by one.")
def register(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the register profile; return the exit code."""
    chosen = _chosen(_REGISTER, options)
    try:
        backend = _backend(options)
    except BenchError as error:
        return _end(error.verdict, str(error))

    async def measure(result: Result) -> None:
        for index in range(chosen["repeats"]):
            async with fresh_place(backend) as place:
                orders = RegisterOrders(index=index, place=place, jobs=chosen["jobs"], singles=chosen["singles"])
                told = await in_process("luciole.bench.register", "repeat", **msgspec.to_builtins(orders))
            result.repeats.append(told)
            _progress(f"repeat {index + 1}/{chosen['repeats']}: {told.figures['bulk_rate']:,.0f} schedules/s")

    requested = {"size": options["size"], **chosen, "backend": options["backend"]}
    return _finish(perform(_run(_REGISTER, backend, requested, options), measure, clock=SystemClock()), options["out"])


@run.command(help=_IDLE.question)
@_shared
@click.option("--jobs", type=click.IntRange(min=1), help="Schedules that are far away.")
@click.option("--duration-s", type=click.IntRange(1, 3_600), help="Length of the window, in seconds.")
def idle(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the idle profile; return the exit code."""
    chosen = _chosen(_IDLE, options)
    try:
        backend = _backend(options)
        _refuse_dsn(options)
    except BenchError as error:
        return _end(error.verdict, str(error))
    clock = SystemClock()
    spec = IdleSpec(jobs=chosen["jobs"], duration_s=chosen["duration_s"])
    measure = IdleMeasure(spec, backend, repeats=chosen["repeats"], clock=clock, progress=_progress)
    requested = {**msgspec.to_builtins(spec), "size": options["size"], **chosen, "backend": options["backend"]}
    return _finish(perform(_run(_IDLE, backend, requested, options), measure, clock=clock), options["out"])


@run.command(help=_PICKUP.question)
@_shared
@click.option("--jobs", type=click.IntRange(min=1), help="Enqueues, one at a time.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the pauses between them.")
def pickup(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the pickup profile; return the exit code."""
    chosen = _chosen(_PICKUP, options)
    try:
        backend = _backend(options)
        _refuse_dsn(options)
    except BenchError as error:
        return _end(error.verdict, str(error))
    clock = SystemClock()
    spec = PickupSpec(jobs=chosen["jobs"], seed=options["seed"])
    measure = PickupMeasure(spec, backend, repeats=chosen["repeats"], clock=clock, progress=_progress)
    requested = {**msgspec.to_builtins(spec), "size": options["size"], **chosen, "backend": options["backend"]}
    return _finish(perform(_run(_PICKUP, backend, requested, options), measure, clock=clock), options["out"])


@run.command(help=_CHAOS.question)
@_shared
@click.option("--rate", type=click.IntRange(32, 5_000), help="Fires a second.")
@click.option("--node-kills", type=click.IntRange(min=0), help="SIGKILLs of nodes.")
@click.option("--executor-kills", type=click.IntRange(min=0), help="SIGKILLs of executors.")
@click.option("--freezes", type=click.IntRange(min=0), help="SIGSTOPs of nodes for three leases, of each kind.")
def chaos(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the chaos profile; return the exit code."""
    chosen = _chosen(_CHAOS, options)
    try:
        backend = _backend(options)
        _refuse_dsn(options)
        if backend.name != "postgres":
            raise Usage("--backend: the nodes of this profile share a server; choose postgres")
    except BenchError as error:
        return _end(error.verdict, str(error))
    clock = SystemClock()
    spec = msgspec.convert({name: chosen[name] for name in chosen if name != "repeats"}, ChaosSpec)
    measure = ChaosMeasure(spec, backend, repeats=chosen["repeats"], clock=clock, progress=_progress)
    requested = {**msgspec.to_builtins(spec), "size": options["size"], **chosen, "backend": options["backend"]}
    return _finish(perform(_run(_CHAOS, backend, requested, options), measure, clock=clock), options["out"])


@run.command(help=_MICRO.question)
@click.option("--size", type=click.Choice(SIZES), default="full", show_default=True)
@click.option("--repeats", type=click.IntRange(1, 100), help="Repeats, each in a process of its own.")
@click.option("--author", help="Recorded with the result.")
@_OUT
def micro(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Run the micro profile; return the exit code."""
    repeats = options["repeats"] or _MICRO.parameters[options["size"]]["repeats"]

    async def measure(result: Result) -> None:
        for index in range(repeats):
            told = await in_process("luciole.bench.micro", "repeat", index=index)
            told.actual = {"repeats": repeats}
            result.repeats.append(told)

    requested = {"size": options["size"], "repeats": repeats}
    return _finish(perform(_run(_MICRO, None, requested, options), measure, clock=SystemClock()), options["out"])


@bench.group()
def probe() -> None:
    """Measure a floor or a ceiling of this machine."""


@probe.command("sql-ceiling", help=_CEILING.question)
@_shared
@click.option("--jobs", type=click.IntRange(min=1), help="Rows a measurement.")
@click.option("--shards", type=click.IntRange(1, 4_096), default=32, show_default=True)
def sql_ceiling(**options: Any) -> int:  # noqa: ANN401 - the options above
    """Measure the ceiling; return the exit code."""
    chosen = _chosen(_CEILING, options)
    try:
        backend = _backend(options)
    except BenchError as error:
        return _end(error.verdict, str(error))
    clock = SystemClock()
    spec = BurstSpec(jobs=chosen["jobs"], warm_up_jobs=0, shards=options["shards"])
    burst = BurstMeasure(spec, backend, repeats=1, ceiling=chosen["ceiling"], clock=clock, progress=_progress)
    measure = CeilingMeasure(burst, jobs=chosen["jobs"], repeats=chosen["repeats"], progress=_progress)
    requested = {"size": options["size"], **chosen, "backend": options["backend"], "shards": options["shards"]}
    return _finish(perform(_run(_CEILING, backend, requested, options), measure, clock=clock), options["out"])


@bench.command("report")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
def report_command(results: tuple[Path, ...]) -> int:
    """Print RESULTS as Markdown: one in full, several as a page."""
    try:
        read = [read_result(path) for path in results]
    except BenchError as error:
        return _end(error.verdict, str(error))
    click.echo(summary(read[0]) if len(read) == 1 else page(read), nl=len(read) == 1)
    return int(Verdict.OK)


@bench.command("doctor")
def doctor_command() -> None:
    """Say what this machine can measure, what not, and why."""
    for finding in findings():
        click.echo(f"{'ok     ' if finding.found else 'missing'} {finding.name:28} {finding.text}")


def _chosen(profile: Profile, options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a size, each replaced by the option of its name where that was given."""
    sizes = profile.parameters[options["size"]]
    return {name: options.get(name) if options.get(name) is not None else value for name, value in sizes.items()}


def _refuse_dsn(options: dict[str, Any]) -> None:
    """Refuse a profile on somebody else's database: nodes have the schema `luciole`, which may be in use there."""
    if options["dsn"]:
        raise Usage("--dsn: this profile starts nodes, which would take over whatever runs there; leave it out")


def _run(profile: Profile, backend: Backend | None, requested: dict[str, Any], options: dict[str, Any]) -> Run:
    return Run(
        profile=profile,
        backend=backend,
        requested=requested,
        command=["luciole", *sys.argv[1:]],
        author=options["author"],
    )


def _progress(line: str) -> None:
    click.echo(line, err=True)


def _backend(options: dict[str, Any]) -> Backend:
    settings = dict(_setting(text) for text in options["settings"])
    return make_backend(
        options["backend"],
        dsn=options["dsn"],
        programs=options["programs"],
        settings=settings,
        folder=options["folder"],
    )


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.replace("_", "").replace(".", "").isalnum():
        raise Usage(f"--set: {text!r} is not KEY=VALUE")
    return name, "'" + value.replace("'", "''") + "'"


def _finish(result: Result, out: Path | None) -> int:
    started = to_datetime(SystemClock().now_us()).strftime("%Y%m%d-%H%M%S")
    folder = out or Path("bench-results") / f"{result.profile}-{result.backend['name']}-{started}"
    path = write_result(result, folder)
    click.echo(summary(result))
    click.echo(f"result: {path}")
    return _end(Verdict(result.verdict.code), result.verdict.reason)


def _end(verdict: Verdict, reason: str) -> int:
    click.echo(f"bench: {verdict.word.upper()} {hide_passwords(' '.join(reason.split()))}")
    return int(verdict)
