"""`bench doctor`."""

import click

from luciole.bench.doctor import findings


@click.command("doctor")
def doctor_command() -> None:
    """Say what this machine can measure, what not, and why."""
    for finding in findings():
        click.echo(f"{'ok     ' if finding.found else 'missing'} {finding.name:28} {finding.text}")
