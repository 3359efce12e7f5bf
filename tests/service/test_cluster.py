"""The cluster: who is alive and what should worry somebody."""

from dataclasses import replace

from luciole import limits
from luciole.model.lease import NodeInfo
from luciole.runtime.clock import SystemClock
from luciole.service.cluster import Finding, Level, examine, view_cluster
from luciole.store.memory import MemoryState, MemoryStore

TTL_US = 10 * limits.SECOND_US
NODE = NodeInfo(
    node_id="a" * 16, host="h", pid=1, address=None, version="0.1.0", tzdata="2020.1", started_us=0, telemetry="{}"
)


async def opened() -> MemoryStore:
    store = MemoryStore(MemoryState(), SystemClock())
    await store.open()
    return store


def of(findings: tuple[Finding, ...], subject: str) -> Finding:
    (found,) = (finding for finding in findings if finding.subject == subject)
    return found


async def test_held_shards_are_counted_for_each_node() -> None:
    store = await opened()
    await store.beat(NODE, node_ttl_us=TTL_US)
    await store.beat(replace(NODE, node_id="b" * 16), node_ttl_us=TTL_US)
    await store.acquire_leases("a" * 16, range(20), ttl_us=TTL_US)
    view = await view_cluster(store, node_ttl_us=TTL_US)
    assert [(node.node.node_id[0], node.shards) for node in view.nodes] == [("a", 20), ("b", 0)]
    assert view.shards_free == 12


async def test_a_cluster_without_nodes_is_told_what_to_start() -> None:
    store = await opened()
    findings = await examine(store, host_now_us=await store.now_us(), node_ttl_us=TTL_US)
    assert of(findings, "clock").level is Level.OK
    nodes = of(findings, "nodes")
    assert (nodes.level, "luciole up" in nodes.text) == (Level.WARN, True)


async def test_rules_of_zones_that_differ_from_those_of_the_cursors_are_found() -> None:
    store = await opened()
    assert of(await examine(store, host_now_us=0, node_ttl_us=TTL_US), "zones").level is Level.OK
    for rules, advice in (("2000.1", "brings them up to date"), ("2999.1", "upgrade tzdata here")):
        await store.realign(await store.acquire_leases(NODE.node_id, [0], ttl_us=TTL_US), (), rules=rules)
        await store.leave(NODE.node_id)
        found = of(await examine(store, host_now_us=0, node_ttl_us=TTL_US), "zones")
        assert (found.level, f"{rules}: 1 shards" in found.text, advice in found.text) == (Level.WARN, True, True)


async def test_a_wrong_clock_an_old_zone_table_and_free_shards_are_found() -> None:
    store = await opened()
    await store.beat(NODE, node_ttl_us=TTL_US)
    host_now_us = await store.now_us() + limits.HOUR_US
    findings = await examine(store, host_now_us=host_now_us, node_ttl_us=TTL_US)
    assert [of(findings, subject).level for subject in ("clock", "tzdata", "shards")] == [Level.WARN] * 3
