"""Rules of zones that change while schedules wait: nodes with newer ones bring cursors to where they belong."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

import pytest

from luciole.engine.realigner import Realigner
from luciole.limits import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from luciole.model.lease import Lease
from luciole.model.trigger import cron
from luciole.runtime.telemetry import Telemetry
from luciole.store.memory import MemoryState, MemoryStore
from luciole.testing.clock import START_US, FakeClock
from luciole.testing.factories import NODE_A, NODE_B, a_schedule
from tests.engine.scripted import ScriptedExecutor, SmallCluster

E1 = "1" * 16
DAILY = cron("30 2 * * *", tz="Europe/Berlin")
#: The next fire time by the rules that are installed here.
RIGHT_US = DAILY.next_us(START_US) or 0


@pytest.mark.slow
async def test_a_node_with_newer_rules_moves_what_older_ones_placed() -> None:
    cluster = SmallCluster()
    await cluster.reader.open()
    cluster.state.rules = dict.fromkeys(range(cluster.shards), "2000.1")
    for shift_us in (-HOUR_US, 0, HOUR_US):
        await cluster.schedule(f"by {shift_us}", DAILY.to_spec(), fire_us=RIGHT_US + shift_us)
    await cluster.start(nodes=2)
    await cluster.clock.advance(20 * SECOND_US)
    views = [await cluster.reader.get_schedule("default", f"by {shift_us}") for shift_us in (-HOUR_US, 0, HOUR_US)]
    assert [view.fire_us for view in views if view] == [RIGHT_US] * 3
    assert cluster.state.rules == dict.fromkeys(range(cluster.shards), version("tzdata"))
    await cluster.clock.advance(RIGHT_US - cluster.clock.now_us() + MINUTE_US)
    await cluster.stop()
    # Once each, neither twice an hour apart nor a day later.
    assert [view.key.fire_us for view in await cluster.executions()] == [RIGHT_US] * 3


@pytest.mark.slow
async def test_a_fire_time_that_new_rules_put_into_the_past_is_late_and_not_lost() -> None:
    cluster = SmallCluster()
    await cluster.reader.open()
    await cluster.clock.advance(RIGHT_US - START_US + 20 * MINUTE_US)
    cluster.state.rules = dict.fromkeys(range(cluster.shards), "2000.1")
    await cluster.schedule("nightly", DAILY.to_spec(), fire_us=RIGHT_US + HOUR_US)
    node = await cluster.start()
    await ScriptedExecutor(cluster.clock, E1).join(node)
    await cluster.clock.advance(2 * HOUR_US)
    await cluster.stop()
    assert [view.key.fire_us for view in await cluster.executions()] == [RIGHT_US]
    view = await cluster.reader.get_schedule("default", "nightly")
    assert view is not None
    assert view.fire_us == RIGHT_US + DAY_US


async def test_a_store_without_a_record_gets_one_and_keeps_its_cursors() -> None:
    """A selection that somebody moved to one instant stays there."""
    cluster = SmallCluster()
    await cluster.reader.open()
    await cluster.schedule("moved by hand", DAILY.to_spec(), fire_us=RIGHT_US + HOUR_US)
    await cluster.start()
    await cluster.clock.advance(20 * SECOND_US)
    view = await cluster.reader.get_schedule("default", "moved by hand")
    await cluster.stop()
    assert view is not None
    assert view.fire_us == RIGHT_US + HOUR_US
    assert set(cluster.state.rules.values()) == {version("tzdata")}


@dataclass
class Holder:
    """A node of one version that takes the only shard when it is told to."""

    store: MemoryStore
    node_id: str
    rules: str
    leases: list[Lease] = field(default_factory=list)
    realigner: Realigner = field(init=False)

    def __post_init__(self) -> None:
        self.realigner = Realigner(
            store=self.store, telemetry=Telemetry(FakeClock()), trusted=self.trusted, rules=self.rules
        )

    def trusted(self) -> Sequence[Lease]:
        return self.leases

    async def hold(self) -> None:
        """Take the shard, look at it until there is nothing left to do, and free it."""
        self.leases = list(await self.store.acquire_leases(self.node_id, [0], ttl_us=MINUTE_US))
        while await self.realigner.tick() == 0:
            continue
        await self.store.release_leases(self.leases)
        self.leases = []


async def test_in_a_rolling_upgrade_what_an_older_holder_placed_is_looked_at_again() -> None:
    store = MemoryStore(MemoryState(), FakeClock(), shards=1)
    await store.open()
    older, newer = Holder(store, NODE_A, "2026.2"), Holder(store, NODE_B, "2026.10")
    await older.hold()
    await newer.hold()
    assert await store.zone_rules() == {0: "2026.10"}
    await older.hold()
    assert await store.zone_rules() == {0: "2026.2"}
    # Meanwhile the older one plans, by its rules.
    wrong = a_schedule(fire_us=RIGHT_US + HOUR_US, trigger=DAILY.to_spec())
    await store.put_schedules([wrong], first_id=1)
    await older.hold()
    await newer.hold()
    view = await store.get_schedule("default", "nightly")
    assert view is not None
    assert view.fire_us == RIGHT_US
    assert await store.zone_rules() == {0: "2026.10"}


async def test_thousands_are_walked_in_pages() -> None:
    store = MemoryStore(MemoryState(), FakeClock(), shards=1)
    await store.open()
    await Holder(store, NODE_A, "2026.2").hold()
    for first in (1, 1_001, 2_001):
        wrong = [
            a_schedule(f"n{first + number}", fire_us=RIGHT_US - HOUR_US, trigger=DAILY.to_spec())
            for number in range(1_000)
        ]
        await store.put_schedules(wrong, first_id=first)
    await Holder(store, NODE_B, "2026.3").hold()
    cursors = [
        cursor for after in (0, 1_000, 2_000) for cursor in await store.active_cursors(0, after=after, limit=1_000)
    ]
    assert len(cursors) == 3_000
    assert {cursor.fire_us for cursor in cursors} == {RIGHT_US}
