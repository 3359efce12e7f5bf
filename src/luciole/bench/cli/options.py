"""What the commands of the bench share: options, the way from them to a run, and its end."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from luciole import limits
from luciole.bench.attribution.profiling import Kind
from luciole.bench.backends import Backend, hide_passwords, make_backend
from luciole.bench.cli.comparing import compared
from luciole.bench.fresh import Watch
from luciole.bench.objective import Clause, read_clause
from luciole.bench.profiles import SIZES, Profile
from luciole.bench.report.files import REPORT_NAME, write_reports
from luciole.bench.report.markdown import summary
from luciole.bench.result import Result, read_result, write_result
from luciole.bench.run import INTERRUPTED, Run, perform
from luciole.bench.verdict import BenchError, NotReadable, Usage, Verdict, worst
from luciole.errors import InvalidValue
from luciole.model.duration import duration_us
from luciole.model.instant import to_datetime
from luciole.runtime.clock import SystemClock


class Seconds(click.ParamType):  # type: ignore[type-arg] # not generic before click 8.4
    """A span of time such as `120s`, `2m` or `120`, within bounds; what a command gets is seconds."""

    name = "duration"

    def __init__(self, least: float, most: float, *, whole: bool = True) -> None:
        """Take the bounds in seconds, and whether fractions of one are refused."""
        self._least = least
        self._most = most
        self._whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - as click has it
        """Read it."""
        try:
            plain = not isinstance(value, str) or value.replace(".", "", 1).isdecimal()
            found_us = duration_us(float(value) if plain else value, field="it")
        except InvalidValue as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        seconds = found_us / limits.SECOND_US
        if not self._least <= seconds <= self._most:
            self.fail(f"{value!r} is not between {self._least:g}s and {self._most:g}s", param, ctx)
        if not self._whole:
            return seconds
        if found_us % limits.SECOND_US:
            self.fail(f"{value!r}: whole seconds only", param, ctx)
        return int(seconds)


def duration(least: float, most: float, *, text: str, whole: bool = True) -> Callable[[Any], Any]:
    """Return the option `--duration` of a profile, `duration_s` to its command."""
    return click.option("--duration", "--duration-s", "duration_s", type=Seconds(least, most, whole=whole), help=text)


OUT = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where result.json and its reports go.  [default: bench-results/PROFILE-BACKEND-TIME]",
)


def _readable(context: click.Context, _: click.Parameter, path: Path | None) -> Result | None:
    """Read what the result will be compared with, before anything is measured."""
    if path is None:
        return None
    try:
        return read_result(path)
    except NotReadable as error:
        context.exit(end(error.verdict, str(error)))


COMPARE = click.option(
    "--compare",
    type=click.Path(path_type=Path),
    callback=_readable,
    help="A stored result to compare with; ends with the code of the comparison.",
)


SLO = click.option(
    "--slo",
    "slo",
    multiple=True,
    metavar="CLAUSE",
    help="What each repeat must meet besides the profile's own objective, else exit code 7: such as "
    "'start_lag<=5ms', 'start_lag.p50<=1ms' or 'drain_rate>=10000'. A distribution counts by its p99.",
)


def shared(command: Any) -> Any:  # noqa: ANN401 - a decorator of a click command
    """Add the options that every profile with a backend has."""
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
            SLO,
            OUT,
            COMPARE,
        )
    ):
        command = option(command)
    return command


def looking(command: Any) -> Any:  # noqa: ANN401 - a decorator of a click command
    """Add the options that say how closely a run is watched."""
    for option in reversed(
        (
            click.option(
                "--sample-waits", is_flag=True, help="Sample whom the server's sessions wait for, 20 times a second."
            ),
            click.option(
                "--profile-cpu", is_flag=True, help="Profile the CPU of a repeat more, which counts for nothing."
            ),
            click.option("--profile-wall", is_flag=True, help="The same of the wall time, waiting included."),
        )
    ):
        command = option(command)
    return command


def watch_of(options: dict[str, Any]) -> Watch:
    """Return how closely the options want a run to be watched.

    Raises:
        Usage: there is no server whose sessions could be sampled.
    """
    if options["sample_waits"] and options["backend"] != "postgres":
        raise Usage("--sample-waits: only a server has sessions that wait; name --backend postgres")
    kinds: tuple[Kind, ...] = ("cpu", "wall")
    return Watch(sample_waits=options["sample_waits"], profiles=[kind for kind in kinds if options[f"profile_{kind}"]])


def chosen_of(profile: Profile, options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a size, each replaced by the option of its name where that was given."""
    sizes = profile.parameters[options["size"]]
    return {name: options.get(name) if options.get(name) is not None else value for name, value in sizes.items()}


