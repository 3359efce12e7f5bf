"""The standing pages of the documentation: measure what they show, and write them from what was measured.

    python scripts/standing_pages.py measure batch-size
    python scripts/standing_pages.py measure durability
    python scripts/standing_pages.py write

`measure` runs short slices of the bench in rounds, each round all cells one after the other, so that a machine that
drifts favours none of them; what it found stands in `docs/performance/standing/NAME.json`. A further `measure` at the
same revision adds rounds. `write` makes the pages from these files, and a test compares them.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import psutil

from luciole.bench.percentiles import merged
from luciole.bench.result import Percentiles, Result, read_result
from luciole.bench.verdict import Verdict

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/performance"
KEPT = FOLDER / "standing"

#: What is written for one job: its cursor, its execution, its entry.
ROWS_PER_JOB = 3

#: From so many rounds on a median says something.
SURE_FROM = 3

#: A machine is quiet when no more of its cores than this was in use, on average, while nothing of ours ran.
QUIET_MAX = 0.1

#: How long is looked at what others use, before each slice.
_LOOK_S = 0.3

#: Jobs of the burst that commits one by one, which would take minutes otherwise.
_SINGLE_JOBS = 10_000

_HEAD = """\
Made by `python scripts/standing_pages.py write` from `standing/{name}.json`: change that by measuring
(`python scripts/standing_pages.py measure {name}`), not this page.

Bursts of {jobs:,} jobs, medians (rounds: {rounds}), on {cpu}, {cores} cores, {filesystem}, server and scheduler on the
same cores; measured {started}Z at revision {revision}. Compare rows, not machines.
"""

_ROUGH = "**A rough look**: {reasons}. Rows that differ by more than twice say something.\n"

_BATCH_TABLE = """\
A chunk is one transaction of the planner: cursors moved, executions made, entries put into the outbox. "Really" is what
its chunks held on average: those at the end of a shard hold what is left. "Took" is the time of a transaction, "undone"
what its failure takes back.

| jobs a chunk, at most | really | connections | jobs/s | least-greatest | of best | took p50/p99, ms | undone rows |
|--:|--:|--:|--:|--:|--:|--:|--:|"""

_BEFORE = """
## Before and after

The first row is the runnable "before" (`--path single`, {jobs:,} jobs): one transaction a job, {commits:.2f} commits a
job with its report. The best row is {gain:.1f} times as fast with {top_commits:.4f} commits a job. What is saved is a
flush, a round trip and the running of a statement for each job; the rows are the same, and so is most of the log
({wal:,.0f} bytes a job before, {top_wal:,.0f} after).
"""

_WHY_BATCH = """
## Why the default

A chunk begins at 200 jobs (`batch_size`) and grows while its transaction stays under 50 ms, to 2,000 at most; in a
burst of like schedules it has the most at once. Small chunks pay for each round trip and flush. Where the curve is flat
a larger one only holds its locks longer and gives more back when it fails: a chunk that is refused or broken off
writes nothing, and its jobs are planned again. Two connections keep the server busy while the other chunk is
decided; more win as long as it has cores.
"""

_DURABLE_BURST = """\
## A burst

| store and setting | planned, jobs/s | least-greatest | settled, jobs/s | both, by default's | a power cut may take |
|---|--:|--:|--:|--:|---|"""

_DURABLE_STEADY = """
## A steady load

{schedules:,} schedules of {period} s with a handler that does nothing, {rate:,.0f} starts a second for {duration} s, a
node and an executor over gRPC. The load is given, so that it is lag, CPU and writes of the disk that can change.

| store and setting | due to started p50/p99, ms | CPU for one execution, us | by the default's | disk operations/s |
|---|--:|--:|--:|--:|"""

_DURABLE_SINGLE = """
## One by one

Enqueues that each wait for their own commit, which is where a flush has nobody to share it with; and the same in bulk.

| store and setting | one by one, jobs/s | by the default's | in bulk, jobs/s | by the default's |
|---|--:|--:|--:|--:|"""

_WHY_DURABLE = """
## What follows

{sentences}

