"""The page of results is made of the result files that stand beside it."""

from pathlib import Path

from luciole.bench.report.markdown import page
from luciole.bench.result import read_result
from luciole.bench.verdict import Verdict

FOLDER = Path(__file__).parents[2] / "docs/performance"


def test_the_page_of_results_says_what_the_result_files_say() -> None:
    results = [read_result(path) for path in sorted((FOLDER / "results").glob("*.json"))]
    assert [result.profile for result in results if result.verdict.code == Verdict.INCORRECT] == []
    assert (FOLDER / "results.md").read_text(encoding="utf-8") == page(results)
