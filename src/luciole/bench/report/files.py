"""The files that stand beside a result: the page, its Markdown, and the ways of jobs for viewers of traces."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from luciole.bench.attribution.traces import chrome_trace
from luciole.bench.report.html import page
from luciole.bench.report.markdown import summary
from luciole.bench.result import Result

REPORT_NAME = "report.html"
MARKDOWN_NAME = "report.md"
TRACE_NAME = "trace.json"


def write_reports(results: Sequence[Result], folder: Path) -> None:
    """Write all of them into a folder; ways are those of the last result's last repeat that has any."""
    folder.mkdir(parents=True, exist_ok=True)
    write_page(results, folder / REPORT_NAME)
    told = results[-1]
    (folder / MARKDOWN_NAME).write_text(summary(told) + "\n", encoding="utf-8")
    traces = next((repeat.traces for repeat in reversed(told.repeats) if repeat.traces), None)
    if traces:
        (folder / TRACE_NAME).write_bytes(msgspec.json.encode(chrome_trace(traces)))


def write_page(results: Sequence[Result], path: Path) -> None:
    """Write the page of one result or of several side by side."""
    path.write_text(page(results), encoding="utf-8")
