"""The memory store: all roles, and the life of one client."""

import asyncio
from typing import NoReturn

from luciole import limits
from luciole.errors import StoreCorrupt, Unsupported
from luciole.model.ids import Shard
from luciole.store.bounds import check_limit
from luciole.store.capabilities import Capabilities
from luciole.store.memory.catalog import MemoryCatalog
from luciole.store.memory.executions import MemoryExecutions
from luciole.store.memory.leases import MemoryLeases
from luciole.store.memory.outbox import MemoryOutbox
from luciole.store.memory.planning import MemoryPlans
from luciole.store.memory.reads import MemoryReads

_CAPABILITIES = Capabilities(
    name="memory",
    durable=False,
    spans_shards=True,
    shared=False,
    remote_hints=True,
    transactional_enqueue=(),
    plan_connections=1,
    plan_batch_max=limits.PLAN_BATCH_MAX,
)


class MemoryStore(MemoryLeases, MemoryPlans, MemoryOutbox, MemoryExecutions, MemoryCatalog, MemoryReads):
    """One client of a database that lives in this process: the executable specification of the contract."""

    @property
    def capabilities(self) -> Capabilities:
        """What this store can do."""
        return _CAPABILITIES

    @property
    def shards(self) -> int:
        """The number of shards recorded at initialisation; known after `open`."""
        return self._state.shards

    async def open(self) -> None:
        """Connect; a new database is initialised by itself."""
        await self.migrate(shards=self._shards_wanted)
        if not self._is_open:
            self._is_open = True
            self._state.listeners.append(self)

    async def migrate(self, *, shards: int | None = None) -> int:
        """Initialise a new database; return how many steps ran."""
        wanted = limits.SHARDS_DEFAULT if shards is None else shards
        check_limit("shards", wanted, limits.SHARDS_MAX)
        with self._state.lock:
            steps = self._state.initialise(wanted)
            if shards not in {None, self._state.shards}:
                raise StoreCorrupt(
                    f"shards: {shards} asked for, but this store was initialised with {self._state.shards}: "
                    "ask for that, or initialise a new store"
                )
        return steps

    async def close(self) -> None:
        """Leave the database, which stays as it is for the others."""
        if self._is_open:
            self._is_open = False
            self._state.listeners.remove(self)

    async def wait_hint(self, timeout_us: int) -> frozenset[Shard]:
        """Wait until somebody may have made something due sooner, or until the time is over."""
        event = asyncio.Event()
        waker = (asyncio.get_running_loop(), event)
        with self._state.lock:
            if self._hinted:
                event.set()
            self._wakers.add(waker)
        try:
            await self._clock.wait(event, timeout_us)
        finally:
            with self._state.lock:
                self._wakers.discard(waker)
        with self._state.lock:
            hinted = frozenset(self._hinted)
            self._hinted.clear()
        return hinted

    def enqueue_sql(self, kind: str) -> NoReturn:
        """Refuse: no user's transaction reaches into this store."""
        raise Unsupported(f"tx: the memory store can't enqueue inside a transaction of {kind}; it knows no kind")
