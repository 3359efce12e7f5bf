"""The sum of the ledger says what was measured for it."""

import json
from pathlib import Path

import msgspec
import pytest

from luciole.bench.result import Result, write_result
from luciole.bench.verdict import NotReadable
from scripts import ledger
from tests.bench.deciding.some_results import a_result

PAGE = "# The ledger\n\n<!-- measured: begin -->\nold\n<!-- measured: end -->\n\nAnd so on.\n"


def a_slice(value: float, revision: str, *, dirty: bool = False) -> Result:
    result = a_result("burst", {"drain_rate": [value], "drain_us": [1.0]})
    result.product = {"revision": revision * 40, "dirty": dirty}
    machine = {"cpu": "a CPU", "cores": 2, "filesystem": "ext4", "fingerprint": "f", "noise": {"busy_before": 0.02}}
    return msgspec.structs.replace(result, environment=machine)


def test_the_page_holds_what_its_figures_say() -> None:
    text = ledger.PAGE.read_text(encoding="utf-8")
    kept = json.loads(ledger.KEPT.read_text(encoding="utf-8"))
    assert ledger.with_measured(text, ledger.text_of(kept)) == text


def test_slices_of_both_sides_become_a_table_in_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "PAGE", tmp_path / "ledger.md")
    monkeypatch.setattr(ledger, "KEPT", tmp_path / "ledger.json")
    ledger.PAGE.write_text(PAGE, encoding="utf-8")
    for number, (side, value) in enumerate([("before", 100), ("after", 120), ("after", 160), ("before", 100)]):
        write_result(a_slice(value, side[0]), tmp_path / side / f"{number:03}-burst-sqlite")
    ledger.keep(tmp_path)
    text = ledger.PAGE.read_text(encoding="utf-8")
    assert text.startswith(
        "# The ledger\n\n<!-- measured: begin -->\n\nBefore: revision bbbbbbbbbbbb. After: revision aaaa"
    )
    assert "while others used 2% of the machine" in text
    assert "| burst | sqlite | drain_rate (jobs/s) | 100 | 140 | 1.40 | 2, 2 |" in text
    assert text.endswith("1.400, +40.0%.\n\n<!-- measured: end -->\n\nAnd so on.\n")
    assert ledger.with_measured(text, ledger.text_of(json.loads(ledger.KEPT.read_text(encoding="utf-8")))) == text


@pytest.mark.parametrize(("revision", "dirty"), [("c", False), ("a", True)])
def test_a_side_is_one_revision_without_changes(tmp_path: Path, revision: str, *, dirty: bool) -> None:
    write_result(a_slice(1, "b"), tmp_path / "before/0")
    write_result(a_slice(1, "a"), tmp_path / "after/1")
    write_result(a_slice(1, revision, dirty=dirty), tmp_path / "after/2")
    with pytest.raises(NotReadable, match="one revision without changes"):
        ledger.keep(tmp_path)
