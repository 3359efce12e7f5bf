"""What a person is told when PostgreSQL is not as it should be; no message shows a password."""

import asyncio
from urllib.parse import urlsplit

import asyncpg
import pytest

from luciole.errors import InvalidValue, LucioleError, SchemaMismatch, StoreCorrupt, StoreFull, StoreUnavailable
from luciole.errors import Unsupported as TooOld
from luciole.limits import SECOND_US
from luciole.model.job import JobSpec
from luciole.runtime.clock import SystemClock
from luciole.store.sql.migrate import load_migrations
from luciole.store.sql.postgres import link
from luciole.store.sql.postgres.dialect import PostgresDialect
from luciole.store.sql.store import SqlStore
from luciole.testing.factories import NODE_A, a_node, a_request
from luciole.testing.servers import PostgresServer, free_port


def a_store(dsn: str, schema: str = "luciole") -> SqlStore:
    return SqlStore(PostgresDialect(dsn, clock=SystemClock(), chance=lambda: 0.5, schema=schema))


async def refusal_of(store: SqlStore) -> LucioleError:
    with pytest.raises(LucioleError) as caught:
        await store.open()
    return caught.value


async def run_sql(dsn: str, command: str, schema: str = "luciole") -> None:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": schema})
    await connection.execute(command)
    await connection.close()


@pytest.mark.parametrize(
    "dsn",
    [
        "mysql://user:secret@host/db",
        "postgresql://user:sec/ret@host/db",
        "postgresql://user:12/secret@host/db",
        "postgresql://user:secret#1@host/db",
        "postgresql://user:secret?1@host/db",
        "postgresql://user:secret@host:port/db",
        "host=there password=secret",
        "secret",
        "",
    ],
)
def test_a_dsn_that_cannot_be_read_is_refused_without_showing_it(dsn: str) -> None:
    with pytest.raises(InvalidValue, match=r"dsn: .* postgresql://user:password@host") as caught:
        a_store(dsn)
    assert "sec" not in str(caught.value)


@pytest.mark.parametrize("schema", ["Luciole", "a-b", "1a", "", 'a"b', "a b"])
def test_a_schema_that_needs_quotes_is_refused(schema: str) -> None:
    with pytest.raises(InvalidValue, match="schema"):
        a_store("postgresql://host/db", schema)


async def test_a_wrong_password_is_said_and_not_shown(postgres_dsn: str) -> None:
    right = urlsplit(postgres_dsn).password
    error = await refusal_of(a_store(postgres_dsn.replace(f":{right}@", ":hush-hush@")))
    assert isinstance(error, InvalidValue)
    assert "password is wrong" in str(error)
    assert "hush" not in str(error)
    assert str(right) not in str(error)


async def test_a_missing_database_is_said_with_the_command_that_makes_it(postgres_dsn: str) -> None:
    error = await refusal_of(a_store(postgres_dsn + "_not_there"))
    assert isinstance(error, InvalidValue)
    assert "createdb" in str(error)


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    error = await refusal_of(a_store(f"postgresql://user:hush@127.0.0.1:{free_port()}/db"))
    assert isinstance(error, StoreUnavailable)
    assert "hush" not in str(error)


async def test_an_old_server_is_refused(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "OLDEST_VERSION", 99)
    error = await refusal_of(a_store(postgres_dsn))
    assert isinstance(error, TooOld)
    assert "needs 99" in str(error)


async def test_a_schema_that_was_never_made_asks_for_migrate(postgres_dsn: str) -> None:
    error = await refusal_of(a_store(postgres_dsn, "never_made"))
    assert isinstance(error, SchemaMismatch)
    assert "luciole migrate" in str(error)


async def test_processes_that_migrate_at_once_do_it_once(postgres_dsn: str) -> None:
    stores = [a_store(postgres_dsn, "at_once") for _ in range(4)]
    steps = await asyncio.gather(*(store.migrate() for store in stores))
    for store in stores:
        await store.open()
        await store.close()
    assert sorted(steps) == [0, 0, 0, len(load_migrations("luciole.store.sql.postgres"))]


async def test_a_newer_schema_is_left_alone(postgres_dsn: str) -> None:
    store = a_store(postgres_dsn, "newer")
    await store.migrate()
    await store.close()
    await run_sql(postgres_dsn, "INSERT INTO migration VALUES (999, '0999_later', 'x', 1)", "newer")
    error = await refusal_of(store)
    assert isinstance(error, SchemaMismatch)
    assert "newer" in str(error)


async def test_a_migration_that_was_changed_is_noticed(postgres_dsn: str) -> None:
    store = a_store(postgres_dsn, "changed")
    await store.migrate()
    await store.close()
    await run_sql(postgres_dsn, "UPDATE migration SET checksum = 'x'", "changed")
    assert isinstance(await refusal_of(store), StoreCorrupt)


async def test_missing_lease_rows_stop_everybody_at_the_start(postgres_dsn: str) -> None:
    """Goal: after a partial restore no node fires everything because no lease says that somebody else does."""
    store = a_store(postgres_dsn, "restored")
    await store.migrate()
    await store.close()
    await run_sql(postgres_dsn, "DELETE FROM lease WHERE shard = 7", "restored")
    error = await refusal_of(store)
    assert isinstance(error, StoreCorrupt)
    assert "run `luciole migrate --repair`" in str(error)


