"""Bencher Metric Format: `{benchmark: {measure: {value, lower_value, upper_value}}}`."""

import msgspec

from luciole.bench.exporting.subject import shown, subject
from luciole.bench.result import Result


def bmf(result: Result) -> str:
    """Return a result as JSON for Bencher; the bounds are the least and the greatest repeat."""
    measures = {
        metric.name.replace("_", "-"): {
            "value": metric.median,
            "lower_value": metric.low,
            "upper_value": metric.high,
        }
        for metric in shown(result)
    }
    return _json({subject(result): measures})


def _json(document: object) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode("utf-8") + "\n"
