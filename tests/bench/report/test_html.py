"""The page: all of a result, nothing of it as markup, no network, and charts that a browser really draws."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from luciole.bench.cli import bench
from luciole.bench.report.files import write_reports
from luciole.bench.report.html import page
from luciole.bench.report.names import name_all
from luciole.bench.result import Result, write_result
from luciole.bench.verdict import Verdict
from tests.bench.deciding.some_results import a_result
from tests.bench.report.some_page import HOSTILE, full
from tests.browser import look_at

FOLDER = Path(__file__).parents[3] / "docs/performance/results"


class Elements(HTMLParser):
    """Collects what elements and attributes a page has."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.charts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        values = dict(attrs)
        self.ids.add(values.get("id") or "")
        self.links |= {value for name, value in attrs if name in {"href", "src"} and value}
        if "data-chart" in values:
            self.charts.append(values["data-chart"] or "")


def elements(text: str) -> Elements:
    found = Elements()
    found.feed(text)
    return found


def test_nothing_that_a_result_says_becomes_markup_or_shows_a_password() -> None:
    text = page([full()])
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&quot;&amp;" in text
    assert HOSTILE not in text
    assert "me:&lt;password&gt;@127.0.0.1" in text
    assert "hunter2" not in text


def test_the_page_needs_no_network_and_no_script() -> None:
    found = elements(page([full(), full("single")]))
    assert found.names & {"script", "link", "img", "iframe", "object"} == set()
    assert all(link.startswith("#") for link in found.links)
    assert {link[1:] for link in found.links} <= found.ids
    assert re.findall(r"url\(|@import|https?://(?!www\.w3\.org)", page([full()])) == []


def test_all_that_a_result_holds_is_on_its_page() -> None:
    result = full()
    text = page([result])
    for said in (
        result.question,
        result.verdict.reason,
        result.repeats[-1].attribution[0].sentence,
        "One machine holds it all.",
        "2026-01-01 00:00 UTC",
        "Luciole 0.1.0",
        "synchronous",
        "doubles",
    ):
        assert said in text, said
    assert set(elements(text).charts) == {
        "percentiles of fire_lag",
        "percentiles of settle_lag",
        "rate to p99 of start lag",
        "rate to open at once, the most",
        "jobs over time",
        "ms over time",
        "cores over time",
        "bytes/s over time",
        "stages of drain",
        "stages of settle",
        "shares of ceilings",
        "ceilings of drain",
        "ceilings of settle",
        "waits of drain",
        "ways of the slowest jobs",
        "ways of the random jobs",
        "cpu profile of scheduler 1",
    }


def test_several_results_stand_side_by_side_with_the_gain_and_its_reasons() -> None:
    text = page([full("single", 5_000), full("batch", 50_000)])
    assert "Drain rate: 50,000 jobs/s with path batch, 5,000 with path single: 10 times as much." in text
    assert "0.01 became 0.001 commits/job" in text


def test_a_result_is_named_by_what_it_was_asked_for_differently() -> None:
    results = [a_result(requested={"path": path, "out": path}) for path in ("single", "batch", "batch")]
    assert [one.name for one in name_all(results)] == ["path single", "path batch (2)", "path batch (3)"]


def test_void_figures_are_said_to_be_void() -> None:
    result = full()
    result.verdict = result.verdict.__class__(word="incorrect", code=int(Verdict.INCORRECT), reason="doubled")
    text = page([result])
    assert "The figures are void" in text
    assert "<del>50,000</del>" in text
    assert 'class="cards"' not in text


@pytest.mark.parametrize("result", [a_result("micro", verdict=Verdict.INVALID), a_result()])
def test_a_result_that_holds_almost_nothing_has_a_page(result: Result) -> None:
    result.repeats, result.metrics, result.environment, result.requested = [], [], {}, {}
    assert elements(page([result])).charts == []


def test_the_stored_results_of_the_product_have_pages() -> None:
    from luciole.bench.result import read_result  # noqa: PLC0415 - here only

    for path in sorted(FOLDER.glob("*.json")):
        assert "<h1>" in page([read_result(path)])


def test_the_command_writes_the_page_of_several_results(tmp_path: Path) -> None:
    for path in ("single", "batch"):
        write_result(full(path), tmp_path / path)
    target = tmp_path / "page.html"
    arguments = ["report", str(tmp_path / "single"), str(tmp_path / "batch"), "--html", str(target)]
    done = CliRunner().invoke(bench, arguments, standalone_mode=False)
    assert (done.return_value, done.stdout.splitlines()[-1]) == (0, f"bench: OK report: {target}")
    assert "Side by side" in target.read_text(encoding="utf-8")
    refused = CliRunner().invoke(bench, [*arguments[:3], "--html", str(tmp_path / "no/page")], standalone_mode=False)
    assert (refused.return_value, "No such file" in refused.stdout) == (2, True)


def test_beside_a_result_stand_its_reports(tmp_path: Path) -> None:
    write_reports([full()], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.md", "trace.json"]


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_draws_every_chart(tmp_path: Path, *, dark: bool) -> None:
    """Goal: no chart is blank, cut off or off the page. Method: a headless browser, and the pixels of each chart."""
    file = tmp_path / "page.html"
    results = [full("single", 5_000), full()]
    file.write_text(page(results), encoding="utf-8")
    look = look_at(file, tmp_path, dark=dark)
    assert [chart.name for chart in look.charts] == elements(page(results)).charts
    assert not look.too_wide
    blank = [chart for chart in look.charts if chart.drawn < 0.005 or chart.colours < 4 or chart.height < 30]
    assert blank == []


@pytest.mark.slow
def test_the_look_at_charts_sees_a_blank_one(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(
        re.sub(r"<style>.*</style>", "<style>svg * { display: none }</style>", page([full()]), flags=re.DOTALL)
    )
    look = look_at(file, tmp_path)
    assert len(look.charts) == 17
    assert {chart.drawn for chart in look.charts} == {0.0}
