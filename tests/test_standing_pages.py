"""The standing pages say what was measured for them."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from luciole.bench.percentiles import Distribution
from luciole.bench.result import Metric, MetricSpec, Result, metric, outcome
from luciole.bench.verdict import Verdict
from scripts import standing_pages
from scripts.standing_pages import LOSES, SURE_FROM, Sizes, Slice, batch_cells, durability_cells, pages

SIZES = Sizes(jobs=2_000, schedules=100, period_s=1, singles=10)


@dataclass(slots=True)
class FakeBench:
    """Answers each slice at once; each time a tenth faster."""

    revision: str = "one"
    ran: list[Slice] = field(default_factory=list)

    def __call__(self, one: Slice) -> Result:
        self.ran.append(one)
        value = 100.0 * 1.1 ** sum(other == one for other in self.ran)
        metrics = [_rate(name, value) for name in standing_pages._FIGURES[one.profile]]  # noqa: SLF001 - what is kept
        lag = Distribution()
        lag.add(round(value))
        name = {"burst": "commit_time", "steady": "start_lag"}.get(one.profile)
        if name:
            spec = MetricSpec(name=name, unit="us", direction="none", text="")
            metrics.append(metric(spec, [value], lag.percentiles()))
        return Result(
            profile=one.profile,
            question="",
            border="",
            verdict=outcome(Verdict.OK, ""),
            started="2026-12-01T00:00:00Z",
            duration_s=1,
            product={"revision": self.revision, "dirty": False},
            command=[],
            environment={"cpu": "a CPU", "cores": 2, "kernel": "k", "filesystem": "ext4", "fingerprint": "f"},
            backend={},
            requested={},
            metrics=metrics,
        )


def _rate(name: str, value: float) -> Metric:
    return metric(MetricSpec(name=name, unit="jobs/s", direction="higher", text=""), [value])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeBench:
    """A bench that answers at once, a folder of the test's own, a clean revision and a quiet machine."""
    monkeypatch.setattr(standing_pages, "KEPT", tmp_path)
    monkeypatch.setattr(standing_pages, "changed", lambda: "")
    monkeypatch.setattr("psutil.cpu_percent", lambda interval: 1.0 * bool(interval))
    return FakeBench()


def measured(name: str, bench: FakeBench, rounds: int, *, only: str = "") -> dict[str, Any]:
    path = standing_pages.measure(name, sizes=SIZES, rounds=rounds, run=bench, only=only)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_each_page_is_what_its_figures_say() -> None:
    found = pages()
    assert [path.name for path in found] == ["batch-size.md", "durability.md"]
    for path, text in found.items():
        assert path.read_text(encoding="utf-8") == text


def test_every_size_connection_and_setting_is_measured() -> None:
    cells = batch_cells(SIZES)
    sizes = {tuple(cell.name.split(" x ")) for cell in cells if " x " in cell.name}
    assert sizes == {(str(n), str(c)) for n in (50, 100, 200, 500, 1_000, 2_000) for c in (1, 2, 4)}
    durable = durability_cells(SIZES)
    assert [cell.name for cell in durable] == list(LOSES)
    assert {tuple(one.profile for one in cell.slices) for cell in durable} == {("burst", "enqueue", "steady")}
    asked = [one.words for cell in durable if "default" not in cell.name for one in cell.slices]
    assert all("--set" in words for words in asked)


def test_rounds_go_through_all_cells_and_add_up_at_one_revision(bench: FakeBench) -> None:
    first = measured("durability", bench, 1)
    assert [one.profile for one in bench.ran[:4]] == ["burst", "enqueue", "steady", "burst"]
    second = measured("durability", bench, 1)
    parts = second["cells"]["sqlite, synchronous=normal"]
    assert {name: len(next(iter(part["figures"].values()))) for name, part in parts.items()} == {
        "burst": 2,
        "enqueue": 2,
        "steady": 1,
    }
    assert (parts["burst"]["figures"]["drain_rate"], parts["burst"]["distribution"]["count"]) == ([110.0, 121.0], 2)
    assert (standing_pages.rounds_of(first), standing_pages.rounds_of(second)) == (1, 2)
    bench.revision = "two"
    third = measured("durability", bench, 1)
    assert (third["revision"], standing_pages.rounds_of(third)) == ("two", 1)


def test_the_page_gives_medians_and_their_ratio_to_the_default(bench: FakeBench) -> None:
    found = measured("durability", bench, SURE_FROM)
    found["cells"]["sqlite, synchronous=normal"]["burst"]["figures"] |= {
        "drain_rate": [100, 900, 300],
        "end_to_end_rate": [242.0],
    }
    text = standing_pages.durability_page(found)
    assert "| sqlite, synchronous=normal | 300 | 100-900 | 121 | 2.00 | the transactions since" in text
    assert "- SQLite with `synchronous=normal`: a burst from due to settled is 2.00 times as fast" in text


def test_chunks_show_what_they_really_held_and_what_a_failure_undoes(bench: FakeBench) -> None:
    text = standing_pages.batch_page(measured("batch-size", bench, SURE_FROM))
    # The bench above counts one chunk a burst.
    assert "| 500 | 2,000 | 4 | 121 | 110-133 | 100% | 0.1 / 0.1 | 1,500 |" in text


def test_a_page_waits_until_all_its_cells_are_measured(bench: FakeBench) -> None:
    measured("durability", bench, SURE_FROM, only="sqlite")
    assert [path.name for path in pages()] == []
    measured("durability", bench, 1)
    assert [path.name for path in pages()] == ["durability.md"]


def test_a_look_is_called_rough_until_it_is_sure(bench: FakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    def rough(rounds: int) -> list[str]:
        found = measured("durability", bench, rounds)
        reasons = standing_pages.rough_because(found)
        assert ("A rough look" in standing_pages.durability_page(found)) == bool(reasons)
        return [reason.split()[0] for reason in reasons]

    assert rough(SURE_FROM - 1) == ["rounds:"]
    assert rough(1) == []
    monkeypatch.setattr("psutil.cpu_percent", lambda interval: 90.0 * bool(interval))
    assert rough(SURE_FROM) == ["others"]
    monkeypatch.setattr(standing_pages, "changed", lambda: " M src/luciole/app.py\n")
    assert rough(SURE_FROM) == ["measured", "others"]
