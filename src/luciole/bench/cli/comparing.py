"""What the commands that compare results share: options, and the way from them to a table."""

from pathlib import Path
from typing import Any

import click

from luciole.bench.deciding.accepted import read_accepted
from luciole.bench.deciding.comparing import Comparison, Rule, Terms
from luciole.bench.deciding.comparing import compare as compare_results
from luciole.bench.deciding.kept import PERF, Kept
from luciole.bench.deciding.likeness import Likeness
from luciole.bench.deciding.sequential import THRESHOLD
from luciole.bench.deciding.table import table
from luciole.bench.result import Result
from luciole.model.instant import to_datetime
from luciole.runtime.clock import SystemClock


def share(_: click.Context, __: click.Parameter, value: str) -> float:
    """Read `5%` or `0.05` as a number between 0 and 10; what an option calls with its text."""
    try:
        number = float(value.strip().removesuffix("%")) / (100 if value.strip().endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 10:  # noqa: PLR2004 - eleven times as slow is wrong by any measure
        raise click.BadParameter(f"{value!r} is no share; say 5% or 0.05")
    return number


PERF_FOLDER = click.option(
    "--perf",
    "perf",
    type=click.Path(file_okay=False, path_type=Path),
    default=PERF,
    show_default=True,
    help="Where baselines, noise and accepted.toml are kept.",
)


def comparing(command: Any) -> Any:  # noqa: ANN401 - a decorator of a click command
    """Add the options that say how to compare."""
    for option in reversed(
        (
            click.option(
                "--rule",
                type=click.Choice(["evidence", "threshold"]),
                default="evidence",
                show_default=True,
                help="Medians and, where both sides have four values, an exact rank test; or medians alone.",
            ),
            click.option(
                "--threshold",
                callback=share,
                metavar="SHARE",
                default=f"{THRESHOLD:.0%}",
                show_default=True,
                help="By how much what is timed may become worse; what is counted may by 1 % (3 % under load).",
            ),
            click.option(
                "--allow",
                type=click.Choice([likeness.value for likeness in Likeness]),
                multiple=True,
                help="What may differ between the two; without it, exit code 4.",
            ),
            PERF_FOLDER,
        )
    ):
        command = option(command)
    return command


def terms_of(options: dict[str, Any], new: Result) -> Terms:
    """Return how to compare with a result, from options.

    Raises:
        BenchError: what is kept can't be read.
    """
    kept = Kept(options.get("perf") or PERF)
    noise = kept.read_noise(new)
    rule: Rule = options.get("rule") or "evidence"
    return Terms(
        today=to_datetime(SystemClock().now_us()).date(),
        rule=rule,
        threshold=THRESHOLD if options.get("threshold") is None else options["threshold"],
        allow=frozenset(Likeness(word) for word in options.get("allow") or ()),
        accepted=read_accepted(kept.accepted),
        noise=noise.spread if noise else None,
    )


def compared(old: Result, new: Result, options: dict[str, Any]) -> Comparison:
    """Compare two results as options say, and show the table.

    Raises:
        BenchError: what is kept can't be read.
    """
    comparison = compare_results(old, new, terms_of(options, new))
    click.echo(table(old, new, comparison))
    return comparison
