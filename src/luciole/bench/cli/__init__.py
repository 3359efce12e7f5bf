"""`luciole bench`: the command line of the bench."""

import click

from luciole.bench.cli.ab import ab
from luciole.bench.cli.backlog import backlog
from luciole.bench.cli.burst import burst
from luciole.bench.cli.capacity import capacity
from luciole.bench.cli.chaos import chaos
from luciole.bench.cli.compare import compare
from luciole.bench.cli.doctor import doctor_command
from luciole.bench.cli.drain import drain
from luciole.bench.cli.enqueue import enqueue
from luciole.bench.cli.export import export, repro
from luciole.bench.cli.group import BenchGroup, RunGroup, all_ended
from luciole.bench.cli.idle import idle
from luciole.bench.cli.kept import baseline, calibrate, trend_command
from luciole.bench.cli.micro import micro
from luciole.bench.cli.mixed import mixed
from luciole.bench.cli.options import end
from luciole.bench.cli.pickup import pickup
from luciole.bench.cli.probe import probe
from luciole.bench.cli.register import register
from luciole.bench.cli.report import report_command
from luciole.bench.cli.selftest import selftest
from luciole.bench.cli.soak import soak
from luciole.bench.cli.steady import steady
from luciole.bench.cli.store import store
from luciole.bench.profiles import PROFILES
from luciole.bench.verdict import Verdict

__all__ = ["bench"]


@click.group(cls=BenchGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def bench() -> None:
    """Measure speed and correctness on this machine, on the product's own code path.

    Exit codes: 0 ok, 1 regression, 2 usage, 3 correctness violated (the figures are void), 4 not comparable, 5
    inconclusive (with --strict), 6 run invalid, 7 objective not met, 8 backend unavailable. The last line of the
    output is `bench: VERDICT`; `result.json` is written on failure too.
    """


@bench.command("list")
def list_profiles() -> int:
    """List the profiles and the question that each answers."""
    for profile in PROFILES.values():
        click.echo(f"{profile.name:10} {profile.question}")
        click.echo(f"{'':10} on {', '.join(profile.backends)}; {profile.border}")
    return end(Verdict.OK, f"{len(PROFILES)} profiles")


@bench.group(cls=RunGroup, chain=True)
def run() -> None:
    """Run a profile, or several one after the other: `run burst --size ci register --size ci`."""


run.result_callback()(all_ended)


for command in (
    backlog,
    burst,
    chaos,
    drain,
    enqueue,
    idle,
    micro,
    mixed,
    pickup,
    register,
    soak,
    steady,
    store,
):
    run.add_command(command)
for command in (
    ab,
    baseline,
    calibrate,
    capacity,
    compare,
    doctor_command,
    export,
    micro,
    probe,
    report_command,
    repro,
    selftest,
    trend_command,
):
    bench.add_command(command)
