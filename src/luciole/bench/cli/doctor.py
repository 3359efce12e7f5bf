"""`bench doctor`."""

import click

from luciole.bench.cli.options import end
from luciole.bench.doctor import findings
from luciole.bench.verdict import Verdict


@click.command("doctor")
def doctor_command() -> int:
    """Say what this machine can measure, what not, and why."""
    found = findings()
    for finding in found:
        click.echo(f"{'ok     ' if finding.found else 'missing'} {finding.name:28} {finding.text}")
    return end(Verdict.OK, f"{sum(finding.found for finding in found)} of {len(found)} are here")
