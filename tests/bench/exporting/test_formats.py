"""Each export is read by what reads it: the tool's own library, or a check of its documented form."""

import csv as csv_module
import json
import re
from io import StringIO
from pathlib import Path

import pyperf as pyperf_library
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from luciole.bench.exporting import bmf, csv, gha, openmetrics, pyperf
from luciole.bench.exporting.csv import COLUMNS
from luciole.bench.profiles import PROFILES
from luciole.bench.result import Result
from luciole.bench.verdict import Usage
from tests.bench.deciding.some_results import a_result, lags
from tests.bench.test_cli import call
from tests.bench.test_cli_compare import write

#: Distributions of the profiles; all else is a plain figure.
SPREADS = {"fire_lag", "start_lag", "recovery"}


def whole(profile: str) -> Result:
    """Return a result with every metric of a profile."""
    plain = {spec.name: [1.5, 3.0, 2.0] for spec in PROFILES[profile].metrics if spec.name not in SPREADS}
    spreads = {spec.name: [lags(1_000, 2_000)] * 3 for spec in PROFILES[profile].metrics if spec.name in SPREADS}
    result = a_result(profile, plain, distributions=spreads)
    result.environment["cpu"] = 'a "quoted" cpu'
    return result


def parsed(text: str) -> dict[str, Metric]:
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call] # the parser has no types
    return {family.name: family for family in families}


every_profile = pytest.mark.parametrize("profile", list(PROFILES))


def directed(profile: str, *directions: str) -> list[str]:
    return [spec.name for spec in PROFILES[profile].metrics if spec.direction in directions]


@every_profile
def test_bencher_metric_format_has_numbers_by_measure_by_benchmark(profile: str) -> None:
    document = json.loads(bmf(whole(profile)))
    assert len(document) == 1
    ((name, measures),) = document.items()
    assert 0 < len(name) <= 1_024
    assert len(measures) == len(directed(profile, "higher", "lower", "zero"))
    for measure, metric in measures.items():
        assert re.fullmatch(r"[a-z0-9-]{1,64}", measure)
        assert set(metric) == {"value", "lower_value", "upper_value"}
        assert all(isinstance(value, int | float) for value in metric.values())
        assert metric["lower_value"] <= metric["value"] <= metric["upper_value"]


@every_profile
def test_the_benchmark_action_gets_each_figure_in_the_file_of_its_direction(profile: str) -> None:
    result = whole(profile)
    files = {better: json.loads(gha(result, better)) for better in ("bigger", "smaller")}
    for entries in files.values():
        for entry in entries:
            assert set(entry) == {"name", "unit", "value", "range", "extra"}
            assert isinstance(entry["value"], int | float)
            assert all(isinstance(entry[key], str) and entry[key] for key in ("name", "unit", "range", "extra"))
    names = {better: [entry["name"].rpartition(" ")[2] for entry in entries] for better, entries in files.items()}
    assert sorted(names["bigger"]) == sorted(directed(profile, "higher"))
    assert sorted(names["smaller"]) == sorted(directed(profile, "lower", "zero"))


def test_pyperf_loads_timings_in_seconds_and_sizes_in_bytes() -> None:
    suite = pyperf_library.BenchmarkSuite.loads(pyperf(whole("burst")))
    by_name = {benchmark.get_name().rpartition(" ")[2]: benchmark for benchmark in suite}
    assert by_name["drain_us"].get_unit() == "second"
    assert list(by_name["drain_us"].get_values()) == pytest.approx([1.5e-6, 3e-6, 2e-6])
    assert by_name["wal_bytes_per_job"].get_unit() == "byte"
    assert by_name["fire_lag"].mean() == pytest.approx(lags(1_000, 2_000).p99 / 1e6)
    assert suite.get_metadata()["cpu_model_name"] == 'a "quoted" cpu'


def test_pyperf_is_refused_where_nothing_is_a_timing_or_a_size() -> None:
    with pytest.raises(Usage, match="no timing and no size"):
        pyperf(a_result("burst", {"drain_rate": [1.0]}))


@every_profile
def test_openmetrics_is_parsed_by_the_reference_parser(profile: str) -> None:
    result = whole(profile)
    text = openmetrics(result)
    families = parsed(text)
    assert text.endswith("# EOF\n")
    gauges = [family for family in families.values() if family.type == "gauge"]
    assert len(gauges) == len(directed(profile, "higher", "lower", "zero"))
    for family in gauges:
        assert {sample.labels["statistic"] for sample in family.samples} == {"median", "least", "greatest"}
        assert {sample.labels["profile"] for sample in family.samples} == {profile}


def test_openmetrics_keeps_values_units_and_distributions() -> None:
    families = parsed(openmetrics(whole("burst")))
    medians = {
        name: next((one.value for one in family.samples if one.labels.get("statistic") == "median"), None)
        for name, family in families.items()
    }
    assert medians["luciole_bench_drain_rate"] == 2.0
    assert medians["luciole_bench_drain_seconds"] == pytest.approx(2e-6)
    samples = families["luciole_bench_fire_lag_seconds_distribution"].samples
    assert {sample.labels["quantile"] for sample in samples if "quantile" in sample.labels} == {
        "0.5",
        "0.95",
        "0.99",
        "1.0",
    }
    assert next(sample.value for sample in samples if sample.name.endswith("_count")) == 6_000


@every_profile
def test_every_value_of_every_repeat_stands_in_the_csv(profile: str) -> None:
    lines = list(csv_module.DictReader(StringIO(csv(whole(profile)))))
    assert tuple(lines[0]) == COLUMNS
    assert len(lines) == 3 * len(PROFILES[profile].metrics)
    plain = next(line for line in lines if line["metric"] not in SPREADS)
    values = [float(line["value"]) for line in lines if line["metric"] == plain["metric"]]
    assert values == [1.5, 3.0, 2.0]


@pytest.mark.parametrize("form", ["bmf", "gha", "pyperf", "openmetrics", "csv"])
def test_the_command_writes_each_format(tmp_path: Path, form: str) -> None:
    source, target = write(tmp_path / "result", whole("burst")), tmp_path / "exported"
    code, lines = call("export", source, "--as", form, "--out", str(target))
    assert (code, lines[-1]) == (0, f"bench: OK {form}: {target}")
    assert target.read_text(encoding="utf-8") == "\n".join(call("export", source, "--as", form)[1]) + "\n"


def test_what_can_not_be_read_or_is_void_is_not_exported(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{", encoding="utf-8")
    assert call("export", str(tmp_path), "--as", "csv")[0] == 4
