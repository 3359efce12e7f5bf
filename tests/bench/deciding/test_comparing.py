"""Two results are compared figure by figure; nothing that is unknown, missing or unlike ever passes."""

from datetime import date

import msgspec
import pytest
from msgspec.structs import replace

from luciole.bench.deciding.accepted import Accepted
from luciole.bench.deciding.comparing import Comparison, Found, Row, Rule, Terms, compare
from luciole.bench.deciding.kinds import Kind, kind_of
from luciole.bench.deciding.likeness import Likeness
from luciole.bench.deciding.table import table
from luciole.bench.profiles import PROFILES
from luciole.bench.result import MetricSpec, Result
from luciole.bench.verdict import Verdict
from tests.bench.deciding.some_results import a_result, lags

TODAY = date(2026, 6, 1)
TERMS = Terms(today=TODAY)

REGISTERED = [
    pytest.param(profile.name, spec, id=f"{profile.name}-{spec.name}")
    for profile in PROFILES.values()
    for spec in profile.metrics
]


def only_row(old: Result, new: Result, terms: Terms = TERMS) -> Row:
    (row,) = compare(old, new, terms).rows
    return row


def row_of(comparison: Comparison, name: str) -> Row:
    return next(row for row in comparison.rows if row.name == name)


def of(profile: str, name: str, *values: float) -> Result:
    return a_result(profile, {name: values})


@pytest.mark.parametrize("rule", ["threshold", "evidence"])
@pytest.mark.parametrize(("profile", "spec"), REGISTERED)
def test_every_registered_metric_is_judged_by_its_direction_both_ways(
    profile: str, spec: MetricSpec, rule: Rule
) -> None:
    terms = Terms(today=TODAY, rule=rule)
    less, same, more = (of(profile, spec.name, *values) for values in ((79, 80, 81, 80), (100,) * 4, (120, 121) * 2))
    found = (only_row(same, less, terms).found, only_row(same, more, terms).found)
    expected = {
        "higher": (Found.REGRESSED, Found.IMPROVED),
        "lower": (Found.IMPROVED, Found.REGRESSED),
        "zero": (Found.REGRESSED, Found.REGRESSED),
        "none": (Found.SHOWN, Found.SHOWN),
    }
    assert found == expected[spec.direction]
    assert (compare(same, more, terms).verdict is Verdict.REGRESSED) == (found[1] is Found.REGRESSED)


@pytest.mark.parametrize(("profile", "spec"), REGISTERED)
def test_every_registered_metric_may_change_by_noise_and_counts_by_less(profile: str, spec: MetricSpec) -> None:
    if spec.direction in {"zero", "none"}:
        return
    old, new = of(profile, spec.name, 100, 100), of(profile, spec.name, 100, 100)
    assert only_row(old, new).found is Found.UNCHANGED
    worse = 104.0 if spec.direction == "lower" else 96.0
    expected = Found.REGRESSED if kind_of(spec) is Kind.WORK else Found.UNCHANGED
    assert only_row(old, of(profile, spec.name, worse, worse)).found is expected


def test_what_is_counted_for_each_job_is_gated_at_one_percent_and_under_load_at_three() -> None:
    def found(new: float) -> Found:
        return only_row(of("burst", "commits_per_job", 1.0), of("burst", "commits_per_job", new)).found

    assert found(1.009) is Found.UNCHANGED
    assert found(1.011) is Found.REGRESSED
    loaded = replace(PROFILES["burst"], under_load=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROFILES, "burst", loaded)
        assert found(1.029) is Found.UNCHANGED
        assert found(1.031) is Found.REGRESSED


def test_a_chunk_more_is_no_work_for_each_job_but_a_commit_for_each_job_is() -> None:
    old = of("burst", "commits_per_job", 0.0050, 0.0050, 0.0050)
    assert only_row(old, of("burst", "commits_per_job", 0.0060)).found is Found.UNCHANGED
    assert only_row(old, of("burst", "commits_per_job", 1.0050)).found is Found.REGRESSED


def test_a_count_that_varies_by_itself_is_compared_beyond_its_own_spread() -> None:
    old = of("burst", "statements_per_job", 1.00, 1.00, 1.10)
    assert only_row(old, of("burst", "statements_per_job", 1.08)).found is Found.UNCHANGED
    assert only_row(old, of("burst", "statements_per_job", 1.12)).found is Found.REGRESSED


def test_every_kind_of_figure_is_registered_so_that_each_gate_is_used() -> None:
    kinds = {spec.name: kind_of(spec) for profile in PROFILES.values() for spec in profile.metrics}
    assert kinds["commits_per_job"] is Kind.WORK
    assert kinds["wal_bytes_per_job"] is Kind.WORK
    assert kinds["client_cpu_us_per_job"] is Kind.CPU
    assert kinds["drain_rate"] is Kind.TIME
    assert kinds["queries"] is Kind.TIME


