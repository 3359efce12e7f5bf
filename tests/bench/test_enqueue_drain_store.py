"""The profiles of one-off executions: small runs, checked, with bare loops of the same run beside them."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from luciole.bench import lock
from luciole.bench.backends import Place, SqliteBackend, connect_postgres, sqlite_path
from luciole.bench.bare import BARE, PULL_BATCH, Bare
from luciole.bench.check import ask
from luciole.bench.drain.forgotten import forgotten_transaction
from luciole.bench.profiles import find_profile
from luciole.bench.profiles.store import CALLERS, PAYLOADS
from luciole.bench.result import read_result
from luciole.bench.run import fresh_place
from luciole.bench.storage.worker import label
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import InvalidRun
from luciole.runtime.clock import SystemClock
from tests.bench.test_cli import call


@pytest.fixture(autouse=True)
def _own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    with SqliteBackend(tmp_path) as backend:
        async with fresh_place(backend) as found:
            await (await open_fresh(found, shards=32)).close()
            yield found


async def test_the_bare_loops_keep_every_row_and_touch_no_table_of_the_product(place: Place) -> None:
    bare = await Bare.open(place, SystemClock())
    inserted = await bare.insert_rate(10, b"x")
    begun = await bare.insert_rate(10, b"x", begun=True)
    pulled = await bare.pull_rate(PULL_BATCH + 1, b"x")
    assert min(inserted, begun, pulled) > 0
    assert not await bare.any_entry()
    await bare.close()
    with closing(sqlite3.connect(sqlite_path(place.dsn))) as connection:
        rows = connection.execute("SELECT state, count(*) FROM bench_bare GROUP BY state ORDER BY state").fetchall()
    assert rows == [(2, PULL_BATCH + 1), (9, 20)]
    assert await ask(place, ("open_entries",), {}) == {"open_entries": 0}


def test_every_backend_of_the_profiles_has_its_bare_loops() -> None:
    backends = {name for profile in ("enqueue", "drain", "store") for name in find_profile(profile).backends}
    assert backends == set(BARE)


def test_the_store_profile_has_metrics_for_each_payload_and_number_of_callers() -> None:
    names = {spec.name for spec in find_profile("store").metrics}
    expected = {f"enqueue_{label(size)}_by_{callers}_rate" for size in PAYLOADS for callers in CALLERS}
    assert expected <= names
    assert {f"{verb}_{label(size)}_concurrency" for verb in ("settle", "load") for size in PAYLOADS} <= names


@pytest.mark.slow
def test_enqueues_of_each_kind_are_counted_and_checked(tmp_path: Path) -> None:
    code, lines = call("run", "enqueue", "--size", "smoke", "--singles", "50", "--bulk", "100", "--out", str(tmp_path))
    (repeat,) = read_result(tmp_path).repeats
    assert code == (6 if repeat.invalid else 0), lines[-1]  # A busy machine makes the generator late, which is told.
    assert all(check.passed for check in repeat.checks)
    assert {"single_share", "keyed_share", "single_transaction_share", "bulk_rate"} <= repeat.figures.keys()
    assert repeat.distributions["request_time"].count == repeat.checks[0].found - 2 * (50 + 20) - 100


@pytest.mark.slow
def test_a_drain_ends_with_every_execution_settled_once(tmp_path: Path) -> None:
    code, lines = call("run", "drain", "--size", "smoke", "--jobs", "200", "--out", str(tmp_path))
    assert (code, lines[-1]) == (0, "bench: OK 12 checks passed in 1 repeats")
    assert read_result(tmp_path).repeats[0].figures["pull_share"] > 0


@pytest.mark.slow
@pytest.mark.postgres
def test_the_stages_of_a_drain_explain_its_time_and_stand_on_the_page(tmp_path: Path) -> None:
    # Work is due all the while: what is neither computed, waited for nor with the executor is unexplained.
    options = ("--backend", "postgres", "--jobs", "3000", "--out", str(tmp_path))
    code, lines = call("run", "drain", "--size", "smoke", *options)
    assert code == 0, lines[-1]
    (repeat,) = read_result(tmp_path).repeats
    (window,) = repeat.attribution
    page, summary = ((tmp_path / name).read_text(encoding="utf-8") for name in ("report.html", "report.md"))
    assert sum(repeat.stages_us.values()) == window.wall_us == repeat.figures["drain_us"]
    assert {"compute", "encode", "decode", "settle", "ready_entries"} <= repeat.stages_us.keys()
    assert "stages of drain" in page
    assert window.sentence in summary
    assert window.explained >= 0.95


@pytest.mark.slow
@pytest.mark.postgres
def test_a_drain_beside_a_forgotten_transaction_meets_its_dead_rows_and_names_it(tmp_path: Path) -> None:
    options = ("--backend", "postgres", "--jobs", "200", "--churn", "400", "--forgotten-transaction")
    code, lines = call("run", "drain", "--size", "smoke", *options, "--out", str(tmp_path))
    assert (code, lines[-1]) == (0, "bench: OK 15 checks passed in 1 repeats")
    result = read_result(tmp_path)
    found = {check.name: check.found for check in result.repeats[0].checks}
    assert (result.requested["churn"], result.repeats[0].figures["dead_rows"]) == (400, found["dead_rows_kept"])
    assert found["dead_rows_kept"] >= 400
    assert found["forgotten_snapshot_held"] == found["forgotten_transaction_named_with_its_age"] == 1


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        (("--forgotten-transaction",), "--forgotten-transaction: on SQLite it holds no dead rows back"),
        (("--backend", "postgres", "--churn", "10"), "add --forgotten-transaction"),
    ],
)
def test_a_forgotten_transaction_is_one_of_postgres(options: tuple[str, ...], seen: str) -> None:
    code, lines = call("run", "drain", *options)
    assert code == 2
    assert lines[-1].startswith("bench: USAGE --")
    assert seen in lines[-1]


@pytest.fixture
async def postgres_place(postgres_dsn: str) -> Place:
    found = Place(dsn=postgres_dsn, schema="luciole")
    await (await open_fresh(found, shards=32)).close()
    return found


async def test_a_transaction_that_the_server_ended_is_not_taken_for_a_forgotten_one(postgres_place: Place) -> None:
    async with forgotten_transaction(postgres_place) as forgotten:
        held = {check.name for check in await forgotten.checks() if check.passed}
        connection = await connect_postgres(postgres_place)
        await connection.fetchval("SELECT pg_terminate_backend($1, 30000)", forgotten.pid)
        await connection.close()
        ended = {check.name for check in await forgotten.checks() if check.passed}
    assert held == {"forgotten_snapshot_held", "forgotten_transaction_named_with_its_age"}
    assert ended == set()


async def test_a_forgotten_transaction_ends_with_the_bench_whatever_happens(postgres_place: Place) -> None:
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND backend_type = 'client backend'"
    )
    connection = await connect_postgres(postgres_place)
    meanwhile = 0

    async def broken_off() -> None:
        nonlocal meanwhile
        async with forgotten_transaction(postgres_place):
            meanwhile = await connection.fetchval(others)
            raise InvalidRun("some executions did not end")

    with pytest.raises(InvalidRun, match="some executions did not end"):
        await broken_off()
    async with asyncio.timeout(30):
        while await connection.fetchval(others):
            pass
    await connection.close()
    assert meanwhile == 2


@pytest.mark.slow
def test_the_verbs_of_a_store_are_measured_and_leave_nothing_open(tmp_path: Path) -> None:
    code, lines = call("run", "store", "--size", "smoke", "--out", str(tmp_path))
    (repeat,) = read_result(tmp_path).repeats
    assert code == (6 if repeat.invalid else 0), lines[
        -1
    ]  # Few rows on a busy machine: a ceiling may come out too low.
    assert [check.passed for check in repeat.checks] == [True] * 12
    figures = repeat.figures
    measured = {spec.name for spec in find_profile("store").metrics if not spec.name.endswith("_time")}
    assert measured <= figures.keys()
    assert figures["load_16k_concurrency"] > 1
