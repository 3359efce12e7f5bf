"""The custom formats of github-action-benchmark: one list for what should grow, another for what should shrink."""

from typing import Literal

import msgspec

from luciole.bench.exporting.subject import shown, subject
from luciole.bench.result import Result

#: `customBiggerIsBetter` or `customSmallerIsBetter`: the tool takes one direction a file.
Better = Literal["bigger", "smaller"]


def gha(result: Result, better: Better) -> str:
    """Return the figures of one direction as JSON: name, unit, value, range, extra."""
    wanted = {"bigger": {"higher"}, "smaller": {"lower", "zero"}}[better]
    entries = [
        {
            "name": f"{subject(result)} {metric.name}",
            "unit": metric.unit,
            "value": metric.median,
            "range": f"{metric.low:g} to {metric.high:g}",
            "extra": f"repeats: {len(metric.values)}\nfingerprint: {result.environment.get('fingerprint', 'unknown')}",
        }
        for metric in shown(result)
        if metric.direction in wanted
    ]
    return msgspec.json.format(msgspec.json.encode(entries), indent=2).decode("utf-8") + "\n"
