import json

from luciole.limits import BACKLOG_PAUSE_US, SECOND_US
from luciole.model.job import JobSpec
from luciole.model.trigger import every
from luciole.settings import Settings
from luciole.store.spi import Gauged
from luciole.wiring import make_store
from tests.engine.scripted import ScriptedExecutor, SmallCluster


async def test_a_node_publishes_what_it_does_with_its_heartbeat() -> None:
    cluster = SmallCluster()
    node = await cluster.start()
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    await executor.join(node)
    await cluster.schedule("often", every("1s").to_spec())
    for _ in range(3):
        await cluster.enqueue(JobSpec(handler="nobody"))
    await cluster.clock.advance(5 * SECOND_US + BACKLOG_PAUSE_US)
    seen = await cluster.reader.cluster(node_ttl_us=Settings().node_ttl_us)
    await cluster.stop()
    told = json.loads(seen.nodes[0].telemetry)
    gauges, counters, durations = told["gauges"], told["counters"], told["durations"]
    assert gauges["handlers"] == {"default": ["report"]}
    assert (gauges["shards"], gauges["sessions"], gauges["slots"], gauges["held"]) == (4, 1, 100, 3)
    assert gauges["backlog"]["open_entries"] == 3
    assert gauges["backlog"]["oldest_ready_age_us"] > 0
    assert gauges["clock_offset_us"] == 0
    assert {"plan", "deliver", "poll", "leases"} <= gauges["loop_age_us"].keys()
    assert counters["fired"] == counters["settled.settled"] >= 14
    assert {"fire_lag", "start_lag", "store.commit_plan", "store.settle", "event_loop_stall"} <= durations.keys()
    assert durations["start_lag"]["max_us"] < SECOND_US


async def test_a_store_tells_who_waits_inside_it(tmp_path: object) -> None:
    store = make_store(f"sqlite:///{tmp_path}/waits.db")
    await store.open()
    assert isinstance(store, Gauged)
    gauges = store.gauges()
    await store.close()
    assert gauges == {"waiting.writer": 0, "conflicts": 0}
