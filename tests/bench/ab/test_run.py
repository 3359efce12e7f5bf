"""A comparison of two revisions stops as soon as it may, confirms what it blames, and cleans up."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import msgspec
import pytest

from luciole.bench.ab import run as ab_run
from luciole.bench.ab.arms import Side
from luciole.bench.ab.document import FILE_NAME, Document, page, write_document
from luciole.bench.ab.run import Ab, AbOrders
from luciole.bench.ab.slices import Slices
from luciole.bench.deciding.accepted import Accepted
from luciole.bench.result import Result
from luciole.bench.verdict import BackendUnavailable, Incorrect, InvalidRun, Verdict
from luciole.runtime.clock import SystemClock
from tests.bench.deciding.some_results import a_result, lags

ROOT = Path(__file__).parents[3]
TODAY = date(2026, 6, 1)

#: Returns what a slice of a side measures, or raises; told the side and how many of its slices ran before.
Measured = Callable[[str, int], Result]


def orders(**more: object) -> AbOrders:
    told: dict[str, object] = {
        "base": "HEAD",
        "head": ".",
        "profile": "burst",
        "options": ["--size", "smoke"],
        "seed": 1,
        "threshold": 0.05,
        "start": ROOT,
        "today": TODAY,
    }
    return AbOrders(**{**told, **more})  # type: ignore[arg-type] # each as the field has it


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Document]:
    """Return a comparison whose slices are made up; no process and no worktree takes part."""

    @contextmanager
    def made_up(base: str, head: str, folder: Path, *, start: Path) -> Iterator[tuple[Side, Side]]:
        del start
        yield (
            Side(asked=base, revision="a" * 40, dirty=False, source=folder),
            Side(asked=head, revision="b" * 40, dirty=True, source=folder),
        )

    def run(measured: Measured, **more: object) -> Document:
        counts = {"base": 0, "head": 0}

        def slice_of(_: Slices, name: str, side: Side) -> Result:
            del side
            counts[name] += 1
            return measured(name, counts[name] - 1)

        monkeypatch.setattr(Slices, "run", slice_of)
        monkeypatch.setattr(ab_run, "sides", made_up)
        monkeypatch.setattr(ab_run, "durable_folder", lambda: tmp_path)
        return Ab(orders(**more), clock=SystemClock(), progress=lambda _: None, lock=tmp_path / "lock").run()

    return run


def rate(value: float, **values: float) -> Result:
    return a_result("burst", {"drain_rate": [value], **{name: [one] for name, one in values.items()}})


def test_equal_sides_pass_at_the_first_look(compared: Callable[..., Document], tmp_path: Path) -> None:
    document = compared(lambda _, index: rate(100 + index % 3))
    assert document.verdict.code == Verdict.OK
    assert document.slices == 16
    assert document.figures[0].call == "passed"
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_a_regression_is_confirmed_by_eight_fresh_pairs(compared: Callable[..., Document]) -> None:
    document = compared(lambda name, index: rate((100 if name == "base" else 80) + index % 3))
    assert document.verdict.code == Verdict.REGRESSED
    assert document.slices == 32
    assert (document.figures[0].call, document.figures[0].confirmed) == ("regressed", True)
    assert "| **REGRESSED** |" in page(document)


def test_what_fresh_pairs_do_not_show_again_stays_open(compared: Callable[..., Document]) -> None:
    document = compared(lambda name, index: rate(80 if name == "head" and index < 8 else 100))
    assert document.verdict.code == Verdict.INCONCLUSIVE
    assert (document.figures[0].call, document.figures[0].note) == ("inconclusive", "not confirmed")


def test_a_metric_that_regressed_does_not_hide_one_that_improved(compared: Callable[..., Document]) -> None:
    def measured(name: str, _: int) -> Result:
        worse, better = (100, 100) if name == "base" else (80, 130)
        return rate(worse, settle_rate=better)

    calls = {figure.name: figure.call for figure in compared(measured).figures}
    assert calls == {"drain_rate": "regressed", "settle_rate": "improved"}


def test_counts_are_gated_exactly(compared: Callable[..., Document]) -> None:
    document = compared(lambda name, _: rate(100, commits_per_job=1.0 if name == "base" else 1.02))
    calls = {figure.name: figure.call for figure in document.figures}
    assert calls == {"drain_rate": "passed", "commits_per_job": "regressed"}
    assert document.verdict.code == Verdict.REGRESSED


def test_noise_that_nothing_can_be_said_through_runs_all_pairs(compared: Callable[..., Document]) -> None:
    document = compared(lambda name, index: rate(100 + (37 * index + (11 if name == "base" else 0)) % 80))
    assert document.verdict.code == Verdict.INCONCLUSIVE
    assert document.slices == 48
    assert document.figures[0].detectable is not None
    assert document.figures[0].detectable > 0.05


def test_percentiles_with_too_few_samples_are_not_judged(compared: Callable[..., Document]) -> None:
    document = compared(lambda _, __: a_result("burst", distributions={"fire_lag": [lags(1_000, 500)]}))
    assert [figure.name for figure in document.figures] == ["fire_lag p50", "fire_lag p95"]


def test_an_incorrect_slice_ends_it_at_once_whichever_side_it_is(compared: Callable[..., Document]) -> None:
    def measured(name: str, index: int) -> Result:
        if name == "head" and index == 2:
            raise Incorrect("doubles is 1")
        return rate(100)

    document = compared(measured)
    assert (document.verdict.code, document.verdict.reason) == (3, "in HEAD, doubles is 1")


def test_a_slice_that_says_nothing_is_run_anew_and_named(compared: Callable[..., Document]) -> None:
    def measured(name: str, index: int) -> Result:
        if name == "head" and index == 1:
            raise InvalidRun("the generator lagged")
        return rate(100)

    document = compared(measured)
    assert document.verdict.code == Verdict.OK
    assert document.invalid == ["the generator lagged"]


def test_too_many_of_them_say_that_the_machine_is_not_fit(compared: Callable[..., Document]) -> None:
    def measured(_: str, __: int) -> Result:
        raise InvalidRun("stolen")

    assert compared(measured).verdict.code == Verdict.INVALID


def test_a_missing_backend_keeps_its_code(compared: Callable[..., Document]) -> None:
    def measured(_: str, __: int) -> Result:
        raise BackendUnavailable("postgres: none")

    assert compared(measured).verdict.code == Verdict.BACKEND_UNAVAILABLE


def test_a_figure_of_one_side_only_is_not_comparable(compared: Callable[..., Document]) -> None:
    document = compared(lambda name, _: rate(100) if name == "base" else rate(100, settle_rate=1))
    assert (document.verdict.code, document.verdict.reason) == (4, "settle_rate: only HEAD measures it")


def test_an_interruption_is_a_verdict_and_leaves_nothing(compared: Callable[..., Document], tmp_path: Path) -> None:
    def measured(_: str, __: int) -> Result:
        raise KeyboardInterrupt

    document = compared(measured)
    assert (document.verdict.code, document.verdict.reason) == (6, "interrupted")
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_an_accepted_regression_is_named_and_turns_nothing_red(compared: Callable[..., Document]) -> None:
    entry = Accepted(profile="burst", metric="drain_rate", size=0.3, reason="labels", expires=TODAY)
    document = compared(lambda name, _: rate(100 if name == "base" else 80), accepted=[entry])
    assert document.verdict.code == Verdict.OK
    assert document.figures[0].note == "accepted until 2026-06-01: labels"
    expired = msgspec.structs.replace(entry, expires=date(2026, 5, 31))
    document = compared(lambda name, _: rate(100 if name == "base" else 80), accepted=[expired])
    assert document.verdict.code == Verdict.REGRESSED


def test_the_document_reads_back_and_hides_passwords(compared: Callable[..., Document], tmp_path: Path) -> None:
    secret = ["--dsn", "postgresql://me:hunter2@host/db"]
    document = compared(lambda _, __: rate(100), options=secret, command=["luciole", *secret])
    path = write_document(document, tmp_path / "out")
    assert path.name == FILE_NAME
    assert "hunter2" not in path.read_text(encoding="utf-8") + page(document)
    assert msgspec.json.decode(path.read_bytes(), type=Document) == document


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_slice_leaves_no_process_and_no_file(
    tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-m", "luciole", "bench", "ab", "HEAD", ".", "--profile", "micro", "--out", "out"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [*command[:-1], str(tmp_path / "out")],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        assert child.stderr
        assert child.stdout
        while not re.match("pair 1/", child.stderr.readline()):
            assert child.poll() is None
        child.send_signal(number)
        said, _ = child.communicate(timeout=120)
    assert (child.returncode, said.splitlines()[-1]) == (6, "bench: INVALID interrupted")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["luciole-bench.lock", "out"]
    worktrees = subprocess.run(
        ["git", "-C", str(ROOT), "worktree", "list"], check=True, capture_output=True, text=True
    ).stdout
    assert str(tmp_path) not in worktrees
