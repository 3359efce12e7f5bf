"""Run every profile of the bench five times; pack results, medians, spread and environment into one archive.

Started by `scripts/perf-report`. `--size ci` or `--size smoke` shortens it. The hours of `soak` are left out unless
`--profile soak` asks for them. Its exit code is the worst of the runs'.
"""

import argparse
import json
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from luciole.bench.leash import run_to_its_end
from luciole.bench.profiles import PROFILES, SIZES
from luciole.bench.result import Result, read_result
from luciole.bench.verdict import BenchError, Verdict, worst

#: How a profile is run when it is not `run NAME`.
_VERBS = {"capacity-steady": ("capacity", "steady"), "probe": ("probe",), "sql-ceiling": ("probe", "sql-ceiling")}

#: `probe` alone measures the ceiling too.
_COVERED = {"sql-ceiling"}
_LONG = {"soak"}


class Job(NamedTuple):
    """One run of one profile on one backend."""

    name: str
    words: tuple[str, ...]


def jobs(profiles: Sequence[str], backends: Sequence[str]) -> list[Job]:
    """Return what is to be run, in order.

    Args:
        profiles: by name; none: all but those that take hours.
        backends: the stores to run them on; one that a profile knows no run for is passed over.
    """
    chosen = profiles or [name for name in PROFILES if name not in _LONG | _COVERED]
    found = []
    for name in chosen:
        verb = _VERBS.get(name, ("run", name))
        own = PROFILES[name].backends
        if not own:
            found.append(Job(name, verb))
        found += [Job(f"{name}-{backend}", (*verb, "--backend", backend)) for backend in backends if backend in own]
    return found


def command(job: Job, *, size: str, repeats: int, folder: Path) -> list[str]:
    """Return the command of one run."""
    program = [sys.executable, "-m", "luciole", "bench", *job.words]
    return [*program, "--size", size, "--repeats", str(repeats), "--out", str(folder / job.name)]


def collect(folder: Path) -> list[tuple[str, Result]]:
    """Return the results below a folder, by the names of theirs."""
    found = []
    for path in sorted(folder.rglob("result.json")):
        try:
            found.append((path.parent.relative_to(folder).as_posix(), read_result(path)))
        except BenchError as error:
            sys.stderr.write(f"{path}: {error}\n")
    return found


def digest(results: Sequence[tuple[str, Result]]) -> dict[str, Any]:
    """Return medians, spread and environment of all results."""
    return {
        "environment": next((result.environment for _, result in results if result.environment), {}),
        "product": results[0][1].product if results else {},
        "runs": {
            name: {
                "verdict": result.verdict.word,
                "reason": result.verdict.reason,
                "repeats": len(result.repeats),
                "metrics": {
                    one.name: {
                        "unit": one.unit,
                        "better": one.direction,
                        "median": one.median,
                        "least": one.low,
                        "greatest": one.high,
                        "spread": (one.high - one.low) / one.median if one.median else None,
                    }
                    for one in result.metrics
                },
            }
            for name, result in results
        },
    }


def page(found: dict[str, Any]) -> str:
    """Return the digest for people."""
    machine = found["environment"]
    lines = ["# Performance report", "", f"Machine: {machine.get('cpu')}, {machine.get('cores')} cores.", ""]
    for name, run in found["runs"].items():
        lines += [f"## {name}", "", f"**{run['verdict'].upper()}**: {run['reason']}", ""]
        lines += ["| figure | median | least | greatest | spread | unit | better |", "|---|--:|--:|--:|--:|---|---|"]
        for figure, one in run["metrics"].items():
            spread = "" if one["spread"] is None else f"{one['spread']:.1%}"
            cells = " | ".join(f"{one[key]:,.4g}" for key in ("median", "least", "greatest"))
            lines.append(f"| {figure} | {cells} | {spread} | {one['unit']} | {one['better']} |")
        lines.append("")
    return "\n".join(lines)


def pack(folder: Path) -> Path:
    """Write the digest and pack the folder into an archive beside it; return the archive."""
    found = digest(collect(folder))
    (folder / "digest.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (folder / "digest.md").write_text(page(found), encoding="utf-8")
    archive = folder.with_name(f"{folder.name}.tar.gz")
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder, arcname=folder.name)
    return archive


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything; return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/perf-report", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--backend", action="append", choices=("sqlite", "postgres"), help="default: both")
    parser.add_argument("--profile", action="append", choices=tuple(PROFILES), default=[], help="default: all")
    parser.add_argument("--out", type=Path, default=Path("perf-report"), help="a folder; the archive stands beside it")
    parser.add_argument("--list", action="store_true", help="show the commands and run none")
    options = parser.parse_args(arguments)
    verdicts = []
    for job in jobs(options.profile, options.backend or ("sqlite", "postgres")):
        words = command(job, size=options.size, repeats=options.repeats, folder=options.out)
        sys.stdout.write(f"{' '.join(words[1:])}\n")
        sys.stdout.flush()
        if not options.list:
            code = run_to_its_end(words)
            verdicts.append(Verdict(code) if code in set(Verdict) else Verdict.INVALID)
    if options.list:
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"archive: {pack(options.out)}\n")
    return int(worst(verdicts))


if __name__ == "__main__":
    sys.exit(main())
