"""A backlog of work for which nobody has room hides nobody else's: small clusters whose time the test owns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from luciole.gateway.hidden import Hidden
from luciole.limits import MS_US, READY_REFILL, ROUTES_MAX, SECOND_US
from luciole.model.ids import ExecutionKey, Shard
from luciole.model.instant import Instant
from luciole.model.job import JobSpec, Overlap
from luciole.model.outbox import Entry
from luciole.model.schedule import Policy
from luciole.model.trigger import every
from tests.engine.scripted import ScriptedExecutor, SmallCluster, linger

SLOW, QUICK = JobSpec(handler="slow"), JobSpec(handler="quick")


def an_executor(cluster: SmallCluster, number: int, *handlers: str, **fields: object) -> ScriptedExecutor:
    return ScriptedExecutor(cluster.clock, f"{number:016x}", handlers=handlers, **fields)  # type: ignore[arg-type]


def lags_us(executor: ScriptedExecutor, keys: Iterable[ExecutionKey]) -> list[int]:
    """How long after their due time executions started; each has to have started once."""
    started = {key: at_us for key, _, at_us in executor.starts}
    assert len(started) == len(executor.starts)
    return [started[key] - key.fire_us for key in keys]


@dataclass
class Counted:
    """Looks behind what memory holds, and when they were."""

    inner: Hidden
    looks: list[Instant]

    async def find(self, shards: Sequence[Shard], now_us: Instant) -> Sequence[Entry]:
        self.looks.append(now_us)
        return await self.inner.find(shards, now_us)


@pytest.mark.parametrize("crowd", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_a_saturated_handler_hides_nobody_else(crowd: int) -> None:
    """Goal: what comes behind a backlog of one slot is delivered at once, of its own priority and of a lower one."""
    cluster = SmallCluster(shards=1)
    node = await cluster.start(held_max=600)
    slow, quick = an_executor(cluster, 1, "slow", script=linger, slots=1), an_executor(cluster, 2, "quick")
    await slow.join(node)
    await quick.join(node)
    for _ in range(crowd):
        await cluster.enqueue(SLOW)
    await cluster.clock.advance(2 * SECOND_US)
    keys = []
    for priority in (5, 0, 5):
        keys.append(await cluster.enqueue(QUICK, priority=priority))
        await cluster.clock.advance(300 * MS_US)
    held, running = len(node.gateway.holds), len(slow.running)
    await cluster.stop()
    assert max(lags_us(quick, keys)) <= 50 * MS_US
    # I10: memory holds a bounded part of the backlog.
    assert (running, 500 <= held <= 1_200) == (1, True)


async def test_what_is_planned_behind_a_full_memory_is_delivered() -> None:
    """Goal: the fires of one schedule are not hidden by those of another that fill memory."""
    cluster = SmallCluster(shards=1)
    node = await cluster.start(held_max=50)
    slow, quick = an_executor(cluster, 1, "slow", script=linger, slots=1), an_executor(cluster, 2, "quick")
    await slow.join(node)
    await quick.join(node)
    allow = Policy(overlap=Overlap.ALLOW)
    await cluster.schedule("crowd", every("10ms").to_spec(), job=SLOW, policy=allow)
    await cluster.clock.advance(3 * SECOND_US)
    await cluster.schedule("secondly", every("1s").to_spec(), job=QUICK, policy=allow)
    await cluster.clock.advance(5 * SECOND_US)
    started = [key for key, _, _ in quick.starts]
    await cluster.stop()
    assert len(started) >= 4
    assert max(lags_us(quick, started)) <= 600 * MS_US


async def test_what_nobody_serves_hides_nobody_and_is_read_once() -> None:
    """Goal: neither a backlog that no executor knows, nor many small ones behind it, cost others their place."""
    cluster = SmallCluster(shards=1)
    node = await cluster.start(held_max=100)
    quick = an_executor(cluster, 2, "quick")
    await quick.join(node)
    for _ in range(700):
        await cluster.enqueue(JobSpec(handler="gone"))
    for number in range(20):
        for _ in range(10):
            await cluster.enqueue(JobSpec(handler=f"gone-{number}"))
    await cluster.clock.advance(2 * SECOND_US)
    held = len(node.gateway.holds)
    key = await cluster.enqueue(QUICK)
    await cluster.clock.advance(300 * MS_US)
    await cluster.stop()
    assert held == 100
    assert lags_us(quick, [key])[0] <= 50 * MS_US


async def test_an_executor_that_comes_finds_what_was_hidden() -> None:
    cluster = SmallCluster(shards=1)
    node = await cluster.start(held_max=100)
    await an_executor(cluster, 1, "slow", script=linger, slots=1).join(node)
    for _ in range(700):
        await cluster.enqueue(SLOW)
    key = await cluster.enqueue(QUICK)
    await cluster.clock.advance(2 * SECOND_US)
    quick = an_executor(cluster, 2, "quick")
    await quick.join(node)
    await cluster.clock.advance(1 * SECOND_US)
    started = [started for started, _, _ in quick.starts]
    await cluster.stop()
    assert started == [key]


async def test_more_handlers_than_one_look_tells_apart_all_get_their_turn() -> None:
    cluster = SmallCluster(shards=1)
    node = await cluster.start(held_max=600)
    names = [f"quick-{number}" for number in range(3 * ROUTES_MAX)]
    await an_executor(cluster, 1, "slow", script=linger, slots=1).join(node)
    for _ in range(700):
        await cluster.enqueue(SLOW)
    await cluster.clock.advance(1 * SECOND_US)
    quick = an_executor(cluster, 2, *names)
    await quick.join(node)
    keys = [await cluster.enqueue(JobSpec(handler=name)) for name in names]
    await cluster.clock.advance(5 * SECOND_US)
    started = {key for key, _, _ in quick.starts}
    await cluster.stop()
    assert started == set(keys)


async def test_what_was_hidden_is_worked_off_without_waiting_for_the_next_look() -> None:
    """Goal: the hidden handler keeps its executor busy: what is read is followed by the next at once."""
    cluster = SmallCluster(shards=1)
    node = await cluster.start()
    await an_executor(cluster, 1, "slow", script=linger, slots=1).join(node)
    for _ in range(READY_REFILL + 300):
        await cluster.enqueue(SLOW)
    keys = {await cluster.enqueue(QUICK) for _ in range(5 * READY_REFILL)}
    await cluster.clock.advance(1 * SECOND_US)
    quick = an_executor(cluster, 2, "quick", slots=50)
    begun_us = cluster.clock.now_us()
    await quick.join(node)
    await cluster.clock.advance(3 * SECOND_US)
    last_us = max(at_us for _, _, at_us in quick.starts)
    await cluster.stop()
    assert {key for key, _, _ in quick.starts} == keys
    assert last_us - begun_us <= 1 * SECOND_US


async def test_one_kind_of_work_hides_nothing_so_that_nothing_is_looked_for_behind_it() -> None:
    """Goal: a shard that runs dry of the only route that there is takes a poll, and no look behind it."""
    cluster = SmallCluster(shards=1)
    node = await cluster.start()
    looks: list[Instant] = []
    node.gateway.poller.hidden = Counted(node.gateway.poller.hidden, looks)  # type: ignore[assignment]
    quick = an_executor(cluster, 2, "quick", slots=2 * READY_REFILL)
    await quick.join(node)
    keys = {await cluster.enqueue(QUICK) for _ in range(20 * READY_REFILL)}
    begun_us = cluster.clock.now_us()
    await cluster.clock.advance(3 * SECOND_US)
    took_us = max(at_us for _, _, at_us in quick.starts) - begun_us
    await cluster.stop()
    assert {key for key, _, _ in quick.starts} == keys
    assert len(looks) <= 1 + took_us // (500 * MS_US)


async def test_no_shard_keeps_its_part_of_a_handler_hidden() -> None:
    """Goal: plenty of a handler from one shard does not leave its work of another shard out of sight."""
    cluster = SmallCluster(shards=2)
    node = await cluster.start()
    await an_executor(cluster, 1, "slow", script=linger, slots=1).join(node)
    await an_executor(cluster, 2, "quick", script=linger, slots=1).join(node)
    for _ in range(4 * READY_REFILL):
        await cluster.enqueue(SLOW)
    keys: list[ExecutionKey] = []
    while {key.shard for key in keys} != {0, 1} or len(keys) < READY_REFILL:
        keys.append(await cluster.enqueue(QUICK))
    await cluster.clock.advance(3 * SECOND_US)
    seen = {key.shard for key in keys if node.gateway.holds.entry(key) is not None}
    await cluster.stop()
    assert seen == {0, 1}


async def test_labels_that_nobody_has_room_for_hide_no_other_labels() -> None:
    cluster = SmallCluster(shards=1)
    node = await cluster.start(held_max=600)
    eu, us = ("region", "eu"), ("region", "us")
    await an_executor(cluster, 1, "quick", script=linger, slots=1, labels=(eu,)).join(node)
    other = an_executor(cluster, 2, "quick", labels=(us,))
    await other.join(node)
    for _ in range(1_500):
        await cluster.enqueue(QUICK, labels=(eu,))
    await cluster.clock.advance(2 * SECOND_US)
    key = await cluster.enqueue(QUICK, labels=(us,))
    await cluster.clock.advance(300 * MS_US)
    await cluster.stop()
    assert lags_us(other, [key])[0] <= 50 * MS_US
