"""A forgotten transaction: what it costs is bounded, and somebody is told who it is."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from luciole import limits
from luciole.limits import SECOND_US
from luciole.model.outbox import Settled
from luciole.runtime.clock import SystemClock
from luciole.service.cluster import Level, examine
from luciole.testing.contract.steps import due, lease_all, scheduled
from luciole.testing.factories import a_plan, a_settlement
from luciole.testing.servers import PostgresServer
from tests.store.postgres_harness import PostgresHarness


@pytest.fixture
async def harness(postgres_dsn: str) -> AsyncIterator[PostgresHarness]:
    made = await PostgresHarness.make(postgres_dsn)
    yield made
    await made.close()


async def findings_of(harness: PostgresHarness) -> dict[str, str]:
    findings = await examine(harness.clients[0], host_now_us=SystemClock().now_us(), node_ttl_us=SECOND_US)
    return {finding.subject: finding.text for finding in findings if finding.level is not Level.OK}


async def test_a_forgotten_transaction_is_named_with_its_age(
    harness: PostgresHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = harness.clients[0]
    forgotten = await asyncpg.connect(harness.dsn, server_settings={"application_name": "notebook"})
    async with forgotten.transaction(isolation="repeatable_read"):
        await forgotten.fetch("SELECT * FROM luciole.lease")
        fresh = await findings_of(harness)
        monkeypatch.setattr(limits, "POSTGRES_OLD_TRANSACTION_US", 0)
        old = await findings_of(harness)
        # Work goes on meanwhile.
        leases = await lease_all(store)
        cursor = await scheduled(store)
        for _ in range(50):
            (entry,) = (await store.commit_plan(a_plan(leases, cursor))).entries
            assert await store.settle([a_settlement(entry)]) == (Settled.SETTLED,)
            cursor = (await due(store))[cursor.schedule_id]
    await forgotten.close()
    assert "old transaction" not in fresh
    assert "notebook, idle in transaction" in old["old transaction"]
    assert f"session {forgotten.get_server_pid()} " in old["old transaction"]
    assert " s: since then" in old["old transaction"]


async def test_settings_that_weaken_what_is_promised_are_named(
    harness: PostgresHarness, postgres: PostgresServer
) -> None:
    before = await findings_of(harness)
    postgres.execute("ALTER SYSTEM SET full_page_writes = off")
    postgres.execute("SELECT pg_reload_conf()")
    try:
        while "full_page_writes" not in (after := await findings_of(harness)):
            pass
    finally:
        postgres.execute("ALTER SYSTEM RESET full_page_writes")
        postgres.execute("SELECT pg_reload_conf()")
    assert "full_page_writes" not in before
    assert "power cut" in after["full_page_writes"]
