"""From arguments to an exit code: each command is imported when it is used, each error is one line."""

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from luciole.errors import InvalidValue, LucioleError

#: Command -> where it is, and what the overview says of it (so that `luciole --help` imports none of them).
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("luciole.cli.up:up", "Run an app: node, gateway and executor in one process."),
    "node": ("luciole.cli.node:node", "Run a node: plan what is due and deliver it to executors."),
    "executor": ("luciole.cli.executor:executor", "Run an app's handlers for nodes elsewhere."),
    "migrate": ("luciole.cli.migrate:migrate", "Bring the store's schema up to date."),
    "schedules": ("luciole.cli.schedules:schedules", "List, show, trigger, pause, resume, edit and delete schedules."),
    "executions": ("luciole.cli.executions:executions", "List, show, await, cancel and retry executions."),
    "jobs": ("luciole.cli.jobs:jobs", "List jobs, and run one."),
    "explain": ("luciole.cli.explain:explain", "Say when a schedule or a cron expression fires, and why then."),
    "nodes": ("luciole.cli.nodes:nodes", "Show who is alive, who holds what, and how much is due."),
    "doctor": ("luciole.cli.doctor:doctor", "Look for what is wrong, and say what to do about it."),
    "demo": ("luciole.cli.demo:demo", "See it all in a minute, with a kill in the middle, and check the outcome."),
    "bench": ("luciole.bench.cli:bench", "Measure speed and correctness on this machine."),
    "completion": ("luciole.cli.completion:completion", "Print the completion script of a shell."),
}

_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):\S*@")


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        place, _ = COMMANDS[cmd_name]
        module, _, name = place.partition(":")
        try:
            found = getattr(import_module(module), name)
        except ModuleNotFoundError as problem:
            if problem.name is None or not module.startswith(problem.name):
                raise
            ctx.fail(f"'{cmd_name}' is not part of this installation")
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for a near miss, say which one was meant."""
        from luciole.service.checking import nearest  # noqa: PLC0415 - only a mistake needs it

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no such command {args[0]!r}; {nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview from the table."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="luciole", message="luciole %(version)s")
def cli() -> None:
    """Schedule jobs that fire once each, durably, on the database you already run.

    Start with `luciole demo`, then `luciole up module:app`. The store comes from --dsn or LUCIOLE_DSN.
    """


def _refuse_bytes(arguments: Sequence[str]) -> None:
    """Refuse arguments that are no text: no store can look for them."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise InvalidValue(
                f"{argument[:80]!a}: this argument is no UTF-8 text; write it in the encoding of the terminal"
            ) from None


def run(arguments: Sequence[str]) -> int:
    """Run one command line; return its exit code.

    2: the request is wrong. 3: the state does not allow it. 4: something is down; try again. 5: something must be
    repaired first. The bench has codes of its own.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    color = False if os.environ.get("NO_COLOR") else None
    try:
        _refuse_bytes(arguments)
        result = cli.main(args=list(arguments), prog_name="luciole", standalone_mode=False, color=color)
    except click.UsageError as problem:
        where = problem.ctx.command_path if problem.ctx is not None else "luciole"
        if problem.ctx is not None and problem.message == problem.ctx.get_help():
            click.echo(problem.message, err=True, color=color)  # A group alone was named: this is no mistake.
        else:
            _complain(f"{problem.format_message()} (see `{where} --help`)", color=color)
        return problem.exit_code
    except click.ClickException as problem:
        _complain(problem.format_message(), color=color)
        return problem.exit_code
    except (click.Abort, KeyboardInterrupt) as problem:
        return _unanswered(problem, color=color)
    except LucioleError as problem:
        _complain(hide_passwords(str(problem)), color=color)
        return problem.exit_code
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing more can be flushed at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return result if isinstance(result, int) else 0


def hide_passwords(text: str) -> str:
    """Return a text without the passwords of the addresses in it."""
    return _PASSWORD.sub(r"\1:***@", text)


def _unanswered(problem: BaseException, *, color: bool | None) -> int:
    """Return the exit code of a command that asked where nobody can answer.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    if isinstance(problem.__cause__ or problem.__context__, EOFError):
        _complain("nobody is here to say yes; pass --yes", color=color)
        return 2
    raise KeyboardInterrupt from problem


def _complain(text: str, *, color: bool | None) -> None:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True, color=color)
    click.echo(" ".join(text.split()), err=True)
