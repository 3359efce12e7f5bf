"""Accepted regressions are kept as text that people review."""

from datetime import date
from pathlib import Path

import pytest

from luciole.bench.deciding.accepted import Accepted, accept, read_accepted
from luciole.bench.verdict import Usage

ENTRY = Accepted(profile="burst", metric="drain_rate", size=0.12, reason='labels, see "why"', expires=date(2027, 3, 1))


def test_what_is_accepted_reads_back_and_what_stood_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "perf/accepted.toml"
    accept(path, ENTRY)
    path.write_text(path.read_text(encoding="utf-8") + "# a word of somebody\n", encoding="utf-8")
    other = Accepted(profile="micro", metric="x", size=1, reason="?", expires=date(2027, 1, 1), backend="sqlite")
    accept(path, other)
    assert read_accepted(path) == [ENTRY, other]
    assert "# a word of somebody" in path.read_text(encoding="utf-8")


def test_no_file_is_no_entry(tmp_path: Path) -> None:
    assert read_accepted(tmp_path / "none.toml") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[accepted]", "accepted.toml: "),
        ("[[accepted]]\nmetric = 'x'", "missing required field"),
        ("[[accepted]]\nprofile='b'\nmetric='x'\nsize=0.1\nreason=' '\nexpires=2027-01-01", "reason is empty"),
        ("[[accepted]]\nprofile='b'\nmetric='x'\nsize=0\nreason='r'\nexpires=2027-01-01", "size is 0"),
        ("[[accepted]]\nprofile='b'\nmetric='x'\nsize=1\nreason='r'\nexpires='soon'", "Invalid"),
        ("[[acepted]]\n", "unknown field"),
    ],
)
def test_an_entry_that_explains_nothing_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "accepted.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Usage, match=said):
        read_accepted(path)
    with pytest.raises(Usage, match=said):
        accept(path, ENTRY)
    assert path.read_text(encoding="utf-8") == text
