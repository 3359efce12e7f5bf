"""`bench compare` from files to exit codes, bad input included."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from luciole.bench.deciding.kept import Kept, Noise
from luciole.bench.result import FILE_NAME, Result, write_result
from luciole.bench.verdict import Verdict
from tests.bench.deciding.some_results import a_result
from tests.bench.test_cli import call


def write(folder: Path, result: Result) -> str:
    write_result(result, folder)
    return str(folder)


def rate(*values: float) -> Result:
    return a_result("burst", {"drain_rate": values})


@pytest.mark.parametrize(
    ("value", "options", "code", "word"),
    [
        (100, (), 0, "OK 1 unchanged"),
        (90, (), 1, "REGRESSED worse: drain_rate -10.0 %"),
        (120, (), 0, "OK 1 improved"),
        (90, ("--threshold", "15%"), 0, "OK 1 unchanged"),
        (90, ("--threshold", "0.15"), 0, "OK 1 unchanged"),
        (90, ("--rule", "threshold"), 1, "REGRESSED worse"),
    ],
)
def test_the_exit_code_says_what_the_table_shows(
    tmp_path: Path, value: float, options: tuple[str, ...], code: int, word: str
) -> None:
    old, new = write(tmp_path / "old", rate(100)), write(tmp_path / "new", rate(value))
    found, lines = call("compare", old, new, *options, "--perf", str(tmp_path))
    assert found == code
    assert lines[-1].startswith(f"bench: {word}")
    assert any(line.startswith("| drain_rate (jobs/s) | 100 |") for line in lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"kind": "luciole.bench.result", "sche', "no whole JSON document"),
        ('{"kind": "luciole.bench.result", "schema": 99}', "its schema is 99"),
    ],
)
@pytest.mark.parametrize("side", ["old", "new"])
def test_a_result_that_can_not_be_read_is_not_comparable(tmp_path: Path, text: str, said: str, side: str) -> None:
    for name in ("old", "new"):
        write(tmp_path / name, rate(100))
    (tmp_path / side / FILE_NAME).write_text(text, encoding="utf-8")
    code, lines = call("compare", str(tmp_path / "old"), str(tmp_path / "new"))
    assert code == 4
    assert lines[-1].startswith("bench: NOT-COMPARABLE ")
    assert said in lines[-1]


def test_a_baseline_of_another_machine_is_not_comparable_unless_that_is_allowed(tmp_path: Path) -> None:
    old = write(tmp_path / "old", rate(100))
    new = write(tmp_path / "new", a_result("burst", {"drain_rate": [100]}, fingerprint="f" * 16))
    code, lines = call("compare", old, new)
    assert code == 4
    assert "another machine" in lines[-1]
    assert call("compare", old, new, "--allow", "machine")[0] == 0


def test_void_figures_stay_void_in_a_comparison(tmp_path: Path) -> None:
    old = write(tmp_path / "old", rate(100))
    new = write(tmp_path / "new", a_result("burst", {"drain_rate": [200]}, verdict=Verdict.INCORRECT))
    code, lines = call("compare", old, new)
    assert code == 3
    assert lines[-1].startswith("bench: INCORRECT NEW is incorrect")


def test_what_was_accepted_is_read_from_where_it_is_kept(tmp_path: Path) -> None:
    old, new = write(tmp_path / "old", rate(100)), write(tmp_path / "new", rate(90))
    Kept(tmp_path).accepted.write_text(
        '[[accepted]]\nprofile = "burst"\nmetric = "drain_rate"\nsize = 0.1\nreason = "labels"\nexpires = 9999-01-01\n',
        encoding="utf-8",
    )
    code, lines = call("compare", old, new, "--perf", str(tmp_path))
    assert (code, lines[-1]) == (0, "bench: OK 1 accepted")
    Kept(tmp_path).accepted.write_text("[[accepted]]\n", encoding="utf-8")
    code, lines = call("compare", old, new, "--perf", str(tmp_path))
    assert code == 2
    assert "accepted.toml" in lines[-1]


def test_the_noise_of_the_machine_is_shown_when_it_was_calibrated(tmp_path: Path) -> None:
    old, new = write(tmp_path / "old", rate(100)), write(tmp_path / "new", rate(99))
    noise = Noise(
        profile="burst",
        backend="sqlite",
        measured="2026-01-01T00:00:00Z",
        revision="?",
        repeats=8,
        requested={},
        spread={"drain_rate": 0.04},
    )
    Kept(tmp_path).save_noise(rate(100), noise)
    _, lines = call("compare", old, new, "--perf", str(tmp_path))
    assert any("noise here 4.0%, could see 14.1%" in line for line in lines)


@pytest.mark.slow
def test_a_run_compares_itself_with_a_stored_result(tmp_path: Path) -> None:
    options = ("--size", "smoke", "--repeats", "1")
    code, _ = call("run", "micro", *options, "--out", str(tmp_path / "old"))
    assert code == 0
    slow = tmp_path / "slow"
    code, lines = call("run", "micro", *options, "--out", str(slow), "--compare", str(tmp_path / "old"))
    assert code in {0, 1}  # Some milliseconds of one repeat are no evidence of anything.
    assert any(line.startswith("# micro on none: NEW against OLD") for line in lines)


def test_what_a_run_shall_be_compared_with_is_read_before_anything_is_measured(tmp_path: Path) -> None:
    code, lines = call("run", "micro", "--out", str(tmp_path / "out"), "--compare", str(tmp_path / "nowhere"))
    assert code == 4
    assert lines[-1].startswith("bench: NOT-COMPARABLE ")
    assert not (tmp_path / "out").exists()


def test_a_baseline_is_sound_and_lies_by_machine_name_and_subject(tmp_path: Path) -> None:
    path = Kept(tmp_path).save_baseline(rate(100), "rolling")
    assert path == tmp_path / "machines/0123456789abcdef/baselines/rolling/burst-sqlite.json"
    assert [found for found, _ in Kept(tmp_path).baselines()] == [path]
    assert list(path.parent.iterdir()) == [path]
    newer = replace(rate(101), started="2026-02-01T00:00:00Z")
    assert Kept(tmp_path).save_baseline(newer, "rolling") == path
    (kept,) = (result for _, result in Kept(tmp_path).baselines())
    assert kept == newer


def test_a_share_that_is_none_is_refused(tmp_path: Path) -> None:
    old = write(tmp_path, rate(100))
    code, lines = call("compare", old, old, "--threshold", "much")
    assert code == 2
    assert "'much' is no share; say 5% or 0.05" in lines[-1]
