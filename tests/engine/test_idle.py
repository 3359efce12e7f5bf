"""What a node asks of its store while nothing is due."""

from collections import Counter

from luciole.limits import SECOND_US
from tests.engine.scripted import ScriptedExecutor, SmallCluster
from tests.engine.unreliable import Unreliables

MINUTE_S = 60

#: How many statements a verb takes where it finds nothing; one where it does not stand here.
STATEMENTS = {"backlog": 5, "prune": 3}


async def test_an_idle_node_asks_less_than_seven_questions_a_second() -> None:
    """Goal: waiting costs a database little, however many nodes share it.

    How many statements a verb takes is asserted where the statements are: `test_postgres_idle`.
    """
    cluster = SmallCluster()
    unreliable = Unreliables(cluster.clock)
    node = await cluster.start(store=unreliable.put)
    executor = ScriptedExecutor(cluster.clock, "e" * 16)
    await executor.join(node)
    await cluster.clock.advance(20 * SECOND_US)
    unreliable.stores[0].calls.clear()
    await cluster.clock.advance(MINUTE_S * SECOND_US)
    calls = Counter(unreliable.stores[0].calls)
    await cluster.stop()
    assert calls["beat"] >= MINUTE_S - 1
    # A lost wake-up is noticed in half a second.
    assert calls["ready_entries"] + calls["due_cursors"] >= 4 * MINUTE_S - 4
    assert sum(count * STATEMENTS.get(name, 1) for name, count in calls.items()) < 7 * MINUTE_S
