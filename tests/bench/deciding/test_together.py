"""Two sets of results, before and after: what they come to together."""

from pathlib import Path

import pytest

from luciole.bench.deciding.together import gains, page, together
from luciole.bench.profiles import PROFILES
from luciole.bench.result import Result, write_result
from luciole.bench.verdict import NotReadable, Verdict
from tests.bench.deciding.some_results import a_result
from tests.bench.test_cli import call


def rates(drain: float, settle: float, **more: float) -> Result:
    values = {"drain_rate": [drain], "settle_rate": [settle], **{name: [value] for name, value in more.items()}}
    return a_result("burst", values)


def test_slices_of_one_measurement_come_together_and_their_medians_make_the_ratio() -> None:
    before = [rates(100, 10), rates(300, 10), rates(200, 10)]
    after = [rates(400, 5), rates(100, 5), rates(900, 5)]
    found = gains(before, after)
    assert [(gain.figure, gain.before, gain.ratio) for gain in found] == [
        ("drain_rate", (100, 300, 200), 2.0),
        ("settle_rate", (10, 10, 10), 0.5),
    ]


def test_a_parameter_that_an_older_revision_does_not_know_keeps_nothing_apart() -> None:
    older = a_result("burst", {"drain_rate": [100]})
    newer = a_result("burst", {"drain_rate": [150]}, requested={"plan_ahead_us": 0})
    assert [gain.ratio for gain in gains([older], [newer])] == [1.5]


def test_twice_and_half_come_to_nothing() -> None:
    assert together([2.0, 0.5]) == pytest.approx(1.0)
    assert together([1.3, 1.3, 1.3]) == pytest.approx(1.3)
    text = page(gains([rates(100, 10)], [rates(200, 20)]))
    assert "| burst | sqlite | drain_rate (jobs/s) | 100 | 200 | 2.00 | 1, 1 |" in text
    assert text.endswith("Geometric mean over 2 gated throughputs: 2.000, +100.0%.")


def test_only_gated_throughputs_count() -> None:
    more = {"ceiling_share": 0.1, "drain_us": 5.0, "lost_races": 3.0}
    (gain,) = gains(
        [a_result("burst", {"drain_rate": [100], **_lists(more)})], [a_result("burst", {"drain_rate": [90]})]
    )
    assert (gain.figure, gain.ratio) == ("drain_rate", 0.9)
    ungated = {one.name for profile in PROFILES.values() for one in profile.metrics if one.direction == "none"}
    assert "bare_insert_rate" in ungated


def _lists(values: dict[str, float]) -> dict[str, list[float]]:
    return {name: [value] for name, value in values.items()}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([rates(1, 1)], [a_result("burst", {"drain_rate": [1]})], "on one side only: settle_rate of burst on sqlite"),
        ([a_result("burst", {"drain_rate": [1]})], [rates(1, 1)], "on one side only: settle_rate of burst on sqlite"),
        ([rates(1, 1)], [a_result("burst", {"drain_rate": [1]}, requested={"jobs": 7})], "on one side only"),
        ([a_result("burst", {"drain_us": [1]})], [a_result("burst", {"drain_us": [1]})], "no throughput"),
        ([rates(1, 1)], [a_result("burst", {"drain_rate": [1]}, fingerprint="other")], "results of several machines"),
        ([a_result("burst", {"drain_rate": [1]}, verdict=Verdict.INCORRECT)], [rates(1, 1)], "BEFORE: burst is incorr"),
    ],
)
def test_what_does_not_belong_together_is_no_comparison(before: list[Result], after: list[Result], said: str) -> None:
    with pytest.raises(NotReadable, match=said):
        gains(before, after)


@pytest.mark.parametrize(
    ("options", "code", "last"),
    [
        ((), 0, "bench: OK +41.4% over 2 gated throughputs (geometric mean)"),
        (("--at-least", "30%"), 0, "bench: OK +41.4% over 2 gated throughputs (geometric mean)"),
        (("--at-least", "50%"), 7, "bench: OBJECTIVE-MISSED +41.4% over 2 gated throughputs (geometric mean); 50.0% "),
    ],
)
def test_the_command_reads_folders_and_says_whether_enough_was_won(
    tmp_path: Path, options: tuple[str, ...], code: int, last: str
) -> None:
    for side, result in (("before", rates(100, 100)), ("after", rates(200, 100))):
        write_result(result, tmp_path / side / "burst-sqlite")
    found, lines = call("compare", "--together", str(tmp_path / "before"), str(tmp_path / "after"), *options)
    assert found == code
    assert lines[-1].startswith(last)


def test_a_folder_without_results_and_a_goal_without_sets_are_refused(tmp_path: Path) -> None:
    write_result(rates(1, 1), tmp_path / "before")
    (tmp_path / "after").mkdir()
    code, lines = call("compare", "--together", str(tmp_path / "before"), str(tmp_path / "after"))
    assert (code, "no result below it" in lines[-1]) == (Verdict.NOT_COMPARABLE, True)
    code, lines = call("compare", str(tmp_path / "before"), str(tmp_path / "before"), "--at-least", "30%")
    assert (code, "add --together" in lines[-1]) == (Verdict.USAGE, True)
