"""Kept results are evidence, small, and name no folder of the machine that they came from."""

import json
from pathlib import Path

import msgspec
import pytest

from luciole.bench.result import Result, outcome, read_result, write_result
from luciole.bench.verdict import Verdict
from scripts.keep_result import NotKept, keep, kept, main, write_page
from tests.bench.report.some_page import full


def a_run() -> Result:
    run = full()
    run.verdict = outcome(Verdict.OK, "all checks passed")
    run.product = {**run.product, "revision": "f" * 40, "dirty": False}
    run.command = ["luciole", "bench", "run", "burst", "--out", "/srv/someone/here", "--size", "ci"]
    run.environment = {**run.environment, "data_folder": "/srv/someone/luciole-postgres-1x/data"}
    run.repeats[0].actual = {"samples": [1, 2, 3], "nodes": 1}
    return run


def test_a_kept_result_has_its_figures_and_neither_what_is_large_nor_where_it_was(tmp_path: Path) -> None:
    run = a_run()
    assert any(one.traces for one in run.repeats)
    (tmp_path / "results").mkdir()
    file = keep(write_result(run, tmp_path / "out").parent, "07-burst", tmp_path)
    small = read_result(file)
    assert small.metrics == run.metrics
    assert small.command == ["luciole", "bench", "run", "burst", "--size", "ci"]
    assert not any(one.traces or one.series or one.flames for one in small.repeats)
    assert small.repeats[0].actual == {"nodes": 1}
    assert json.loads(file.read_bytes())["environment"]["data_folder"] == "/tmp/luciole-postgres-1x/data"
    assert b"someone" not in file.read_bytes()
    write_page(tmp_path)
    assert "burst" in (tmp_path / "results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("verdict", [Verdict.INCORRECT, Verdict.INVALID, Verdict.OBJECTIVE_MISSED])
def test_a_run_that_did_not_hold_is_not_kept(verdict: Verdict) -> None:
    with pytest.raises(NotKept, match=verdict.word):
        kept(msgspec.structs.replace(a_run(), verdict=outcome(verdict, "so it was")))


@pytest.mark.parametrize("product", [{"version": "1", "dirty": True}, {"version": "1"}])
def test_a_run_of_changed_files_is_not_kept(product: dict[str, object]) -> None:
    with pytest.raises(NotKept, match="no commit holds"):
        kept(msgspec.structs.replace(a_run(), product=product))


def test_what_can_not_be_kept_is_said_without_a_stack_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{tmp_path / 'none'}=07-burst"]) == 1
    assert "none" in capsys.readouterr().err
    assert main([f"{write_result(a_run(), tmp_path / 'out')}=../07"]) == 1
    assert "two digits" in capsys.readouterr().err
    assert main([]) == main(["no-pair"]) == 2
