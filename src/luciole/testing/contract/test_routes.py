"""What ready entries ask of executors, and the first of those that ask the same."""

from luciole import limits
from luciole.errors import InvalidValue
from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.ids import RouteId
from luciole.model.job import JobSpec
from luciole.model.outbox import Entry
from luciole.model.plan import ReadyRoute
from luciole.store.spi import Store
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    StoreContract,
    cursor_of,
    fire,
    job_id_of,
    lease_all,
    raises,
    ready_entry,
    request_id,
    scheduled,
)
from luciole.testing.factories import a_job, a_move, a_plan, a_request, a_settlement


async def asked(store: Store, job: JobSpec, shard: int = 0, **fields: object) -> Entry:
    """Enqueue one execution of a job, and return its entry."""
    (answer,) = await store.enqueue([a_request(await request_id(store), await job_id_of(store, job), shard, **fields)])
    return await ready_entry(store, answer.key)


def place_of(entry: Entry) -> ReadyRoute:
    """Return where a look at routes finds an entry."""
    return ReadyRoute(entry.key.shard, entry.priority, entry.route)


class TestReadyRoutes(StoreContract):
    """How the work of one handler is found behind another's backlog."""

    async def test_what_a_backlog_hides_is_found_by_its_route(self, harness: StoreHarness) -> None:
        """Goal: one entry behind many of another handler, and one of lower priority, are seen without reading those."""
        a, b = harness.clients
        now_us = await a.now_us() + 5 * SECOND_US
        crowd = [await asked(a, a_job("slow"), fire_us=now_us - SECOND_US) for _ in range(30)]
        behind = await asked(a, a_job("quick"), fire_us=now_us)
        below = await asked(a, a_job("quick"), fire_us=now_us, priority=1)
        top = await b.ready_entries([0], now_us, limit=10)
        seen = await b.ready_routes([0], now_us, after=-1, limit=10)
        found = await b.route_entries([place_of(behind), place_of(below)], now_us, limit=10)
        assert {entry.route for entry in top.entries} == {crowd[0].route}
        assert (seen.routes, seen.after) == (
            tuple(sorted({place_of(crowd[0]), place_of(behind), place_of(below)})),
            None,
        )
        assert found == (below, behind)

    async def test_entries_share_a_route_when_they_ask_the_same(self, harness: StoreHarness) -> None:
        """Namespace, handler and labels, the job's and the request's own, tell routes apart; nothing else does."""
        a, _ = harness.clients
        eu, us = (("region", "eu"),), (("region", "us"),)
        routes = [
            (await asked(a, job, **fields)).route
            for job, fields in (
                (a_job("report"), {}),
                (a_job("report", payload=b"1"), {"priority": 9}),
                (a_job("other"), {}),
                (a_job("report", namespace="mine"), {}),
                (a_job("report", labels=eu), {}),
                (a_job("report"), {"labels": eu}),
                (a_job("report"), {"labels": us}),
                (a_job("report"), {"labels": us, "payload": b"2"}),
            )
        ]
        assert routes[0] == routes[1]
        assert routes[6] == routes[7]
        assert 0 not in routes
        assert len(set(routes)) == 6

    async def test_what_was_in_memory_has_a_route_once_it_is_polled(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        leases = await lease_all(a)
        first = await asked(a, a_job())
        kept = await fire(a, leases, await scheduled(a))
        left = a_move(await cursor_of(a), ready=True)
        await a.commit_plan(a_plan(leases, left))
        await a.settle([a_settlement(kept, ExecutionState.RETRY_WAIT)])
        polled = await ready_entry(b, kept.key)
        stayed = await ready_entry(b, kept.key._replace(fire_us=left.fires[0].fire_us))
        assert kept.route == 0
        assert {polled.route, stayed.route} == {first.route}

    async def test_a_route_is_not_due_before_its_first_entry(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        now_us = await a.now_us()
        late = await asked(a, a_job(), fire_us=now_us + 900 * SECOND_US)
        later = await asked(a, a_job(), fire_us=now_us + 950 * SECOND_US)
        early = await a.ready_routes([0, 1], now_us, after=-1, limit=10)
        seen = await a.ready_routes([0, 1], late.due_us, after=-1, limit=10)
        assert (early.routes, early.after) == ((), None)
        assert seen.routes == (place_of(late),)
        assert await a.route_entries([place_of(late)], late.due_us, limit=10) == (late,)
        assert await a.route_entries([place_of(late)], later.due_us, limit=10) == (late, later)

    async def test_a_cut_look_goes_on_behind_what_it_saw(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        routes = {(await asked(a, a_job(f"job-{n}"), n % 2)).route for n in range(10)}
        now_us = await a.now_us()
        seen: list[RouteId] = []
        after: RouteId | None = -1
        looks = 0
        while after is not None:
            batch = await a.ready_routes([0, 1], now_us, after=after, limit=2)
            seen += (place.route for place in batch.routes if place.route > after)
            after = batch.after
            looks += 1
        assert set(seen) == routes
        assert looks <= 6

    async def test_the_first_of_each_route_come_back_within_the_limit(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        now_us = await a.now_us()
        entries = {
            (name, n): await asked(a, a_job(name), fire_us=now_us + (9 - n) * SECOND_US)
            for name in ("slow", "quick")
            for n in (0, 3, 1, 2)
        }
        await b.request_cancel([entries["slow", 3].key])
        places = sorted({place_of(entry) for entry in entries.values()})
        found = await b.route_entries([*places, places[0]], now_us + 9 * SECOND_US, limit=2)
        ranks = {entry.key: rank for rank, entry in entries.items()}
        first = "slow" if place_of(entries["slow", 0]) == places[0] else "quick"
        expected = {"slow": [("slow", 2), ("slow", 1)], "quick": [("quick", 3), ("quick", 2)]}
        second = "quick" if first == "slow" else "slow"
        assert [ranks[entry.key] for entry in found] == [*expected[first], *expected[second]]

    async def test_a_look_out_of_bounds_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for shard, limit in ((0, 0), (0, limits.ROUTES_MAX + 1), (a.shards, 1), (-1, 1)):
            with raises(InvalidValue):
                await a.ready_routes([shard], 0, after=-1, limit=limit)
        for shard, limit in ((0, 0), (0, limits.HELD_MAX + 1), (a.shards, 1)):
            with raises(InvalidValue):
                await a.route_entries([ReadyRoute(shard, 5, 1)], 0, limit=limit)
        with raises(InvalidValue):
            await a.route_entries([ReadyRoute(0, 5, n) for n in range(limits.PAGE_MAX + 1)], 0, limit=1)
