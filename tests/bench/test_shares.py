"""Throughputs and their ceilings: each has one, each share is given, and an impossible one is no result."""

from pathlib import Path

import pytest

from luciole.bench.backends import Place, SqliteBackend
from luciole.bench.ceiling.lanes import Work, measure_rows, one_after_the_other
from luciole.bench.ceiling.rows import ROWS
from luciole.bench.profiles import PROFILES, find_profile
from luciole.bench.result import Repeat
from luciole.bench.run import fresh_place
from luciole.bench.shares import add_shares, impossible_shares
from luciole.runtime.clock import SystemClock

#: Profiles that measure the ceilings themselves: what the machine and the server do alone.
FLOORS = {"probe", "sql-ceiling", "micro"}

THROUGHPUTS = [
    (profile, spec)
    for profile in PROFILES.values()
    for spec in profile.metrics
    if profile.name not in FLOORS and spec.direction == "higher" and spec.unit.endswith("/s")
]


def test_every_throughput_names_its_ceiling_and_its_share() -> None:
    nameless = [f"{profile.name}.{spec.name}" for profile, spec in THROUGHPUTS if not (spec.ceiling and spec.share)]
    assert nameless == []
    for profile, spec in THROUGHPUTS:
        assert profile.metric(spec.ceiling).direction == "none"
        assert profile.metric(spec.share).unit == "ratio"
    assert {profile.name for profile, _ in THROUGHPUTS} == {
        "burst",
        "register",
        "enqueue",
        "drain",
        "store",
        "backlog",
        "capacity-steady",
    }


def test_each_repeat_gets_the_share_of_its_own_ceiling() -> None:
    repeats = [Repeat(index=n, figures={"drain_rate": 10.0 * n, "bare_pull_rate": 40.0}) for n in (1, 2)]
    add_shares(find_profile("drain"), repeats)
    assert [repeat.figures["pull_share"] for repeat in repeats] == [0.25, 0.5]


def test_a_result_that_lacks_a_ceiling_has_no_share_of_it() -> None:
    repeat = Repeat(index=0, figures={"drain_rate": 10.0})
    add_shares(find_profile("drain"), [repeat])
    assert repeat.figures == {"drain_rate": 10.0}
    assert impossible_shares(find_profile("drain"), [repeat]) == []


@pytest.mark.parametrize(("rate", "bad"), [(43.0, 0), (45.0, 1)])
def test_a_share_over_one_by_more_than_a_tenth_says_that_the_ceiling_was_measured_badly(rate: float, bad: int) -> None:
    repeat = Repeat(index=0, figures={"drain_rate": rate, "bare_pull_rate": 40.0})
    add_shares(find_profile("drain"), [repeat])
    found = impossible_shares(find_profile("drain"), [repeat])
    assert len(found) == bad
    assert all("drain_rate is 1.12 of its ceiling bare_pull_rate" in reason for reason in found)


def test_every_backend_has_the_rows_of_its_ceilings() -> None:
    assert set(ROWS) == {backend for profile, _ in THROUGHPUTS for backend in profile.backends}


@pytest.mark.parametrize("work", ["enqueue", "settle", "register", "find", "load"])
async def test_a_ceiling_is_what_really_stands_in_the_store(tmp_path: Path, work: Work) -> None:
    with SqliteBackend(tmp_path) as backend:
        async with fresh_place(backend) as place:
            rates = await measure_rows(place, (work,), 100, SystemClock(), payload=b"x")
    assert rates[work] > 0


@pytest.mark.postgres
async def test_the_server_alone_does_each_work_of_a_ceiling(postgres_dsn: str) -> None:
    place = Place(dsn=postgres_dsn, schema="luciole")
    rates = await measure_rows(place, ("enqueue", "settle", "register", "find", "load"), 100, SystemClock())
    assert min(rates.values()) > 0


def test_works_one_after_the_other_are_as_slow_as_their_times_add_up() -> None:
    assert one_after_the_other(100.0, 50.0) == pytest.approx(100 / 3)
