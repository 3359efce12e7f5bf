"""A whole cluster in one process, by a seed: whatever crashes, stalls or gets lost, the invariants hold."""

import os

import pytest

from tests.engine.invariants import check
from tests.engine.troubles import TROUBLES
from tests.engine.world import World

#: More seeds for who hunts: SEEDS=1000-1200 pytest tests/engine/test_simulation.py
_FIRST, _, _LAST = os.environ.get("SEEDS", "0-5").partition("-")

#: Worlds in which something was forgotten once: a delivery refused by a lost fence, one recorded under it.
_REMEMBERED = () if "SEEDS" in os.environ else (95, 135)


@pytest.mark.parametrize("seed", [*range(int(_FIRST), int(_LAST or _FIRST) + 1), *_REMEMBERED])
async def test_the_invariants_hold_whatever_happens(seed: int) -> None:
    """Goal: nothing is lost and nothing doubled, with every fault that this world knows.

    Method: faults by the seed over some 30 s, then peace; then the store and what the executors saw are read.
    # I1: # I2: # I3: # I4: # I5: # I6: # I11:
    """
    world = World(seed)
    await world.start_node()
    await world.start_node()
    await world.start_executor()
    await world.start_executor()
    await world.schedule_all()
    for _ in range(12):
        event = world.pick(TROUBLES)
        world.log.append(f"{world.cluster.now_text()} {getattr(event, '__name__', '?')}")
        await event(world)
        await world.pass_time()
    await world.finish()
    violations = await check(world.cluster, world.executors)
    assert violations == [], "\n".join([*world.log, *violations])
