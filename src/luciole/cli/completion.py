"""`luciole completion`."""

import click
from click.shell_completion import get_completion_class

_HOW = {
    "bash": "luciole completion bash > ~/.local/share/bash-completion/completions/luciole",
    "zsh": "luciole completion zsh > ~/.zfunc/_luciole",
    "fish": "luciole completion fish > ~/.config/fish/completions/luciole.fish",
}


@click.command(epilog="To install: " + "; ".join(_HOW.values()))
@click.argument("shell", type=click.Choice(list(_HOW)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    kind = get_completion_class(shell)
    assert kind is not None  # All choices come with click.
    click.echo(kind(ctx.find_root().command, {}, "luciole", "_LUCIOLE_COMPLETE").source())