def measured(
    profile: Profile,
    backend: Backend | None,
    measure: Callable[[Result], Awaitable[None]],
    requested: dict[str, Any],
    options: dict[str, Any],
    *,
    out: Path | None = None,
) -> int:
    """Run a profile as a command asks for it; return the exit code.

    Args:
        profile: which.
        backend: what to measure; None: nothing is stored.
        measure: fills the result in.
        requested: the parameters, as the result holds them.
        options: of the command.
        out: where the result goes, when that is not what `--out` says.

    Raises:
        Usage: a clause of `--slo` can't be understood.
    """
    requested = {"size": options["size"], **requested}
    if backend:
        requested["backend"] = options["backend"]
    run = run_of(profile, backend, requested, options)
    return finish(perform(run, measure, clock=SystemClock()), out or options["out"])


def run_of(profile: Profile, backend: Backend | None, requested: dict[str, Any], options: dict[str, Any]) -> Run:
    """Return the run that a command asks for.

    Raises:
        Usage: a clause of `--slo` can't be understood.
    """
    clauses = clauses_of(profile, options)
    context = click.get_current_context()
    words = context.obj if isinstance(context.obj, OwnWords) else None
    return Run(
        profile=profile,
        backend=backend,
        requested=requested | ({"slo": list(options["slo"])} if clauses else {}),
        command=[*words.path, *words.arguments] if words else ["luciole", *sys.argv[1:]],
        author=options["author"],
        slo=clauses,
    )


def clauses_of(profile: Profile, options: dict[str, Any]) -> list[Clause]:
    """Return the clauses of `--slo`.

    Raises:
        Usage: one can't be understood.
    """
    return [read_clause(profile, text) for text in options["slo"]]


class OwnWords(NamedTuple):
    """What a command line says to one of several profiles."""

    path: Sequence[str]
    arguments: Sequence[str]


def progress(line: str) -> None:
    """Tell a person how far it is, beside the output."""
    click.echo(line, err=True)


def backend_of(options: dict[str, Any]) -> Backend:
    """Return the backend that the options name.

    Raises:
        BenchError: they do not fit together, or something is missing.
    """
    settings = dict(_setting(text) for text in options["settings"])
    return make_backend(
        options["backend"],
        dsn=options["dsn"],
        programs=options["programs"],
        settings=settings,
        folder=options["folder"],
    )


def own_backend_of(options: dict[str, Any]) -> Backend:
    """Return the backend of a profile that starts nodes: never somebody else's database.

    Nodes have the schema `luciole`, which may be in use there.

    Raises:
        BenchError: as `backend_of` does, and where a database is named.
    """
    backend = backend_of(options)
    if options["dsn"]:
        raise Usage("--dsn: this profile starts nodes, which would take over whatever runs there; leave it out")
    return backend


#: For profiles whose planners may plan ahead.
PLAN_AHEAD = click.option(
    "--plan-ahead", default="0s", show_default=True, help="Plan so long before the instant; up to 5s."
)


def plan_ahead_us(text: str) -> int:
    """Return what `--plan-ahead` says, in microseconds.

    Raises:
        Usage: it is no duration, or longer than the setting of that name may be.
    """
    try:
        ahead_us = duration_us(text, field="--plan-ahead")
    except InvalidValue as error:
        raise Usage(str(error)) from None
    if ahead_us > limits.PLAN_AHEAD_MAX_US:
        raise Usage(f"--plan-ahead: {text} is not between 0s and {limits.PLAN_AHEAD_MAX_US // limits.SECOND_US}s")
    return ahead_us


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.replace("_", "").replace(".", "").isalnum():
        raise Usage(f"--set: {text!r} is not KEY=VALUE")
    return name, "'" + value.replace("'", "''") + "'"


def finish(result: Result, out: Path | None) -> int:
    """Write and show a result, compare it where `--compare` asks for that; return the exit code."""
    started = to_datetime(SystemClock().now_us()).strftime("%Y%m%d-%H%M%S")
    folder = out or Path("bench-results") / f"{result.profile}-{result.backend['name']}-{started}"
    path = write_result(result, folder)
    context = click.get_current_context(silent=True)
    old = context.params.get("compare") if context else None
    write_reports([old, result] if isinstance(old, Result) else [result], folder)
    click.echo(summary(result))
    click.echo(f"result: {path}, report: {folder / REPORT_NAME}")
    verdict, reason = Verdict(result.verdict.code), result.verdict.reason
    if isinstance(old, Result):
        try:
            comparison = compared(old, result, {})
        except BenchError as error:
            return end(worst([verdict, error.verdict]), str(error))
        verdict, reason = worst([verdict, comparison.verdict]), comparison.reason
    code = end(verdict, reason)
    if result.verdict.reason == INTERRUPTED:
        raise click.exceptions.Exit(code)  # Whoever stops one part wants no further one.
    return code


def end(verdict: Verdict, reason: str) -> int:
    """Print the last line; return the exit code."""
    click.echo(f"bench: {verdict.word.upper()} {hide_passwords(' '.join(reason.split()))}")
    return int(verdict)
