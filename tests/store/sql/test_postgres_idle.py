"""What the verbs of an idle node send to PostgreSQL."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from luciole.limits import MINUTE_US
from luciole.model.lease import Lease
from luciole.store.spi import Store
from luciole.store.sql.postgres.link import Link
from luciole.store.sql.script import Query, Row
from luciole.testing.clock import START_US
from luciole.testing.contract.steps import lease_all, scheduled
from luciole.testing.factories import NODE_A, a_node
from tests.store.postgres_harness import PostgresHarness

Verb = Callable[[Store, Sequence[Lease]], Awaitable[object]]


@pytest.fixture
async def harness(postgres_dsn: str) -> AsyncIterator[PostgresHarness]:
    made = await PostgresHarness.make(postgres_dsn)
    yield made
    await made.close()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Everything that is sent over our connections from here on, by name."""
    heard: list[str] = []
    ask, execute = Link.ask, Link.execute

    async def heard_ask(self: Link, query: Query, may_send: Callable[[], None]) -> Sequence[Row]:
        heard.extend(query.name for _ in self._prepared[query.name].calls(query))
        return await ask(self, query, may_send)

    async def heard_execute(self: Link, command: str) -> None:
        heard.append(command)
        await execute(self, command)

    monkeypatch.setattr(Link, "ask", heard_ask)
    monkeypatch.setattr(Link, "execute", heard_execute)
    return heard


async def poll(store: Store, _: Sequence[Lease]) -> object:
    return await store.ready_entries(range(store.shards), START_US, limit=512)


async def plan(store: Store, _: Sequence[Lease]) -> object:
    return await store.due_cursors(range(store.shards), START_US, limit=1_000)


async def renew(store: Store, leases: Sequence[Lease]) -> object:
    return await store.renew_leases(leases, ttl_us=MINUTE_US)


async def beat(store: Store, _: Sequence[Lease]) -> object:
    return await store.beat(a_node(NODE_A), node_ttl_us=MINUTE_US)


async def ask_time(store: Store, _: Sequence[Lease]) -> object:
    return await store.now_us()


@pytest.mark.parametrize(
    ("verb", "statement"),
    [
        (poll, "ready_heads"),
        (plan, "due_cursors"),
        (renew, "renew_leases"),
        (beat, "beat"),
        (ask_time, "clock"),
    ],
)
async def test_a_verb_that_finds_nothing_sends_one_statement_and_no_transaction_around_it(
    harness: PostgresHarness, sent: list[str], verb: Verb, statement: str
) -> None:
    """Goal: an idle node costs its database little; `test_idle` counts how often it calls each verb."""
    _, store = harness.clients
    await scheduled(store, in_us=MINUTE_US)
    leases = await lease_all(store)
    sent.clear()
    await verb(store, leases)
    assert sent == [statement]
