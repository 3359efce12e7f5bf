"""`bench ab` from a document to its exit code."""

from pathlib import Path

import pytest

from luciole.bench.ab.document import Document
from luciole.bench.ab.run import Ab
from luciole.bench.result import outcome
from luciole.bench.verdict import Verdict
from tests.bench.test_cli import call


@pytest.mark.parametrize(
    ("verdict", "options", "expected"),
    [
        (Verdict.OK, (), 0),
        (Verdict.REGRESSED, (), 1),
        (Verdict.INCONCLUSIVE, (), 0),
        (Verdict.INCONCLUSIVE, ("--strict",), 5),
        (Verdict.INVALID, (), 6),
    ],
)
def test_what_stays_open_fails_only_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, options: tuple[str, ...], expected: int
) -> None:
    side = {"asked": "HEAD", "revision": "ab" * 20, "dirty": False}
    found = Document(
        profile="burst", options=[], verdict=outcome(verdict, "made up"), started="", duration_s=0, author=None,
        command=[], environment={}, base=side, head=side, seed=1, order=[], threshold=0.05, slices=0, invalid=[],
        figures=[],
    )  # fmt: skip
    monkeypatch.setattr(Ab, "run", lambda _: found)
    code, lines = call("ab", "HEAD", "HEAD", "--out", str(tmp_path), *options)
    assert (code, lines[-1]) == (expected, f"bench: {verdict.word.upper()} made up")
    assert (tmp_path / "ab.json").exists()
