"""Which migrations are applied, and which databases are refused; pure."""

from collections.abc import Sequence

import pytest

from luciole.errors import InvalidValue, SchemaMismatch, StoreCorrupt
from luciole.store.sql.migrate import Migration, check_shards, load_migrations, migrate, pending
from luciole.store.sql.queries import Statement
from luciole.store.sql.script import Query, Row, run
from luciole.testing.factories import a_job


def a_migration(number: int) -> Migration:
    name = f"{number:04}_step"
    return Migration(
        number=number, name=name, checksum=f"sum{number}", statement=Statement(name=name, commands=("SELECT 1",))
    )


KNOWN = [a_migration(number) for number in (1, 2, 3)]


def applied(*numbers: int) -> list[tuple[int, str, str]]:
    return [(number, f"{number:04}_step", f"sum{number}") for number in numbers]


def test_what_is_missing_is_pending_in_order() -> None:
    assert pending([], KNOWN) == tuple(KNOWN)
    assert pending(applied(1), KNOWN) == tuple(KNOWN[1:])
    assert pending(applied(1, 2, 3), KNOWN) == ()


def test_a_newer_database_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="upgrade Luciole"):
        pending(applied(1, 2, 3, 4), KNOWN)


@pytest.mark.parametrize("row", [(2, "0002_step", "another"), (2, "0002_other", "sum2"), (3, "0003_step", "sum3")])
def test_a_migration_that_is_not_the_known_one_is_refused(row: tuple[int, str, str]) -> None:
    with pytest.raises(StoreCorrupt, match="an applied migration never changes"):
        pending([*applied(1), row], KNOWN)


def test_another_number_of_shards_is_refused() -> None:
    check_shards(None, 32)
    check_shards(32, 32)
    with pytest.raises(StoreCorrupt, match="made with 32, not 16"):
        check_shards(16, 32)


@pytest.mark.parametrize("shards", [0, -1, 4_097])
def test_a_number_of_shards_that_no_store_can_have_is_refused(shards: int) -> None:
    with pytest.raises(InvalidValue, match="shards"):
        run(migrate(KNOWN, shards), lambda _: ())


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_the_files_of_a_dialect_are_numbered_without_gaps_and_have_checksums(dialect: str) -> None:
    migrations = load_migrations(f"luciole.store.sql.{dialect}")
    assert [step.number for step in migrations] == list(range(1, len(migrations) + 1))
    assert all(len(step.checksum) == 64 for step in migrations)


def test_a_job_that_this_version_can_not_read_keeps_the_others_from_nothing() -> None:
    """I7: it stays without a route, and the rest of its page gets one."""
    jobs = [(1, "default", "a", a_job("a").options_text()), (2, "default", "b", "?"), (3, "default", "c", "{}")]
    written: list[tuple[int, int]] = []

    def ask(query: Query) -> Sequence[Row]:
        if query.name == "unrouted_jobs":
            return [row for row in jobs if row[0] > query.binds["after"]]
        if query.name == "route_jobs":
            written.extend(query.rows)
        return applied(1) if query.name == "applied_migrations" else ()

    assert run(migrate(KNOWN, None), ask) == 2
    assert written == [(1, a_job("a").route_id())]
