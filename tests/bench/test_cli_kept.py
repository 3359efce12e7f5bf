"""Baselines, trends, calibration and repetition from the command line."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from msgspec.structs import replace

from luciole.bench.deciding.accepted import read_accepted
from luciole.bench.deciding.kept import Kept
from luciole.bench.deciding.noise import detectable, noise_of
from luciole.bench.repeating import runnable
from luciole.bench.verdict import Usage, Verdict
from tests.bench.deciding.some_results import a_result, lags
from tests.bench.test_cli import call
from tests.bench.test_cli_compare import rate, write


def test_a_baseline_is_saved_listed_and_compared_with_by_its_name(tmp_path: Path) -> None:
    perf = ("--perf", str(tmp_path / "perf"))
    code, lines = call("baseline", "save", write(tmp_path / "old", rate(100)), "--name", "v1", *perf)
    assert code == 0
    assert lines[-1].endswith("0123456789abcdef/baselines/v1/burst-sqlite.json")
    assert "2026-01-01T00:00Z revision abababababab, 1 repeats" in call("baseline", "list", *perf)[1][0]
    new = write(tmp_path / "new", rate(80))
    code, lines = call("compare", "baseline:v1", new, *perf)
    assert (code, lines[-1][:36]) == (1, "bench: REGRESSED worse: drain_rate -")


def test_a_baseline_of_another_machine_only_is_not_comparable_and_says_whose_it_is(tmp_path: Path) -> None:
    perf = ("--perf", str(tmp_path / "perf"))
    call("baseline", "save", write(tmp_path / "old", rate(100)), *perf)
    elsewhere = write(tmp_path / "new", a_result("burst", {"drain_rate": [100]}, fingerprint="f" * 16))
    code, lines = call("compare", "baseline:rolling", elsewhere, *perf)
    assert code == 4
    assert "no baseline 'rolling' of this machine (there are some of 0123456789abcdef)" in lines[-1]


@pytest.mark.parametrize("verdict", [Verdict.INCORRECT, Verdict.INVALID])
def test_what_is_not_sound_is_no_baseline(tmp_path: Path, verdict: Verdict) -> None:
    result = write(tmp_path / "old", a_result("burst", {"drain_rate": [1]}, verdict=verdict))
    assert call("baseline", "save", result, "--perf", str(tmp_path / "perf"))[0] == 2
    assert not (tmp_path / "perf").exists()


def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    result = write(tmp_path / "old", rate(100))
    for name in ("../up", "", ".hidden", "a/b"):
        assert call("baseline", "save", result, "--name", name, "--perf", str(tmp_path / "perf"))[0] == 2


def test_a_baseline_that_is_half_written_is_named(tmp_path: Path) -> None:
    path = Kept(tmp_path).save_baseline(rate(100), "rolling")
    path.write_text("{", encoding="utf-8")
    code, lines = call("baseline", "list", "--perf", str(tmp_path))
    assert code == 4
    assert "can't be read" in lines[0]
    assert call("compare", "baseline:rolling", write(tmp_path / "new", rate(1)), "--perf", str(tmp_path))[0] == 4


def test_what_became_worse_is_accepted_by_its_size_and_is_red_again_when_it_grows(tmp_path: Path) -> None:
    perf = ("--perf", str(tmp_path / "perf"))
    old, new = write(tmp_path / "old", rate(100)), write(tmp_path / "new", rate(80))
    options = ("--reason", "labels", "--expires", "9999-01-01", *perf)
    code, lines = call("baseline", "accept", old, new, *options)
    assert (code, lines[0]) == (0, "burst drain_rate: 20.0% until 9999-01-01")
    assert read_accepted(Kept(tmp_path / "perf").accepted)[0].reason == "labels"
    assert call("compare", old, new, *perf)[0] == 0
    assert call("compare", old, write(tmp_path / "newer", rate(75)), *perf)[0] == 1


def test_nothing_is_accepted_that_became_no_worse(tmp_path: Path) -> None:
    old, new = write(tmp_path / "old", rate(100)), write(tmp_path / "new", rate(100))
    options = ("--reason", "r", "--perf", str(tmp_path / "perf"))
    assert call("baseline", "accept", old, new, *options)[0] == 2
    worse = write(tmp_path / "worse", rate(80))
    assert call("baseline", "accept", old, worse, "--metric", "settle_rate", *options)[0] == 2
    assert not (tmp_path / "perf").exists()


def test_a_trend_has_a_table_for_each_machine_and_a_line_for_each_sound_run(tmp_path: Path) -> None:
    for day, value in (("03", 121.0), ("01", 100.0), ("02", 110.0)):
        write(tmp_path / day, replace(rate(value), started=f"2026-01-{day}T00:00:00Z"))
    write(tmp_path / "other", a_result("burst", {"drain_rate": [5]}, fingerprint="f" * 16))
    write(tmp_path / "void", a_result("burst", {"drain_rate": [5]}, verdict=Verdict.INCORRECT))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/result.json").write_text("{", encoding="utf-8")
    code, lines = call("trend", str(tmp_path))
    assert (code, lines[-1]) == (0, "bench: OK 5 results, 1 that can't be read")
    assert sum(line.startswith("## burst on sqlite") for line in lines) == 2
    rows = [line for line in lines if line.startswith("| 2026-01-0") and "5 |" not in line[-4:]]
    assert [row.split("|")[3].strip() for row in rows] == ["100", "110 (+10.0 %)", "121 (+10.0 %)"]


def test_a_trend_of_nothing_is_not_comparable(tmp_path: Path) -> None:
    assert call("trend", str(tmp_path))[0] == 4


def test_noise_is_the_spread_of_the_logarithm_where_values_are_enough() -> None:
    result = a_result("burst", {"drain_rate": [100, 110, 90, 100], "lost_races": [0, 0, 0, 0]})
    assert noise_of(result).spread == {"drain_rate": pytest.approx(0.0820, abs=1e-4)}
    assert noise_of(rate(100, 110)).spread == {}
    spread = a_result("burst", distributions={"fire_lag": [lags(1_000, 2_000), lags(1_100, 2_000)] * 2})
    assert set(noise_of(spread).spread) == {"fire_lag p50", "fire_lag p95", "fire_lag p99"}
    assert detectable(0.08, 5, 5) == pytest.approx(0.1258, abs=1e-3)


@pytest.mark.slow
def test_calibration_keeps_the_noise_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    options = ("--options", "--size smoke", "--repeats", "4", "--perf", str(tmp_path / "perf"))
    code, lines = call("calibrate", "micro", *options)
    assert code == 0, lines
    (kept,) = (tmp_path / "perf").glob("machines/*/noise.json")
    assert "next_fire_us" in kept.read_text(encoding="utf-8")
    assert call("calibrate", "micro", "--options", "--size nonsense", "--perf", str(tmp_path / "perf"))[0] == 2


def test_the_command_of_a_result_is_printed_with_its_origin_and_without_its_password(tmp_path: Path) -> None:
    result = rate(100)
    result.command = [
        "luciole",
        "bench",
        "run",
        "burst",
        "--dsn",
        "postgresql://me:<password>@host/db",
        "--author",
        "A B",
    ]
    code, lines = call("repro", write(tmp_path, result))
    assert code == 0
    assert lines[0] == "# measured 2026-01-01T00:00:00Z on machine 0123456789abcdef"
    assert lines[1] == f"# revision {'ab' * 20}"
    assert lines[2] == "luciole bench run burst --dsn 'postgresql://me:<password>@host/db' --author 'A B'"


def test_a_command_runs_again_with_the_password_of_the_environment() -> None:
    stored = ["luciole", "bench", "run", "burst", "--dsn", "postgresql://me:<password>@host/db"]
    again = runnable(stored, interpreter="python", password="hunter2")
    assert again == ["python", "-m", "luciole", "bench", "run", "burst", "--dsn", "postgresql://me:hunter2@host/db"]
    encoded = runnable(stored, interpreter="python", password="p@ss/w #%")[-1]
    assert unquote(str(urlsplit(encoded).password)) == "p@ss/w #%"
    with pytest.raises(Usage, match="LUCIOLE_BENCH_PASSWORD"):
        runnable(stored, interpreter="python", password=None)


@pytest.mark.parametrize("command", [[], ["rm", "-rf", "x"], ["luciole", "up", "app:app"]])
def test_what_is_no_command_of_the_bench_is_never_run(tmp_path: Path, command: list[str]) -> None:
    result = rate(100)
    result.command = command
    assert call("repro", write(tmp_path, result), "--run")[0] == 2


@pytest.mark.slow
def test_a_result_is_repeated_by_its_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    result = rate(100)
    out = tmp_path / "again"
    result.command = ["luciole", "bench", "run", "micro", "--size", "smoke", "--out", str(out)]
    assert call("repro", write(tmp_path / "first", result), "--run")[0] == 0
    assert (out / "result.json").exists()
