"""Results are written whole and read back, or refused with a reason."""

from pathlib import Path

import pytest

from luciole.bench.percentiles import Distribution, merged
from luciole.bench.profiles.burst import BURST
from luciole.bench.result import FILE_NAME, Repeat, metric, read_result, write_result
from luciole.bench.verdict import NotReadable
from tests.bench.test_verdict import check, result


def test_a_result_reads_back_as_it_was_written(tmp_path: Path) -> None:
    written = result(Repeat(index=0, checks=[check(passed=True)], figures={"drain_rate": 30_000.5}), share=0.8)
    written.metrics = [metric(BURST.metric("drain_rate"), [3.0, 1.0, 2.0])]
    path = write_result(written, tmp_path / "deep" / "folder")
    assert path.name == FILE_NAME
    assert read_result(path) == written
    assert read_result(path.parent) == written
    assert (written.metrics[0].median, written.metrics[0].low, written.metrics[0].high) == (2.0, 1.0, 3.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"kind": "luciole.bench.result", "sche', "no whole JSON document"),
        ("[]", "no result of the bench"),
        ('{"kind": "luciole.bench.result", "schema": 99}', "its schema is 99"),
        ('{"kind": "luciole.bench.result", "schema": 1}', "missing required field"),
    ],
)
def test_what_is_no_result_of_this_version_is_refused_with_its_reason(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / FILE_NAME).write_text(text, encoding="utf-8")
    with pytest.raises(NotReadable, match=said):
        read_result(tmp_path)


def test_a_missing_result_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotReadable, match=r"nowhere.*No such file"):
        read_result(tmp_path / "nowhere")


def test_percentiles_come_from_the_merged_histogram_and_not_from_an_average() -> None:
    fast, slow = Distribution(), Distribution()
    fast.add(1_000, 99)
    slow.add(100_000, 99)
    slow.add(1_000_000, 2)
    both = merged([fast.percentiles(), slow.percentiles()])
    assert both.count == 200
    assert both.p50 == pytest.approx(100_000, rel=0.01)
    assert both.p99 == pytest.approx(100_000, rel=0.01)
    assert both.max == pytest.approx(1_000_000, rel=0.01)
    assert both.hdr_v2.startswith("HISTFAA")  # V2, compressed.


def test_durations_out_of_range_are_kept_at_its_ends() -> None:
    kept = Distribution()
    kept.add(-5)
    kept.add(10**12)
    assert kept.percentiles().count == 2
    assert kept.percentiles().p50 == 1