def test_by_evidence_values_that_overlap_are_no_regression_and_by_threshold_they_are() -> None:
    old = of("burst", "drain_rate", 100, 120, 80, 101)
    new = of("burst", "drain_rate", 90, 121, 79, 92)
    assert only_row(old, new).found is Found.UNCHANGED
    assert only_row(old, new, Terms(today=TODAY, rule="threshold")).found is Found.REGRESSED


def test_by_evidence_fewer_than_four_values_over_the_threshold_are_a_regression() -> None:
    old, new = of("burst", "drain_rate", 100, 120, 80), of("burst", "drain_rate", 90, 121, 79)
    assert only_row(old, new).found is Found.REGRESSED


def test_a_wider_threshold_lets_more_pass() -> None:
    old, new = of("burst", "drain_rate", 100), of("burst", "drain_rate", 85)
    assert only_row(old, new, Terms(today=TODAY, threshold=0.2)).found is Found.UNCHANGED
    assert only_row(old, new).found is Found.REGRESSED


def test_a_percentile_is_judged_only_with_twenty_samples_beyond_it() -> None:
    old = a_result("burst", distributions={"fire_lag": [lags(1_000, 1_900)]})
    new = a_result("burst", distributions={"fire_lag": [lags(2_000, 1_900)]})
    few = compare(old, new, TERMS)
    assert row_of(few, "fire_lag p99").found is Found.SHOWN
    assert row_of(few, "fire_lag p95").found is Found.REGRESSED
    old = a_result("burst", distributions={"fire_lag": [lags(1_000, 2_000)]})
    new = a_result("burst", distributions={"fire_lag": [lags(2_000, 2_000)]})
    assert row_of(compare(old, new, TERMS), "fire_lag p99").found is Found.REGRESSED


def test_better_and_worse_in_one_file_are_both_shown() -> None:
    old = a_result("burst", {"drain_rate": [100]}, distributions={"fire_lag": [lags(1_000, 5_000)]})
    new = a_result("burst", {"drain_rate": [120]}, distributions={"fire_lag": [lags(1_200, 5_000)]})
    comparison = compare(old, new, TERMS)
    assert row_of(comparison, "drain_rate").found is Found.IMPROVED
    assert row_of(comparison, "fire_lag p99").found is Found.REGRESSED
    assert comparison.verdict is Verdict.REGRESSED
    page = table(old, new, comparison)
    assert "| drain_rate (jobs/s) | 100 | 120 | +20.0 % | up | 5 % | improved |" in page
    assert "**REGRESSED**" in page


def test_a_metric_that_one_side_lacks_is_an_error_never_a_pass() -> None:
    both = a_result("burst", {"drain_rate": [100], "settle_rate": [100]})
    one = a_result("burst", {"drain_rate": [100]})
    assert compare(both, one, TERMS).verdict is Verdict.NOT_COMPARABLE
    assert compare(one, both, TERMS).verdict is Verdict.NOT_COMPARABLE
    assert row_of(compare(both, one, TERMS), "settle_rate").found is Found.MISSING
    allowed = Terms(today=TODAY, allow=frozenset({Likeness.METRICS}))
    assert compare(one, both, allowed).verdict is Verdict.OK


def test_a_figure_that_only_describes_may_be_missing() -> None:
    both = a_result("burst", {"drain_rate": [100], "lost_races": [3]})
    assert compare(both, a_result("burst", {"drain_rate": [100]}), TERMS).verdict is Verdict.OK


def test_an_unknown_metric_is_an_error_on_either_side() -> None:
    plain = a_result("burst", {"drain_rate": [100]})
    strange = a_result("burst", {"drain_rate": [100]})
    strange.metrics.append(replace(strange.metrics[0], name="made_up_rate"))
    for old, new in ((plain, strange), (strange, plain), (strange, strange)):
        comparison = compare(old, new, TERMS)
        assert comparison.verdict is Verdict.NOT_COMPARABLE
        assert row_of(comparison, "made_up_rate").found is Found.UNKNOWN


@pytest.mark.parametrize("changed", [{"unit": "jobs/min"}, {"direction": "lower"}])
def test_a_changed_unit_or_direction_is_not_comparable(changed: dict[str, str]) -> None:
    old = a_result("burst", {"drain_rate": [100]})
    new = a_result("burst", {"drain_rate": [100]})
    new.metrics = [msgspec.convert({**msgspec.to_builtins(new.metrics[0]), **changed}, type(new.metrics[0]))]
    comparison = compare(old, new, TERMS)
    assert comparison.rows[0].found is Found.UNIT_CHANGED
    assert comparison.verdict is Verdict.NOT_COMPARABLE


