"""What can happen to a world."""

import asyncio
from collections.abc import Awaitable, Callable

from luciole.limits import MS_US
from luciole.model.job import EntryFlag, JobSpec, Retry
from tests.engine.world import World

Trouble = Callable[[World], Awaitable[None]]


async def sever_link(world: World) -> None:
    """Cut one connection."""
    executor = world.pick(world.living)
    if executor.links:
        await world.pick(executor.links).sever()


async def mute_executor(world: World) -> None:
    """Stop an executor's voice; what it runs goes on."""
    world.pick(world.living).mute = True


async def lose_store(world: World) -> None:
    """Cut one node off from the store."""
    world.pick(world.stores).down = True


async def slow_store(world: World) -> None:
    """Make the store slow for one node."""
    world.pick(world.stores).latency_max_us = 800 * MS_US


async def lose_answers(world: World) -> None:
    """Let the answers of one node's writes get lost."""
    world.pick(world.stores).lost_answers = 0.3


async def freeze_node(world: World) -> None:
    """Stop a node in the middle of whatever it asks of the store."""
    store = world.pick(world.stores)
    store.frozen = store.frozen or asyncio.Event()


async def enqueue(world: World) -> None:
    """Enqueue an execution, at-most-once now and then."""
    once = world.chance() < 0.2
    job = JobSpec(handler="report", retry=Retry(limit=3, delay_us=100 * MS_US), at_most_once=once, losses_max=5)
    await world.cluster.enqueue(job, flags=int(EntryFlag.AT_MOST_ONCE) if once else 0)


async def cancel(world: World) -> None:
    """Ask for the end of an execution."""
    open_ = [view.key for view in await world.cluster.executions() if not view.state.terminal]
    if open_:
        await world.cluster.reader.request_cancel([world.pick(open_)])


TROUBLES: tuple[Trouble, ...] = (
    World.start_node,
    World.crash_node,
    World.stop_node,
    World.start_executor,
    World.kill_executor,
    sever_link,
    mute_executor,
    lose_store,
    slow_store,
    lose_answers,
    freeze_node,
    enqueue,
    enqueue,
    cancel,
    World.relent,
    World.relent,
)