All else in this documentation is measured at the defaults. `fsync=off` is here as a warning only: it must never run
with data that somebody wants to keep. `synchronous_commit` also knows `remote_write` and `remote_apply`: they wait
for a standby, which there is none of here, so they would be measured as `on`.
"""

#: What is kept of each profile.
_FIGURES = {
    "burst": (
        *("drain_rate", "settle_rate", "end_to_end_rate", "commits_per_job", "wal_bytes_per_job"),
        "client_cpu_us_per_job",
    ),
    "steady": ("cpu_us", "iops", "start_rate", "commits_per_execution"),
    "enqueue": ("single_rate", "keyed_rate", "bulk_rate"),
}
_DISTRIBUTIONS = {"burst": "commit_time", "steady": "start_lag"}


class Slice(NamedTuple):
    """One run of the bench."""

    profile: str
    words: tuple[str, ...]  #: options of `luciole bench run PROFILE`
    every_round: bool = True  #: or once is enough: what it counts hardly varies


class Cell(NamedTuple):
    """What one row of a page is made of."""

    name: str
    slices: tuple[Slice, ...]


class Sizes(NamedTuple):
    """How much is measured."""

    jobs: int = 50_000  #: of each burst
    schedules: int = 20_000  #: of each steady load
    period_s: int = 8  #: of it, and the length of its window
    singles: int = 1_000  #: enqueues one by one

    @property
    def burst(self) -> tuple[str, ...]:
        """The options of each burst."""
        return ("--size", "ci", "--jobs", str(self.jobs), "--ceiling", "none")


#: Runs a slice and returns its result.
Runner = Callable[[Slice], Result]


def batch_cells(sizes: Sizes) -> list[Cell]:
    """Return a burst for each size and number of connections, and the runnable "before"."""
    on = ("--backend", "postgres")
    single = sizes._replace(jobs=min(sizes.jobs, _SINGLE_JOBS))
    found = [Cell("one transaction a job", (Slice("burst", (*on, "--path", "single", *single.burst)),))]
    for connections in (1, 2, 4):
        for batch in (50, 100, 200, 500, 1_000, 2_000):
            words = ("--connections", str(connections), "--batch-max", str(batch), "--batch", str(min(batch, 200)))
            found.append(Cell(f"{batch} x {connections}", (Slice("burst", (*on, *words, *sizes.burst)),)))
    return found


def durability_cells(sizes: Sizes) -> list[Cell]:
    """Return a burst, a steady load and enqueues for each durability setting of each store."""
    load = ("--schedules", str(sizes.schedules), "--period-s", str(sizes.period_s), "--duration-s", str(sizes.period_s))
    steady = ("--size", "ci", "--handler", "noop", *load)
    enqueue = ("--size", "ci", "--singles", str(sizes.singles), "--duration-s", "1")
    found = []
    for name in LOSES:
        store, _, setting = name.partition(", ")
        on = ("--backend", store, *(() if "default" in setting else ("--set", setting)))
        found.append(
            Cell(
                name,
                (
                    Slice("burst", (*on, *sizes.burst)),
                    Slice("enqueue", (*on, *enqueue)),
                    Slice("steady", (*on, *steady), every_round=False),
                ),
            )
        )
    return found


#: What a power cut, or a crash of the system, may take; the end of a process takes nothing in any of them.
LOSES = {
    "postgres, all on (default)": "nothing that was acknowledged",
    "postgres, full_page_writes=off": (
        "nothing on a disk that writes 8 KiB whole or not at all; elsewhere a torn page damages the database"
    ),
    "postgres, synchronous_commit=local": (
        "nothing that was acknowledged, as long as this server's own disk is left; it waits for no standby"
    ),
    "postgres, synchronous_commit=off": (
        "the acknowledged transactions of the last moments (three times wal_writer_delay, 0.6 s): what ran in them "
        "runs again, and what was enqueued in them is gone"
    ),
    "postgres, fsync=off": "**the database**: it may not start again",
    "sqlite, synchronous=full (default)": "nothing that was acknowledged",
    "sqlite, synchronous=normal": "the transactions since the last checkpoint of the log; the file stays sound",
    "sqlite, synchronous=off": "**the file**: it may be damaged",
}


def measure(name: str, *, sizes: Sizes, rounds: int, run: Runner, only: str = "") -> Path:
    """Measure the cells of one page; return the file of their figures, which is written after each of them.

    Args:
        name: of the page.
        sizes: how much.
        rounds: to add to those of the same revision, machine and sizes; figures of others are thrown away.
        run: runs a slice.
        only: measure the cells whose name holds this, and keep the figures of the others.

    Raises:
        SystemExit: a run did not end well; what was measured before it is kept.
    """
    path = KEPT / f"{name}.json"
    KEPT.mkdir(exist_ok=True)
    cells = _PAGES[name].cells(sizes)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for number in range(rounds):
        for cell in cells:
            if only not in cell.name:
                continue
            for one in cell.slices:
                if not one.every_round and one.profile in found.get("cells", {}).get(cell.name, {}):
                    continue
                busy = psutil.cpu_percent(interval=_LOOK_S) / 100
                result = run(one)
                head = _head_of(result, sizes)
                if {key: found.get(key) for key in head} != head:
                    found = {**head, "started": result.started, "busy": [], "cells": {}}
                found["busy"].append(round(busy, 3))
                _keep(found["cells"].setdefault(cell.name, {}), one, result)
                figures = ", ".join(f"{one.name} {one.median:,.6g}" for one in result.metrics[:3])
                sys.stdout.write(f"round {number + 1}/{rounds}  {cell.name}: {one.profile}: {figures}\n")
                sys.stdout.flush()
                found["cells"] = {one.name: found["cells"][one.name] for one in cells if one.name in found["cells"]}
                path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return path


def _head_of(result: Result, sizes: Sizes) -> dict[str, Any]:
    """Return what must be alike for figures to stand in one table."""
    return {
        "machine": {key: result.environment.get(key) for key in ("cpu", "cores", "kernel", "filesystem")},
        "fingerprint": result.environment.get("fingerprint"),
        "revision": result.product["revision"],
        "clean": not changed(),
        "sizes": sizes._asdict(),
    }


def changed() -> str:
    """Return the files of the product and of this measurement that no revision holds; what is measured may change."""
    command = ["git", "-C", str(ROOT), "status", "--porcelain", "--", "src", "scripts", "pyproject.toml"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run_slice(one: Slice) -> Result:
    """Run a slice by the command that a user runs.

    Raises:
        SystemExit: it did not end well.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "luciole", "bench", "run", one.profile, *one.words]
        own = ("--repeats", "1", "--out", folder)
        done = subprocess.run([*command, *own], check=False, capture_output=True, text=True)
        if done.returncode not in {Verdict.OK, Verdict.OBJECTIVE_MISSED}:
            last = done.stdout.strip().splitlines()[-1:]
            raise SystemExit(f"{' '.join(command[1:])}: {''.join(last)}\n{done.stderr[-2_000:]}")
        return read_result(Path(folder))