async def test_lost_rows_of_our_own_are_restored_and_ids_are_not_given_out_twice(postgres_dsn: str) -> None:
    store = a_store(postgres_dsn, "repaired")
    assert await store.repair() == ()  # Nothing is there yet.
    await store.migrate()
    await store.open()
    await store.intern_jobs([JobSpec(handler="first")])
    await store.enqueue([a_request(5_000, 1, 3)])
    given = await store.take_ids(1_024)
    await run_sql(postgres_dsn, "DELETE FROM lease WHERE shard % 2 = 1", "repaired")
    await run_sql(postgres_dsn, "DELETE FROM id_segment", "repaired")
    with pytest.raises(StoreCorrupt, match="run `luciole migrate --repair`"):
        await store.take_ids(1)
    repairs = await store.repair()
    assert [repair.subject for repair in repairs] == ["lease", "id_segment", "id_segment", "id_segment"]
    assert len(await store.acquire_leases(NODE_A, range(32), ttl_us=SECOND_US)) == 32
    assert len(set(await store.intern_jobs([JobSpec(handler="first"), JobSpec(handler="second")]))) == 2
    assert (await store.take_ids(1)).first > max(5_000, given.first + given.count)
    await store.close()


class TestRaised:
    """What the server raises in the middle of work, from a trigger that stands in for its cause."""

    @pytest.fixture
    async def store(self, postgres_dsn: str) -> SqlStore:
        store = a_store(postgres_dsn, "raised")
        await store.migrate()
        await store.open()
        return store

    @staticmethod
    async def raise_on_enqueue(dsn: str, condition: str, sqlstate: str) -> None:
        await run_sql(
            dsn,
            f"""
            DROP SEQUENCE IF EXISTS tries; CREATE SEQUENCE tries;
            CREATE OR REPLACE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF {condition} THEN RAISE EXCEPTION 'trouble' USING ERRCODE = '{sqlstate}'; END IF;
                RETURN new;
            END $$;
            CREATE OR REPLACE TRIGGER trouble BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION trouble();
            """,
            "raised",
        )

    async def test_a_full_disk_is_said_and_nothing_is_written(self, store: SqlStore, postgres_dsn: str) -> None:
        await self.raise_on_enqueue(postgres_dsn, "true", "53100")
        (job_id,) = await store.intern_jobs([JobSpec(handler="report")])
        request = a_request((await store.take_ids(1)).first, job_id, key="full")
        with pytest.raises(StoreFull, match="disk is full"):
            await store.enqueue([request])
        assert await store.find_request("default", "full") is None
        await self.raise_on_enqueue(postgres_dsn, "false", "53100")
        (answer,) = await store.enqueue([request])
        await store.close()
        assert answer.created

    @pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
    async def test_a_lost_race_is_tried_again(self, store: SqlStore, postgres_dsn: str, sqlstate: str) -> None:
        await self.raise_on_enqueue(postgres_dsn, "nextval('raised.tries') < 4", sqlstate)
        (job_id,) = await store.intern_jobs([JobSpec(handler="report")])
        (answer,) = await store.enqueue([a_request((await store.take_ids(1)).first, job_id)])
        await store.close()
        assert answer.created

    async def test_races_that_are_always_lost_come_to_an_end(self, store: SqlStore, postgres_dsn: str) -> None:
        await self.raise_on_enqueue(postgres_dsn, "nextval('raised.tries') > 0", "40001")
        (job_id,) = await store.intern_jobs([JobSpec(handler="report")])
        request = a_request((await store.take_ids(1)).first, job_id)
        with pytest.raises(StoreUnavailable, match="trouble"):
            await store.enqueue([request])
        await store.close()
        connection = await asyncpg.connect(postgres_dsn)
        tries = await connection.fetchval("SELECT last_value FROM raised.tries")
        await connection.close()
        assert tries == 8

    async def test_an_unknown_trouble_is_not_hidden(self, store: SqlStore, postgres_dsn: str) -> None:
        await self.raise_on_enqueue(postgres_dsn, "true", "P0001")
        (job_id,) = await store.intern_jobs([JobSpec(handler="report")])
        request = a_request((await store.take_ids(1)).first, job_id)
        with pytest.raises(asyncpg.RaiseError):
            await store.enqueue([request])
        await store.close()


async def test_a_role_that_may_not_write_is_told_so(postgres: PostgresServer, postgres_dsn: str) -> None:
    store = a_store(postgres_dsn, "guarded")
    await store.migrate()
    await store.close()
    await run_sql(postgres_dsn, "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD 'guest'", "guarded")
    await run_sql(
        postgres_dsn,
        "GRANT USAGE ON SCHEMA guarded TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA guarded TO guest",
        "guarded",
    )
    parts = urlsplit(postgres_dsn)
    guest = a_store(postgres_dsn.replace(f"{parts.username}:{parts.password}@", "guest:guest@"), "guarded")
    await guest.open()
    with pytest.raises(StoreUnavailable, match="permission denied"):
        await guest.beat(a_node(NODE_A), node_ttl_us=1)
    await guest.close()
    await run_sql(postgres_dsn, "DROP OWNED BY guest", "guarded")
    assert postgres.execute("DROP ROLE guest") == ""
