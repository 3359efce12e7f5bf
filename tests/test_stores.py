"""A store that is missing is never missed silently."""

import pytest

from tests import stores


@pytest.fixture(autouse=True)
def report(monkeypatch: pytest.MonkeyPatch) -> stores.StoreReport:
    """A report of this test alone."""
    fresh = stores.StoreReport()
    monkeypatch.setattr(stores, "REPORT", fresh)
    return fresh


def test_a_store_that_a_machine_may_lack_is_skipped_and_reported(
    monkeypatch: pytest.MonkeyPatch, report: stores.StoreReport
) -> None:
    monkeypatch.delenv("STORES", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install postgresql"):
        stores.refuse_missing("PostgreSQL of the machine")
    (line,) = report.lines()
    assert line.startswith("MISSING  PostgreSQL of the machine. To get it: apt-get install postgresql")


def test_where_all_stores_are_asked_for_a_missing_one_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORES", "all")
    with pytest.raises(pytest.fail.Exception, match="apt-get install postgresql"):
        stores.refuse_missing("PostgreSQL of the machine")


def test_a_required_store_is_a_failure_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORES", raising=False)
    with pytest.raises(pytest.fail.Exception, match="make setup"):
        stores.refuse_missing("PostgreSQL of the wheel")


def test_what_each_process_ran_comes_together_in_one_report(report: stores.StoreReport) -> None:
    stores.note_ran("SQLite", "3.40")
    report.merge({"ran": {"PostgreSQL of the wheel": "18.6"}, "missing": {"PostgreSQL of the machine": "buy one"}})
    assert report.lines() == [
        "ran      PostgreSQL of the wheel 18.6",
        "ran      SQLite 3.40",
        "MISSING  PostgreSQL of the machine. To get it: buy one",
    ]