def _keep(cell: dict[str, Any], one: Slice, result: Result) -> None:
    """Add what a slice found to a cell: a value a round, distributions merged."""
    kept = cell.setdefault(one.profile, {"options": list(one.words), "figures": {}})
    for metric in result.metrics:
        if metric.name in _FIGURES[one.profile]:
            kept["figures"].setdefault(metric.name, []).append(round(metric.median, 6))
        elif metric.name == _DISTRIBUTIONS.get(one.profile) and metric.distribution:
            before = [Percentiles(**kept["distribution"])] if "distribution" in kept else []
            whole = merged([*before, metric.distribution])
            kept["distribution"] = {key: getattr(whole, key) for key in whole.__struct_fields__}


def batch_page(found: dict[str, Any]) -> str:
    """Return the page about the size of a chunk."""
    cells: dict[str, dict[str, Any]] = {name: cell["burst"] for name, cell in found["cells"].items()}
    best = max(_of(cell, "drain_rate") for cell in cells.values())
    lines = ["# The size of a chunk", "", *_head(found, "batch-size"), *_BATCH_TABLE.splitlines()]
    for name, cell in cells.items():
        is_single = " x " not in name
        batch, _, connections = ("1", "", "the store's") if is_single else name.partition(" x ")
        rate, took = _of(cell, "drain_rate"), cell["distribution"]
        jobs = min(found["sizes"]["jobs"], _SINGLE_JOBS) if is_single else found["sizes"]["jobs"]
        really = jobs * len(cell["figures"]["drain_rate"]) / took["count"]
        lines.append(
            f"| {int(batch):,} | {really:,.0f} | {connections} | {rate:,.0f} | {_range(cell, 'drain_rate')} | "
            f"{rate / best:.0%} | {took['p50'] / 1_000:.1f} / {took['p99'] / 1_000:.1f} | "
            f"{int(batch) * ROWS_PER_JOB:,} |"
        )
    single = cells["one transaction a job"]
    top = max(cells.values(), key=lambda cell: _of(cell, "drain_rate"))
    before_and_after = _BEFORE.format(
        jobs=min(found["sizes"]["jobs"], _SINGLE_JOBS),
        gain=best / _of(single, "drain_rate"),
        commits=_of(single, "commits_per_job"),
        top_commits=_of(top, "commits_per_job"),
        wal=_of(single, "wal_bytes_per_job"),
        top_wal=_of(top, "wal_bytes_per_job"),
    )
    return "\n".join(lines) + "\n" + before_and_after + _WHY_BATCH


