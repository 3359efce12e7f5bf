from pathlib import Path

from luciole.model.lease import NodeInfo
from luciole.runtime.clock import SystemClock
from luciole.store.sql.sqlite.dialect import SqliteDialect
from luciole.store.sql.store import SqlStore

NODE = NodeInfo(node_id="a", host="h", pid=1, address=None, version="1", tzdata="x", started_us=1)


def a_store(path: Path, shards: int | None = None) -> SqlStore:
    return SqlStore(SqliteDialect(path, clock=SystemClock(), chance=lambda: 0.5), shards=shards)


async def test_leases_move_with_a_higher_fence(tmp_path: Path) -> None:
    store = a_store(tmp_path / "a.db")
    await store.open()
    cluster = await store.beat(NODE, node_ttl_us=10_000_000)
    assert len(cluster.leases) == 32
    taken = await store.acquire_leases("a", range(32), ttl_us=10_000_000)
    assert [lease.fence for lease in taken] == [1] * 32
    assert len(await store.renew_leases(taken, ttl_us=10_000_000)) == 32
    assert await store.acquire_leases("b", range(32), ttl_us=10_000_000) == ()
    await store.release_leases(taken)
    assert [lease.fence for lease in await store.acquire_leases("b", [3, 1], ttl_us=10_000_000)] == [2, 2]
    await store.close()
