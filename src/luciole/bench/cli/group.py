"""The groups of the bench: whatever happens, the last line is a verdict and the exit code is its."""

import logging
from collections.abc import Callable
from typing import Any

import click

from luciole.bench.cli.options import OwnWords, end
from luciole.bench.leash import ended_by_sigterm
from luciole.bench.run import INTERRUPTED
from luciole.bench.verdict import BenchError, Verdict, worst
from luciole.errors import MissingExtra

_log = logging.getLogger("luciole.bench")


class BenchGroup(click.Group):
    """A group that ends with a code of the bench even where click, Python or a person ends it.

    An exception that nobody expected would end with 1, which says that something became slower.
    """

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - as click has it
    ) -> click.Context:
        """Read the group's own options."""
        code, context = _ended(lambda: super(BenchGroup, self).make_context(info_name, args, parent, **extra))
        if code:
            raise click.exceptions.Exit(code)
        assert isinstance(context, click.Context)
        return context

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - what a command returns
        """Run the command that was named; return its exit code."""
        with ended_by_sigterm():
            code, found = _ended(lambda: super(BenchGroup, self).invoke(ctx))
        return code or found


class RunGroup(click.Group):
    """`bench run`: one profile or several, one after the other, each with its own options."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Take a profile's command."""
        super().add_command(_Told(cmd), name)


class _Told(click.Command):
    """A command that remembers its own words, so that its result can name the command that repeats it alone."""

    def __init__(self, command: click.Command) -> None:
        super().__init__(command.name, callback=command.callback, params=command.params, help=command.help)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take options, and leave what belongs to the next profile."""
        words = list(args)
        rest = super().parse_args(ctx, args)
        ctx.obj = OwnWords(ctx.command_path.split(), words[: len(words) - len(rest)])
        return rest


def all_ended(codes: list[int]) -> int:
    """Return the code of several runs; where there are several, write the last line for all of them."""
    if len(codes) == 1:
        return codes[0]
    well = sum(code == Verdict.OK for code in codes)
    return end(worst([Verdict(code) for code in codes]), f"{well} of {len(codes)} profiles are ok")


def _ended(step: Callable[[], Any]) -> tuple[int, Any]:
    """Do a step; return what it returned, and 0 or the code of what ended it, whose last line is written then."""
    try:
        return 0, step()
    except click.UsageError as problem:
        return _usage(problem), None
    except (click.exceptions.Exit, click.Abort, click.ClickException, BrokenPipeError):
        raise
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001 - whatever it was, it is no regression
        return end(*_ending(problem)), None


def _ending(problem: BaseException) -> tuple[Verdict, str]:
    """Return the verdict of what ended a command, and its reason."""
    if isinstance(problem, BenchError):
        return problem.verdict, str(problem)
    if isinstance(problem, MissingExtra):
        return Verdict.BACKEND_UNAVAILABLE, str(problem)
    if isinstance(problem, KeyboardInterrupt):
        return Verdict.INVALID, INTERRUPTED
    _log.error("it broke off", exc_info=problem)
    return Verdict.INVALID, f"{type(problem).__name__}: {problem}"


def _usage(problem: click.UsageError) -> int:
    where = problem.ctx.command_path if problem.ctx is not None else "luciole bench"
    if problem.ctx is not None and problem.message == problem.ctx.get_help():
        click.echo(problem.message, err=True)  # A group alone was named.
        return end(Verdict.USAGE, f"name one of the commands of `{where}`")
    return end(Verdict.USAGE, f"{problem.format_message()} (see `{where} --help`)")