def durability_page(found: dict[str, Any]) -> str:
    """Return the page about durability settings."""
    cells: dict[str, dict[str, Any]] = found["cells"]
    sizes = Sizes(**found["sizes"])
    lines = ["# What durability costs", "", *_head(found, "durability"), *_DURABLE_BURST.splitlines()]
    for name, cell in cells.items():
        burst, default = cell["burst"], cells[_default(name)]["burst"]
        lines.append(
            f"| {name} | {_of(burst, 'drain_rate'):,.0f} | {_range(burst, 'drain_rate')} | "
            f"{_of(burst, 'settle_rate'):,.0f} | {_ratio(burst, default, 'end_to_end_rate')} | {LOSES[name]} |"
        )
    rate = sizes.schedules / sizes.period_s
    lines += _DURABLE_STEADY.format(
        schedules=sizes.schedules, period=sizes.period_s, duration=sizes.period_s, rate=rate
    ).splitlines()
    for name, cell in cells.items():
        steady, default = cell["steady"], cells[_default(name)]["steady"]
        lag = steady["distribution"]
        lines.append(
            f"| {name} | {lag['p50'] / 1_000:.1f} / {lag['p99'] / 1_000:.1f} | {_of(steady, 'cpu_us'):,.0f} | "
            f"{_ratio(steady, default, 'cpu_us')} | {_of(steady, 'iops'):,.0f} |"
        )
    lines += _DURABLE_SINGLE.splitlines()
    for name, cell in cells.items():
        enqueue, default = cell["enqueue"], cells[_default(name)]["enqueue"]
        lines.append(
            f"| {name} | {_of(enqueue, 'single_rate'):,.0f} | {_ratio(enqueue, default, 'single_rate')} | "
            f"{_of(enqueue, 'bulk_rate'):,.0f} | {_ratio(enqueue, default, 'bulk_rate')} |"
        )
    return "\n".join(lines) + "\n" + _WHY_DURABLE.format(sentences="\n".join(_durable_sentences(cells)))


