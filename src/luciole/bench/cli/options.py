"""What the commands of the bench share: options, the way from them to a run, and its end."""

import sys
from pathlib import Path
from typing import Any

import click

from luciole import limits
from luciole.bench.backends import Backend, hide_passwords, make_backend
from luciole.bench.cli.comparing import compared
from luciole.bench.profiles import SIZES, Profile
from luciole.bench.report.files import REPORT_NAME, write_reports
from luciole.bench.report.markdown import summary
from luciole.bench.result import Result, read_result, write_result
from luciole.bench.run import Run
from luciole.bench.verdict import BenchError, NotReadable, Usage, Verdict, worst
from luciole.errors import InvalidValue
from luciole.model.duration import duration_us
from luciole.model.instant import to_datetime
from luciole.runtime.clock import SystemClock

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
            OUT,
            COMPARE,
        )
    ):
        command = option(command)
    return command


def chosen_of(profile: Profile, options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a size, each replaced by the option of its name where that was given."""
    sizes = profile.parameters[options["size"]]
    return {name: options.get(name) if options.get(name) is not None else value for name, value in sizes.items()}


def refuse_dsn(options: dict[str, Any]) -> None:
    """Refuse a profile on somebody else's database: nodes have the schema `luciole`, which may be in use there."""
    if options["dsn"]:
        raise Usage("--dsn: this profile starts nodes, which would take over whatever runs there; leave it out")


def run_of(profile: Profile, backend: Backend | None, requested: dict[str, Any], options: dict[str, Any]) -> Run:
    """Return the run that a command asks for."""
    return Run(
        profile=profile,
        backend=backend,
        requested=requested,
        command=["luciole", *sys.argv[1:]],
        author=options["author"],
    )


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
    return end(verdict, reason)


def end(verdict: Verdict, reason: str) -> int:
    """Print the last line; return the exit code."""
    click.echo(f"bench: {verdict.word.upper()} {hide_passwords(' '.join(reason.split()))}")
    return int(verdict)
