"""The sum of the ledger: two revisions measured in turns, and the ratio of each gated throughput.

    python scripts/ledger.py measure BASE HEAD --out FOLDER [--rounds 4]
    python scripts/ledger.py keep FOLDER

`measure` runs slices of both revisions on one machine, in the order ABBA, each in fresh processes on a fresh store: the
burst by each side's own bench, and what an app does by `public_paths.py`, since older revisions have no profile for it.
BASE's results go below FOLDER/before, HEAD's below FOLDER/after, further rounds beside them; `luciole bench compare
--together FOLDER/before FOLDER/after` shows them. `keep` stores what they come to in
`docs/performance/standing/ledger.json` and puts it into `docs/performance/ledger.md`; a test compares.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import psutil

from luciole import limits
from luciole.bench.ab.arms import Side, sides
from luciole.bench.ab.slices import Slices
from luciole.bench.backends import make_backend
from luciole.bench.deciding.together import Gain, gains, is_throughput, page, read_all
from luciole.bench.environment import environment
from luciole.bench.result import MetricSpec, Repeat, Result, metric, outcome, write_result
from luciole.bench.verdict import BenchError, InvalidRun, NotReadable, Verdict
from luciole.model.instant import to_datetime
from luciole.runtime.clock import SystemClock

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/performance/ledger.md"
KEPT = ROOT / "docs/performance/standing/ledger.json"
PATHS = Path(__file__).with_name("public_paths.py")

#: What stands between these lines of the page is written by this script.
MARKS = ("<!-- measured: begin -->", "<!-- measured: end -->")

#: Two profiles on two stores, of two sides.
_SLICES_A_ROUND = 8

#: How long is looked at what others use, before each slice.
_LOOK_S = 0.3

#: What a slice of public paths may take.
_SLICE_S_MAX = 300

_PATHS_BORDER = "Through the public API and the command line, by scripts/public_paths.py, which drives both sides."

_HEAD = """\
Before: revision {before}. After: revision {after}. In turns, ABBA, each slice in fresh processes on a fresh store;
{cpu}, {cores} cores, {filesystem}; measured {started}Z, while others used {busy:.0%} of the machine. Repeat it:
`python scripts/ledger.py measure {before} {after} --out FOLDER`.
"""


class Sizes(NamedTuple):
    """How much is measured."""

    burst_jobs: int = 30_000
    path_jobs: int = 5_000


def measure(base: str, head: str, *, sizes: Sizes, rounds: int, out: Path) -> None:
    """Measure two revisions in turns, and leave a result for each slice.

    Raises:
        BenchError: a slice says nothing, or there is no such revision.
    """
    count = len(list(out.glob("*/*/result.json")))
    turn = count // _SLICES_A_ROUND  # Who begins changes from round to round, whenever they are measured.
    with (
        tempfile.TemporaryDirectory(prefix="luciole-ledger-") as name,
        sides(base, head, Path(name), start=ROOT) as (before, after),
    ):
        Path(name).chmod(0o755)  # Servers do not run as root.
        arms = {"before": before, "after": after}
        for number in range(rounds):
            for profile in ("burst", "public-paths"):
                for backend in ("postgres", "sqlite"):
                    for arm in ("before", "after") if (turn + number) % 2 == 0 else ("after", "before"):
                        busy = psutil.cpu_percent(interval=_LOOK_S) / 100
                        result = _slice(profile, backend, arm, arms[arm], sizes, Path(name))
                        result.environment.setdefault("noise", {})["busy_before"] = round(busy, 3)
                        write_result(result, out / arm / f"{count:03}-{profile}-{backend}")
                        count += 1
                        rates = [f"{one.name} {one.median:,.0f}" for one in result.metrics if is_throughput(one)]
                        sys.stdout.write(f"round {number + 1}/{rounds}  {arm}, {backend}: {', '.join(rates)}\n")
                        sys.stdout.flush()


def _slice(profile: str, backend: str, arm: str, side: Side, sizes: Sizes, folder: Path) -> Result:
    if profile == "burst":
        options = ("--size", "ci", "--backend", backend, "--jobs", str(sizes.burst_jobs), "--ceiling", "none")
        return Slices(profile="burst", options=options, folder=folder).run(arm, side)
    return asyncio.run(_paths(backend, side, sizes))


async def _paths(backend_name: str, side: Side, sizes: Sizes) -> Result:
    """Drive a side through its public API, on a store of its own."""
    clock = SystemClock()
    started, begun_us = to_datetime(clock.now_us()).isoformat(), clock.monotonic_us()
    with make_backend(backend_name, dsn=None, programs="wheel", settings={}, folder=None) as backend:
        place = await backend.fresh()
        try:
            words = [sys.executable, str(PATHS), "--jobs", str(sizes.path_jobs)]
            path = {"PYTHONPATH": str(side.source), "PYTHONHASHSEED": "0", "LUCIOLE_DSN": place.dsn}
            done = await asyncio.to_thread(
                subprocess.run,
                words,
                env={**os.environ, **path},
                capture_output=True,
                text=True,
                timeout=_SLICE_S_MAX,
                check=False,
            )
            described = await backend.described()
        finally:
            await backend.remove(place)
        if done.returncode:
            raise InvalidRun(f"{side.asked}: {done.stderr[-2_000:]}")
        rates: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        found = environment(backend.folder)
    return Result(
        profile="public-paths",
        question="How fast is what an app does?",
        border=_PATHS_BORDER,
        verdict=outcome(Verdict.OK, "each path ran through to its end"),
        started=started,
        duration_s=(clock.monotonic_us() - begun_us) / limits.SECOND_US,
        product={"revision": side.revision, "dirty": side.dirty},
        command=["python", "scripts/public_paths.py", "--jobs", str(sizes.path_jobs)],
        environment=found,
        backend=described,
        requested={"jobs": sizes.path_jobs},
        metrics=[metric(_spec(name), [rate]) for name, rate in rates.items()],
        repeats=[Repeat(index=0, figures=rates)],
    )


def _spec(name: str) -> MetricSpec:
    return MetricSpec(name=name, unit="jobs/s", direction="higher", text=PATHS.stem)


def keep(folder: Path) -> None:
    """Store what the results below a folder come to, and put it into the page.

    Raises:
        BenchError: they can't be read, or are not of the same things.
    """
    before, after = (read_all(folder / arm) for arm in ("before", "after"))
    found = gains(before, after)
    first = after[0]
    kept = {
        "before": _revision(before),
        "after": _revision(after),
        "started": min(one.started for one in (*before, *after))[:16],
        "machine": {name: first.environment.get(name) for name in ("cpu", "cores", "filesystem")},
        "busy": round(mean(one.environment["noise"]["busy_before"] for one in (*before, *after)), 3),
        "gains": [asdict(one) for one in found],
    }
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(with_measured(PAGE.read_text(encoding="utf-8"), text_of(kept)), encoding="utf-8")


def text_of(kept: dict[str, Any]) -> str:
    """Return what stands between the marks of the page."""
    found = [Gain(**{**one, "before": tuple(one["before"]), "after": tuple(one["after"])}) for one in kept["gains"]]
    return f"{_HEAD.format(**kept['machine'], **kept)}\n{page(found)}"


def with_measured(text: str, measured: str) -> str:
    """Return the page with what was measured between its marks."""
    begin, end = MARKS
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n\n{measured}\n\n{end}{rest.partition(end)[2]}"


def _revision(results: Sequence[Result]) -> str:
    """Return the one revision of all results.

    Raises:
        NotReadable: they are of several, or of changes that no revision holds.
    """
    found = {(str(one.product["revision"])[:12], bool(one.product["dirty"])) for one in results}
    if len(found) != 1 or any(is_dirty for _, is_dirty in found):
        raise NotReadable(f"a side must be of one revision without changes; these are {sorted(found)}")
    return found.pop()[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure or keep; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    measuring = verbs.add_parser("measure", help="two revisions in turns")
    measuring.add_argument("base")
    measuring.add_argument("head")
    measuring.add_argument("--out", type=Path, required=True)
    measuring.add_argument("--rounds", type=int, default=4)
    measuring.add_argument("--burst-jobs", type=int, default=Sizes().burst_jobs)
    measuring.add_argument("--path-jobs", type=int, default=Sizes().path_jobs)
    verbs.add_parser("keep", help="what was measured").add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    try:
        if options.verb == "measure":
            sizes = Sizes(burst_jobs=options.burst_jobs, path_jobs=options.path_jobs)
            measure(options.base, options.head, sizes=sizes, rounds=options.rounds, out=options.out)
        else:
            keep(options.folder)
    except BenchError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.verdict)
    return 0


if __name__ == "__main__":
    sys.exit(main())