def _durable_sentences(cells: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield what the figures say, store by store, so that no sentence outlives them."""
    for store, default, other, what in (
        ("PostgreSQL", "postgres, all on (default)", "postgres, synchronous_commit=off", "without waiting for a flush"),
        ("SQLite", "sqlite, synchronous=full (default)", "sqlite, synchronous=normal", "with `synchronous=normal`"),
    ):
        one, two = cells[default], cells[other]
        gains = [
            _of(two[profile], figure) / _of(one[profile], figure)
            for profile, figure in (("burst", "end_to_end_rate"), ("enqueue", "single_rate"))
        ]
        cpu = _of(two["steady"], "cpu_us") / _of(one["steady"], "cpu_us")
        lags = [cell["steady"]["distribution"]["p50"] / 1_000 for cell in (one, two)]
        yield (
            f"- {store} {what}: a burst from due to settled is {gains[0]:.2f} times as fast, enqueues one by one "
            f"{gains[1]:.2f} times. A steady load takes {cpu:.2f} of the CPU, and half of its handlers start within "
            f"{lags[1]:.1f} ms instead of {lags[0]:.1f}."
        )


def _default(name: str) -> str:
    """Return the cell that a cell's store stands by."""
    store = name.partition(",")[0]
    return next(other for other in LOSES if other.startswith(store) and "(default)" in other)


def _of(part: dict[str, Any], figure: str) -> float:
    values: list[float] = part["figures"][figure]
    return median(values)


def _range(part: dict[str, Any], figure: str) -> str:
    values = part["figures"][figure]
    return f"{min(values):,.0f}-{max(values):,.0f}"


def _ratio(part: dict[str, Any], default: dict[str, Any], figure: str) -> str:
    return f"{_of(part, figure) / _of(default, figure):.2f}"


def rounds_of(found: dict[str, Any]) -> int:
    """Return how many rounds every cell has."""
    return min((len(cell["burst"]["figures"]["drain_rate"]) for cell in found["cells"].values()), default=0)


def is_whole(found: dict[str, Any], cells: Sequence[Cell]) -> bool:
    """Return whether every slice of every cell was measured."""
    kept = found["cells"]
    return all(one.profile in kept.get(cell.name, {}) for cell in cells for one in cell.slices)


def rough_because(found: dict[str, Any]) -> list[str]:
    """Return why figures are only a rough look; none: they are sure."""
    reasons = []
    if rounds_of(found) < SURE_FROM:
        reasons.append(f"rounds: {rounds_of(found)}, so that neighbouring rows may well be the other way round")
    if not found["clean"]:
        reasons.append("measured with changes that no revision holds")
    if mean(found["busy"]) > QUIET_MAX:
        reasons.append(f"others used {mean(found['busy']):.0%} of the machine")
    return reasons


def _head(found: dict[str, Any], name: str) -> list[str]:
    text = _HEAD.format(
        name=name,
        jobs=found["sizes"]["jobs"],
        rounds=rounds_of(found),
        started=found["started"][:16],
        revision=str(found["revision"])[:12],
        **found["machine"],
    )
    reasons = rough_because(found)
    return [*text.splitlines(), "", *(_ROUGH.format(reasons="; ".join(reasons)).split("\n") if reasons else [])]


class _Page(NamedTuple):
    cells: Callable[[Sizes], list[Cell]]
    text: Callable[[dict[str, Any]], str]


_PAGES = {"batch-size": _Page(batch_cells, batch_page), "durability": _Page(durability_cells, durability_page)}


def pages() -> dict[Path, str]:
    """Return each page that has all its figures, as it must be."""
    texts = {}
    for name, page in _PAGES.items():
        source = KEPT / f"{name}.json"
        found: dict[str, Any] = json.loads(source.read_text(encoding="utf-8")) if source.is_file() else {}
        if "sizes" in found and is_whole(found, page.cells(Sizes(**found["sizes"]))):
            texts[FOLDER / f"{name}.md"] = page.text(found)
    return texts


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure or write; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("measure", "write"))
    parser.add_argument("name", nargs="?", choices=tuple(_PAGES))
    parser.add_argument("--rounds", type=int, default=SURE_FROM, help="to add to those of the same revision")
    parser.add_argument("--only", default="", help="cells whose name holds this; the others keep their figures")
    for field, value in Sizes()._asdict().items():
        parser.add_argument(f"--{field.replace('_', '-')}", type=int, default=value)
    options = parser.parse_args(arguments)
    if options.verb == "measure":
        if options.name is None:
            parser.error("measure what? name a page")
        sizes = Sizes(*(getattr(options, field) for field in Sizes._fields))
        path = measure(options.name, sizes=sizes, rounds=options.rounds, run=run_slice, only=options.only)
        sys.stdout.write(f"{path}\n")
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
