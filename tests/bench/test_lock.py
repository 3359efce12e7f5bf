"""Two benches never run at once."""

import os
from pathlib import Path

import pytest

from luciole.bench.lock import only_bench
from luciole.bench.verdict import InvalidRun


def test_a_second_bench_is_refused_and_told_who_runs(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with only_bench(path), pytest.raises(InvalidRun, match=f"process {os.getpid()},"), only_bench(path):
        pytest.fail("two at once")


def test_the_lock_is_free_after_a_bench_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(ZeroDivisionError), only_bench(path):
        raise ZeroDivisionError
    with only_bench(path):
        assert path.read_text(encoding="ascii") == f"{os.getpid()}\n"
