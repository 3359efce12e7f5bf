"""The standing pages of the documentation: measure what they show, and write them from what was measured.

    python scripts/standing_pages.py measure batch-size
    python scripts/standing_pages.py measure durability
    python scripts/standing_pages.py write

`measure` runs one short burst for each cell and keeps its figures in `docs/performance/standing/NAME.json`; `write`
makes the pages from these files, and a test compares them.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from luciole.bench.result import Result, read_result
from luciole.bench.verdict import Verdict

FOLDER = Path(__file__).parents[1] / "docs/performance"
KEPT = FOLDER / "standing"

#: What is written for one job: its cursor, its execution, its entry.
ROWS_PER_JOB = 3

_HEAD = """\
Made by `python scripts/standing_pages.py write` from `standing/{name}.json`: change that by measuring
(`python scripts/standing_pages.py measure {name}`), not this page.

Bursts of {jobs:,} jobs, median of {repeats}, on {cpu}, {cores} cores, {filesystem}, server and scheduler on the same
cores; measured {started}Z at revision {revision}. Compare rows, not machines.

"""

#: From so many repeats on a median says something.
_SURE_FROM = 3

_ROUGH = """\
**A rough look**: single runs, while others used the machine, so that two neighbouring rows may well be the other way
round. Rows that differ by more than twice say something."""

_BEFORE = """

## Before and after

The first row is the runnable "before" (`--path single`): one transaction a job, {commits:.2f} commits a job with its
report. The best row is {gain:.1f} times as fast with {top_commits:.4f} commits a job. What is saved is a flush, a
round trip and the running of a statement for each job; the rows are the same, and so is most of the log ({wal:,.0f}
bytes a job before, {top_wal:,.0f} after).
"""

_WHY_BATCH = """
## Why the default

A chunk begins at 200 jobs (`batch_size`) and grows while its transaction stays under 50 ms, to 2,000 at most; in a
burst of like schedules it has the most at once. Small chunks pay for each round trip and flush. Where the curve is flat
a larger one only holds its locks longer and gives more back when it fails: a chunk that is refused or broken off
writes nothing, and its jobs are planned again. Two connections keep the server busy while the other chunk is
decided; more win as long as it has cores.
"""

_WHY_DURABLE = """

