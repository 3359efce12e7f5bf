"""The search finds the most that is met, and what binds is named from figures."""

from pathlib import Path

import pytest

from luciole.bench import lock
from luciole.bench.result import Repeat, read_result
from luciole.bench.steady.capacity import binding
from luciole.bench.steady.search import Confirmation, Search
from tests.bench.test_cli import call


def found(limit: int, *, start: int = 1_000, most: int = 1_000_000, precision: float = 0.05) -> tuple[int, list[int]]:
    search = Search(start=start, most=most, precision=precision)
    tried = []
    while (amount := search.next()) is not None:
        tried.append(amount)
        assert len(tried) < 50
        search.note(amount, met=amount <= limit)
    return search.met, tried


@pytest.mark.parametrize("limit", [1, 7, 999, 1_000, 1_001, 33_333, 500_000, 999_999])
def test_the_search_comes_as_close_as_asked_and_tries_nothing_twice(limit: int) -> None:
    met, tried = found(limit)
    assert len(tried) == len(set(tried))
    assert met <= limit
    assert limit <= met * 1.06 + 1


def test_the_search_doubles_first_then_bisects() -> None:
    assert found(50_000, start=10_000)[1][:5] == [10_000, 20_000, 40_000, 80_000, 60_000]


def test_the_search_ends_at_the_most_that_is_asked_for() -> None:
    assert found(10**9, start=10_000, most=30_000) == (30_000, [10_000, 20_000, 30_000])


def test_where_nothing_is_met_the_search_ends_with_nothing() -> None:
    met, tried = found(0, start=8)
    assert (met, tried) == (0, [8, 4, 2, 1])


def confirmed(amount: int, *, limit: int) -> tuple[int, list[int]]:
    confirmation = Confirmation(amount=amount)
    tried = []
    while (trial := confirmation.next()) is not None:
        tried.append(trial)
        confirmation.note(trial, met=trial <= limit)
    return confirmation.met, tried


def test_what_short_windows_met_is_confirmed_around_it() -> None:
    assert confirmed(1_000, limit=1_000) == (1_000, [900, 1_000, 1_100])
    assert confirmed(1_000, limit=2_000) == (1_100, [900, 1_000, 1_100])
    assert confirmed(1_000, limit=950) == (900, [900, 1_000, 1_100])


def test_where_short_windows_flattered_a_lower_amount_is_confirmed() -> None:
    assert confirmed(1_700_000, limit=1_300_000) == (1_224_000, [1_530_000, 1_224_000, 1_360_000, 1_496_000])


@pytest.mark.parametrize("amount", [1, 7, 999, 2_000_000])
def test_where_longer_windows_meet_nothing_the_confirmation_ends_with_nothing(amount: int) -> None:
    met, tried = confirmed(amount, limit=0)
    assert met == 0
    assert len(tried) < 100


def step(busiest: dict[str, float], **figures: float) -> Repeat:
    return Repeat(index=0, figures=figures, objective=["on time: 98 %"], actual={"busiest": busiest})


def test_what_binds_is_the_fullest_resource() -> None:
    fine = Repeat(index=0, figures={"cores": 0.5})
    assert binding(fine, None, cores=2).startswith("nothing bound")
    full = step({"node": 0.9}, cores=1.9, node_cores=0.9, database_cores=1.0)
    assert "2 cores of this machine are full (node 0.90, database 1.00)" in binding(fine, full, cores=2)
    assert "the interpreter of the node is full" in binding(fine, step({"node_2": 0.97}, cores=2.0), cores=8)
    assert "nothing is full: 0.60 of 8 cores" in binding(fine, step({"node": 0.5}, cores=0.6), cores=8)
    assert binding(fine, full, cores=2).startswith("binds: on time;")


@pytest.mark.slow
def test_a_small_search_ends_with_a_confirmed_capacity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")
    code, lines = call("capacity", "steady", "--size", "smoke", "--handler", "noop", "--out", str(tmp_path))
    result = read_result(tmp_path)
    assert code in {0, 6, 7}, lines  # On a busy machine not even a few need hold the objective.
    if code == 0:
        assert [one["schedules"] for one in result.actual["steps"]] == [500, 450, 500, 550]
        assert result.repeats[0].figures["capacity"] >= 500
