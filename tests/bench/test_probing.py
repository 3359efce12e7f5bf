"""Probes: each checks that it did what it claims, and leaves nothing on the disk."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from luciole.bench import lock
from luciole.bench.cli import bench
from luciole.bench.probing.creating import create_files
from luciole.bench.probing.fio import fio_pattern, read_fio
from luciole.bench.probing.spec import ProbeSpec
from luciole.bench.probing.writing import RANDOM_4K, SEQUENTIAL_1M, Pattern, flush_log, write_pattern
from luciole.bench.profiles import find_profile
from luciole.bench.result import read_result
from luciole.bench.verdict import InvalidRun
from luciole.runtime.clock import SystemClock

SMALL = ProbeSpec(duration_s=0.05, file_mib=2, files=200)

FIO = {
    "fio version": "fio-3.36",
    "jobs": [
        {
            "error": 0,
            "write": {"iops": 1000.5, "bw_bytes": 4_194_304, "clat_ns": {"percentile": {"99.000000": 250_000}}},
        }
    ],
}


@pytest.fixture(autouse=True)
def _own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")


def call(*arguments: str) -> tuple[int, list[str]]:
    done = CliRunner().invoke(bench, arguments, standalone_mode=False)
    assert done.exception is None, done.output
    return done.return_value or 0, done.stdout.splitlines()


@pytest.mark.parametrize("pattern", [RANDOM_4K, SEQUENTIAL_1M])
def test_a_pattern_writes_inside_its_file_and_removes_it(tmp_path: Path, pattern: Pattern) -> None:
    found = write_pattern(tmp_path, pattern, SMALL, SystemClock())
    assert found.check.passed
    assert found.figures[f"{pattern.name}_rate"] > 0
    assert found.distributions[f"{pattern.name}_time"].count > 0
    assert list(tmp_path.iterdir()) == []


def test_every_flush_of_the_log_is_counted(tmp_path: Path) -> None:
    found = flush_log(tmp_path, SMALL, SystemClock())
    assert found.check.passed
    assert found.check.found == found.distributions["fsync_time"].count * 8_192
    assert list(tmp_path.iterdir()) == []


def test_all_files_are_made_and_removed(tmp_path: Path) -> None:
    found = create_files(tmp_path, SMALL, SystemClock())
    assert (found.check.found, found.check.passed) == (200, True)
    assert list(tmp_path.iterdir()) == []


def test_what_fio_says_is_read() -> None:
    found = read_fio(f"fio: a warning\n{json.dumps(FIO)}", RANDOM_4K)
    assert found.figures == {"randwrite_rate": 1000.5, "randwrite_mib_rate": 4.0, "randwrite_p99_us": 250.0}
    assert (found.tool, found.check.passed) == ("fio-3.36", True)


@pytest.mark.parametrize("said", ["", "no json", "{}", '{"jobs": []}', '{"jobs": [{"write": {}}]}'])
def test_what_fio_does_not_say_is_no_figure(said: str) -> None:
    with pytest.raises(InvalidRun, match="fio said something else"):
        read_fio(said, RANDOM_4K)


def test_a_fio_that_fails_is_told_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "fio"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'no such engine' >&2\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/bin:/usr/bin")
    with pytest.raises(InvalidRun, match="fio ended with 1: no such engine"):
        fio_pattern(tmp_path, RANDOM_4K, SMALL)


def test_fio_that_is_asked_for_and_missing_is_a_matter_of_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, lines = call("probe", "4k-randwrite", "--tool", "fio", "--size", "smoke")
    assert code == 2
    assert lines[-1].startswith("bench: USAGE --tool: fio is not installed")


@pytest.mark.slow
def test_without_a_name_everything_is_probed(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    code, lines = call("probe", "--size", "smoke", "--tool", "built-in", "--folder", str(data), "--out", str(out))
    assert (code, lines[-1]) == (0, "bench: OK 2 of 2 parts measured")
    result = read_result(out / "probe")
    assert {metric.name for metric in result.metrics} == {metric.name for metric in find_profile("probe").metrics}
    assert read_result(out / "sql-ceiling").ceiling is not None
    assert list(data.iterdir()) == []


@pytest.mark.slow
@pytest.mark.postgres
def test_a_round_trip_to_a_server_is_probed_alone(tmp_path: Path) -> None:
    code, lines = call("probe", "rtt", "--backend", "postgres", "--size", "smoke", "--out", str(tmp_path))
    assert (code, lines[-1]) == (0, "bench: OK 1 checks passed in 1 repeats")
    assert read_result(tmp_path).repeats[0].distributions["rtt"].count == 200