A burst commits in chunks, so that many jobs share one flush: there is little left to win by giving durability up. What
enqueues one by one, each waiting for its own commit, gains more; there the client groups whatever is waiting. All
else in this documentation is measured at the defaults.
"""

_FIGURES = ("drain_rate", "settle_rate", "chunks", "commits_per_job", "wal_bytes_per_job", "client_cpu_us_per_job")


class Cell(NamedTuple):
    """One burst."""

    name: str
    words: tuple[str, ...]  #: options of `luciole bench run burst`


def batch_cells() -> list[Cell]:
    """Return a burst for each size and number of connections, and the runnable "before"."""
    found = [Cell("one transaction a job", ("--backend", "postgres", "--path", "single"))]
    for connections in (1, 2, 4):
        for batch in (50, 100, 200, 500, 1_000, 2_000):
            words = ("--backend", "postgres", "--connections", str(connections), "--batch-max", str(batch))
            found.append(Cell(f"{batch} x {connections}", (*words, "--batch", str(min(batch, 200)))))
    return found


def durability_cells() -> list[Cell]:
    """Return a burst for each durability setting of each store."""
    settings = {
        "postgres, all on (default)": ("--backend", "postgres"),
        "postgres, full_page_writes=off": ("--backend", "postgres", "--set", "full_page_writes=off"),
        "postgres, synchronous_commit=off": ("--backend", "postgres", "--set", "synchronous_commit=off"),
        "postgres, fsync=off": ("--backend", "postgres", "--set", "fsync=off"),
        "sqlite, synchronous=full (default)": ("--backend", "sqlite"),
        "sqlite, synchronous=normal": ("--backend", "sqlite", "--set", "synchronous=normal"),
        "sqlite, synchronous=off": ("--backend", "sqlite", "--set", "synchronous=off"),
    }
    return [Cell(name, words) for name, words in settings.items()]


#: What a power cut, or a crash of the system, may take; the end of a process takes nothing in any of them.
LOSES = {
    "postgres, all on (default)": "nothing that was acknowledged",
    "postgres, full_page_writes=off": (
        "nothing on a disk that writes 8 KiB whole or not at all; elsewhere a torn page damages the database"
    ),
    "postgres, synchronous_commit=off": (
        "the acknowledged transactions of the last moments (three times wal_writer_delay, 0.6 s): what ran in them "
        "runs again, and what was enqueued in them is gone"
    ),
    "postgres, fsync=off": "the database: it may not start again",
    "sqlite, synchronous=full (default)": "nothing that was acknowledged",
    "sqlite, synchronous=normal": "the transactions since the last checkpoint of the log; the file stays sound",
    "sqlite, synchronous=off": "the file: it may be damaged",
}


def measure(name: str, *, jobs: int, repeats: int, only: str = "") -> Path:
    """Measure the cells of one page; return the file of their figures, which is written after each of them.

    Args:
        name: of the page.
        jobs: of each burst.
        repeats: of each burst.
        only: measure the cells whose name holds this, and keep the figures of the others.

    Raises:
        SystemExit: a run did not end well; what was measured before it is kept.
    """
    path = KEPT / f"{name}.json"
    KEPT.mkdir(exist_ok=True)
    order = _PAGES[name].cells()
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["cells"] if only and path.is_file() else {}
    for cell in order:
        if only not in cell.name:
            continue
        result = _run(cell, jobs=jobs, repeats=repeats)
        kept[cell.name] = _kept(result) | {"command": ["luciole", "bench", "run", "burst", *cell.words]}
        found = {
            "machine": {key: result.environment.get(key) for key in ("cpu", "cores", "kernel", "filesystem")},
            "fingerprint": result.environment.get("fingerprint"),
            "revision": result.product["revision"],
            "started": result.started,
            "jobs": jobs,
            "repeats": repeats,
            "cells": {one.name: kept[one.name] for one in order if one.name in kept},
        }
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return path


def _run(cell: Cell, *, jobs: int, repeats: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        own = ("--size", "ci", "--jobs", str(jobs), "--repeats", str(repeats), "--ceiling", "none", "--out", folder)
        command = [sys.executable, "-m", "luciole", "bench", "run", "burst", *cell.words, *own]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        last = done.stdout.strip().splitlines()[-1:]
        sys.stdout.write(f"{cell.name}: {''.join(last)}\n")
        sys.stdout.flush()
        if done.returncode != Verdict.OK:
            raise SystemExit(done.stderr[-2_000:])
        return read_result(Path(folder))


def _kept(result: Result) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for one in result.metrics:
        if one.name in _FIGURES:
            kept[one.name] = {"median": one.median, "least": one.low, "greatest": one.high}
        elif one.name == "commit_time" and one.distribution:
            kept["commit_time_us"] = {"p50": one.distribution.p50, "p99": one.distribution.p99}
    return kept


def batch_page(found: dict[str, Any]) -> str:
    """Return the page about the size of a chunk."""
    cells = found["cells"]
    lines = [
        "# The size of a chunk",
        "",
        *_head(found, "batch-size"),
        "A chunk is one transaction of the planner: cursors moved, executions made, entries put into the outbox.",
        "",
        "| jobs a chunk, at most | connections | jobs/s | of best | transaction p50/p99, ms | rows a failure undoes |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    best = max(cell["drain_rate"]["median"] for cell in cells.values())
    for name, cell in cells.items():
        batch, _, connections = ("1", "", "the store's") if " x " not in name else name.partition(" x ")
        rate, time_us = cell["drain_rate"]["median"], cell["commit_time_us"]
        lines.append(
            f"| {int(batch):,} | {connections} | {rate:,.0f} | {rate / best:.0%} | "
            f"{time_us['p50'] / 1_000:.1f} / {time_us['p99'] / 1_000:.1f} | {int(batch) * ROWS_PER_JOB:,} |"
        )
    single = cells["one transaction a job"]
    gain = best / single["drain_rate"]["median"]
    commits = single["commits_per_job"]["median"]
    top = max(cells.values(), key=lambda cell: cell["drain_rate"]["median"])
    before_and_after = _BEFORE.format(
        gain=gain,
        commits=commits,
        top_commits=top["commits_per_job"]["median"],
        wal=single["wal_bytes_per_job"]["median"],
        top_wal=top["wal_bytes_per_job"]["median"],
    )
    return "\n".join(lines) + before_and_after + _WHY_BATCH


def durability_page(found: dict[str, Any]) -> str:
    """Return the page about durability settings."""
    cells = found["cells"]
    lines = [
        "# What durability costs",
        "",
        *_head(found, "durability"),
        "| store and setting | planned, jobs/s | settled, jobs/s | against its default | what a power cut may take |",
        "|---|--:|--:|--:|---|",
    ]
    for name, cell in cells.items():
        store = name.partition(",")[0]
        default = next(one for other, one in cells.items() if other.startswith(store) and "(default)" in other)
        gain = cell["drain_rate"]["median"] / default["drain_rate"]["median"]
        lines.append(
            f"| {name} | {cell['drain_rate']['median']:,.0f} | {cell['settle_rate']['median']:,.0f} | {gain:.2f} | "
            f"{LOSES[name]} |"
        )
    return "\n".join(lines) + _WHY_DURABLE


def _head(found: dict[str, Any], name: str) -> list[str]:
    machine = found["machine"]
    text = _HEAD.format(
        name=name,
        jobs=found["jobs"],
        repeats=found["repeats"],
        started=found["started"][:16],
        revision=str(found["revision"])[:12],
        **machine,
    )
    return [*text.splitlines(), *([_ROUGH, ""] if found["repeats"] < _SURE_FROM else [])]


class _Page(NamedTuple):
    cells: Callable[[], list[Cell]]
    text: Callable[[dict[str, Any]], str]


_PAGES = {"batch-size": _Page(batch_cells, batch_page), "durability": _Page(durability_cells, durability_page)}


def pages() -> dict[Path, str]:
    """Return each page that has figures, as it must be."""
    found = {}
    for name, page in _PAGES.items():
        source = KEPT / f"{name}.json"
        if source.is_file():
            found[FOLDER / f"{name}.md"] = page.text(json.loads(source.read_text(encoding="utf-8")))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure or write; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("measure", "write"))
    parser.add_argument("name", nargs="?", choices=tuple(_PAGES))
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="cells whose name holds this; the others keep their figures")
    options = parser.parse_args(arguments)
    if options.verb == "measure":
        if options.name is None:
            parser.error("measure what? name a page")
        sys.stdout.write(f"{measure(options.name, jobs=options.jobs, repeats=options.repeats, only=options.only)}\n")
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