def test_another_machine_is_not_comparable_unless_it_is_allowed() -> None:
    old = a_result("burst", {"drain_rate": [100]})
    new = a_result("burst", {"drain_rate": [100]}, fingerprint="f" * 16)
    comparison = compare(old, new, TERMS)
    assert comparison.verdict is Verdict.NOT_COMPARABLE
    assert "another machine: fingerprint 0123456789abcdef and ffffffffffffffff" in comparison.reason
    allowed = compare(old, new, Terms(today=TODAY, allow=frozenset({Likeness.MACHINE})))
    assert allowed.verdict is Verdict.OK
    assert "another machine" in table(old, new, allowed)


def test_results_without_a_machine_are_never_of_one() -> None:
    old, new = (a_result("burst", {"drain_rate": [100]}) for _ in range(2))
    old.environment = new.environment = {}
    assert compare(old, new, TERMS).verdict is Verdict.NOT_COMPARABLE


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"requested": {"jobs": 2, "size": "full"}}, "jobs: 1000 and 2"),
        ({"backend": {"name": "postgres", "version": "18"}}, "backend name: sqlite and postgres"),
        ({"backend": {"name": "sqlite", "version": "3.45", "settings": {"synchronous": "0"}}}, "server setting"),
        ({"profile": "pickup"}, "profile: burst and pickup"),
    ],
)
def test_other_parameters_are_not_comparable(change: dict[str, object], said: str) -> None:
    old = a_result("burst", {"drain_rate": [100]})
    new = replace(a_result("burst", {"drain_rate": [100]}), **change)
    comparison = compare(old, new, TERMS)
    assert comparison.verdict is Verdict.NOT_COMPARABLE
    assert said in comparison.reason


def test_more_repeats_are_no_other_parameters() -> None:
    old = a_result("burst", {"drain_rate": [100]}, requested={"size": "ci"})
    new = a_result("burst", {"drain_rate": [100, 100]})
    assert compare(old, new, TERMS).verdict is Verdict.OK


@pytest.mark.parametrize("verdict", [Verdict.INCORRECT, Verdict.INVALID, Verdict.BACKEND_UNAVAILABLE])
def test_a_result_that_says_nothing_ends_the_comparison_with_its_own_code(verdict: Verdict) -> None:
    sound, broken = (a_result("burst", {"drain_rate": [100]}, verdict=one) for one in (Verdict.OK, verdict))
    assert compare(sound, broken, TERMS).verdict is verdict
    assert compare(broken, sound, TERMS).verdict is Verdict.NOT_COMPARABLE


def test_results_without_a_figure_in_common_are_not_comparable() -> None:
    assert compare(a_result("burst"), a_result("burst"), TERMS).verdict is Verdict.NOT_COMPARABLE


def accepting(size: float, expires: date, **more: str) -> Terms:
    entry = msgspec.convert(
        {"profile": "burst", "metric": "drain_rate", "size": size, "reason": "rows carry labels", "expires": expires}
        | more,
        Accepted,
    )
    return Terms(today=TODAY, accepted=[entry])


def test_an_accepted_regression_is_shown_and_is_none_until_its_day() -> None:
    old, new = of("burst", "drain_rate", 100), of("burst", "drain_rate", 88)
    comparison = compare(old, new, accepting(0.12, TODAY))
    assert comparison.rows[0].found is Found.ACCEPTED
    assert comparison.rows[0].note == "until 2026-06-01: rows carry labels"
    assert comparison.verdict is Verdict.OK


def test_past_its_day_an_accepted_regression_is_one_again() -> None:
    old, new = of("burst", "drain_rate", 100), of("burst", "drain_rate", 88)
    comparison = compare(old, new, accepting(0.12, date(2026, 5, 31)))
    assert comparison.rows[0].note == "was accepted until 2026-05-31: rows carry labels"
    assert comparison.verdict is Verdict.REGRESSED


def test_what_is_worse_than_was_accepted_is_a_regression() -> None:
    old, new = of("burst", "drain_rate", 100), of("burst", "drain_rate", 87)
    assert compare(old, new, accepting(0.12, TODAY)).verdict is Verdict.REGRESSED


def test_what_was_accepted_elsewhere_is_not_accepted_here() -> None:
    old, new = of("burst", "drain_rate", 100), of("burst", "drain_rate", 88)
    assert compare(old, new, accepting(0.12, TODAY, backend="postgres")).verdict is Verdict.REGRESSED
    assert compare(old, new, accepting(0.12, TODAY, metric="settle_rate")).verdict is Verdict.REGRESSED


def test_the_noise_of_this_machine_stands_beside_the_figure() -> None:
    terms = Terms(today=TODAY, noise={"drain_rate": 0.081})
    assert (
        only_row(of("burst", "drain_rate", 100), of("burst", "drain_rate", 99), terms).note
        == "noise here 8.1%, could see 28.5%"
    )
