"""The soak profile says what grows."""

from pathlib import Path

import pytest

from luciole.bench import lock
from luciole.bench.result import Repeat, read_result
from luciole.bench.steady.soak import hourly_slope, slopes
from luciole.limits import HOUR_US, MINUTE_US
from tests.bench.busy import too_busy
from tests.bench.test_cli import call


def test_a_slope_is_that_of_the_line_through_the_points() -> None:
    line = [(minute * MINUTE_US, 5.0 + minute) for minute in range(10)]
    assert hourly_slope(line) == pytest.approx(60)
    assert hourly_slope([(at_us, 7.0) for at_us, _ in line]) == 0
    assert hourly_slope(line[:3]) == 0
    wobbly = [(at_us, value + (-1.0) ** number) for number, (at_us, value) in enumerate(line)]
    assert hourly_slope(wobbly) == pytest.approx(60, abs=5)


def test_what_grows_is_told_by_part_and_the_first_quarter_does_not_count() -> None:
    samples = [
        {
            "at_us": minute * MINUTE_US,
            "rss_bytes": {"node_1": (100 if minute < 15 else minute) * 1_048_576, "node_2": 0, "executor": 1_048_576},
            "table_bytes": minute * 1_000,
            "dead_rows": 7,
        }
        for minute in range(60)
    ]
    lags = [(minute * MINUTE_US, 1_000) for minute in range(60)]
    found = slopes(Repeat(index=0, actual={"samples": samples, "lag_p99_by_time": lags}))
    assert found["node_rss_growth"] == pytest.approx(60)
    assert (found["executor_rss_growth"], found["lag_growth"], found["dead_rows_max"]) == (0, 0, 7)
    assert found["table_growth"] == pytest.approx(1_000 * HOUR_US / MINUTE_US)
    assert "database_rss_growth" not in found


@pytest.mark.slow
def test_a_short_soak_has_its_slopes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")
    code, lines = call("run", "soak", "--size", "smoke", "--out", str(tmp_path))
    if too_busy(code, lines):
        return
    result = read_result(tmp_path)
    assert code in {0, 7}, lines  # On a busy machine it may be late, but nothing is lost.
    assert {"node_rss_growth", "table_growth", "lag_growth"} <= result.repeats[0].figures.keys()
    assert all(one.passed for one in result.repeats[0].checks)
