"""A store between a node and the memory store that is slow, goes down, and loses answers, by a seed."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

from luciole.errors import OutcomeUnknown, StoreUnavailable
from luciole.runtime.chance import Chance, seeded_chance
from luciole.store.spi import Store
from luciole.testing.clock import FakeClock

#: Verbs that write: their answer may be lost after the write happened.
WRITING = frozenset(
    {"commit_plan", "settle", "record_deliveries", "mark_running", "acquire_leases", "renew_leases", "release_leases"}
)


class UnreliableStore:
    """Passes verbs on, after a while, or not."""

    def __init__(self, store: Store, clock: FakeClock, chance: Chance) -> None:
        self._store = store
        self._clock = clock
        self._chance = chance
        self.down = False
        self.latency_max_us = 0
        self.lost_answers = 0.0  #: the share of writes whose answer gets lost
        self.frozen: asyncio.Event | None = None  #: while set, verbs wait for it: a stopped process
        self.freezes: frozenset[str] | None = None  #: which verbs do; None: all
        self.calls: list[str] = []

    def as_store(self) -> Store:
        """Return itself by the type that it stands for."""
        return cast("Store", self)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        verb = getattr(self._store, name)
        if not inspect.iscoroutinefunction(verb) or name in {"wait_hint", "open", "close", "migrate"}:
            return verb
        return self._wrapped(name, verb)

    def _wrapped(self, name: str, verb: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **fields: Any) -> Any:  # noqa: ANN401 - same
            self.calls.append(name)
            await self._wait(name)
            if self.down:
                raise StoreUnavailable("the store is down")
            answer = await verb(*args, **fields)
            await self._wait(name)
            if name in WRITING and self._chance() < self.lost_answers:
                raise OutcomeUnknown("the connection broke in the commit")
            return answer

        return call

    async def _wait(self, name: str) -> None:
        if self.frozen is not None and (self.freezes is None or name in self.freezes):
            await self.frozen.wait()
        if self.latency_max_us:
            await self._clock.sleep(int(self._chance() * self.latency_max_us))


class Unreliables:
    """Puts an unreliable store before each node that is started with `put`, and keeps them at hand."""

    def __init__(self, clock: FakeClock, *, seed: int = 1, latency_max_us: int = 0) -> None:
        self._clock = clock
        self._seed = seed
        self._latency_max_us = latency_max_us
        self.stores: list[UnreliableStore] = []

    def put(self, store: Store) -> Store:
        """Return a store that stands before another."""
        made = UnreliableStore(store, self._clock, seeded_chance(self._seed))
        made.latency_max_us = self._latency_max_us
        self.stores.append(made)
        return made.as_store()
