"""Comma-separated values: one line for each figure and repeat, for spreadsheets and data frames."""

from csv import writer
from io import StringIO

from luciole.bench.exporting.subject import subject
from luciole.bench.result import Result

COLUMNS = ("started", "revision", "fingerprint", "subject", "metric", "unit", "better", "repeat", "value")


def csv(result: Result) -> str:
    """Return every value of every figure, those that only describe included, below a line of names."""
    text = StringIO()
    lines = writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    origin = (
        result.started,
        result.product.get("revision", "unknown"),
        result.environment.get("fingerprint", "unknown"),
        subject(result),
    )
    for metric in result.metrics:
        for repeat, value in enumerate(metric.values):
            lines.writerow((*origin, metric.name, metric.unit, metric.direction, repeat, repr(value)))
    return text.getvalue()
