"""Who enqueues: a process that has the store's address and nothing else. No node runs.

Run as `python -m luciole.bench.enqueue.driver`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext

import msgspec
from msgspec.structs import replace

from luciole import limits
from luciole.bench import subject
from luciole.bench.arrivals import Arrived, offsets
from luciole.bench.attribution.callers import CallerLog
from luciole.bench.attribution.ceilings import UNEXPLAINED
from luciole.bench.attribution.threads import IDLE
from luciole.bench.backends import Place
from luciole.bench.bare import Bare
from luciole.bench.loops import run_here
from luciole.bench.percentiles import Distribution
from luciole.bench.processes import Message, answer_lines
from luciole.bench.stores import make_store
from luciole.runtime.chance import new_process_id, seeded_chance
from luciole.runtime.clock import SystemClock

#: The loops are run in so many turns, one after the other, so that a drift of the machine meets all of them.
_TURNS = 5

#: Enqueues of each kind before those that count.
_THROWN_AWAY = 20


class EnqueueOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What `all` is told."""

    place: Place
    singles: int
    bulk: int
    rate: int
    duration_s: int
    seed: int
    payload_bytes: int
    watched: bool = False  #: say where the time goes
    counts: bool = False


class Driver:
    """What the coordinator's verbs do here."""

    def __init__(self) -> None:
        self._clock = SystemClock()

    async def alone(self, dsn: str, schema: str | None, count: int, payload_bytes: int) -> Message:
        """Enqueue one by one, without and with a request key, between loops of bare inserts; return rates."""
        bare = await Bare.open(Place(dsn=dsn, schema=schema), self._clock)
        payload = b"x" * payload_bytes
        plain, keyed = self._kinds("x" * payload_bytes)
        for one in (plain, keyed):
            await self._rate(one, _THROWN_AWAY)
        rates: dict[str, list[float]] = {"bare_insert": [], "bare_transaction": [], "single": [], "keyed": []}
        for _ in range(_TURNS):
            rates["bare_insert"].append(await bare.insert_rate(count // _TURNS, payload))
            rates["single"].append(await self._rate(plain, count // _TURNS))
            rates["bare_transaction"].append(await bare.insert_rate(count // _TURNS, payload, begun=True))
            rates["keyed"].append(await self._rate(keyed, count // _TURNS))
        await bare.close()
        # Turns are equally long in rows: the rate over all of them is the harmonic mean.
        means = {name: len(found) / sum(1 / rate for rate in found) for name, found in rates.items()}
        return {"rates": means, "enqueued": 2 * (count // _TURNS * _TURNS + _THROWN_AWAY)}

    async def all(self, **orders: object) -> Message:
        """Enqueue in each way, one after the other; answer how many that were, and where the time went.

        No figure comes of it, so that it may be watched closely.
        """
        told = msgspec.convert(orders, EnqueueOrders)
        log = CallerLog(self._clock) if told.watched else None
        store = make_store(told.place, steps=log)
        await store.open()
        subject.app.use_store(log.around(store) if log else store)

        def window(name: str, jobs: int, *, rest: str = UNEXPLAINED) -> AbstractContextManager[None]:
            return log.window(name, jobs, rest=rest) if log else nullcontext()

        plain, keyed = self._kinds("x" * told.payload_bytes)
        for one in (plain, keyed):
            await self._rate(one, _THROWN_AWAY)
        with window("one by one", told.singles):
            await self._rate(plain, told.singles)
        with window("with a key", told.singles):
            await self._rate(keyed, told.singles)
        with window("bulk", told.bulk):
            await self.bulk(told.bulk, told.payload_bytes)
        with window("open loop", told.rate * told.duration_s, rest=IDLE):
            opened = await self.open_loop(told.rate, told.duration_s, told.seed, told.payload_bytes)
        await subject.app.close()
        await store.close()
        if log:  # How many a Poisson process brings is known when it has ended.
            log.windows[-1] = replace(log.windows[-1], jobs=opened["enqueued"], offered=True)
        answer = {"enqueued": 2 * (told.singles + _THROWN_AWAY) + told.bulk + opened["enqueued"], "windows": []}
        if log:
            log.close()
            answer["windows"] = msgspec.to_builtins(log.windows)
        return answer

    async def bulk(self, count: int, payload_bytes: int) -> Message:
        """Enqueue many in one call."""
        fillers = ["x" * payload_bytes] * count
        begun_us = self._clock.monotonic_us()
        await subject.nothing.enqueue_many(fillers)
        return {"rate": count * limits.SECOND_US / (self._clock.monotonic_us() - begun_us)}

    async def open_loop(self, rate: int, duration_s: int, seed: int, payload_bytes: int) -> Message:
        """Enqueue at instants of a Poisson process, whether those before were answered or not."""
        chance, filler = seeded_chance(seed), "x" * payload_bytes
        late, taken = Distribution(), Distribution()
        begun_us = self._clock.monotonic_us()
        arrived = Arrived()

        async def timed(intended_us: int) -> None:
            await subject.nothing.enqueue(filler)
            taken.add(self._clock.monotonic_us() - intended_us)

        async with asyncio.TaskGroup() as group:
            for offset_us in map(round, offsets(rate, duration_s * limits.SECOND_US, chance)):
                while (left_us := begun_us + offset_us - self._clock.monotonic_us()) > 0:
                    await self._clock.sleep(left_us)
                left_us = self._clock.monotonic_us() - begun_us
                late.add(left_us - offset_us)
                arrived.add(offset_us, left_us)
                group.create_task(timed(begun_us + offset_us))
        return {
            "late": late.percentiles(),
            "taken": taken.percentiles(),
            "enqueued": arrived.count,
            "arrived": msgspec.to_builtins(arrived),
        }

    async def close(self) -> Message:
        """Disconnect."""
        await subject.app.close()
        return {}

    def _kinds(self, filler: str) -> tuple[Callable[[], Awaitable[None]], Callable[[], Awaitable[None]]]:
        """Return what enqueues once, without and with a request key."""
        run, key = new_process_id(), 0

        async def keyed() -> None:
            nonlocal key
            key += 1
            await subject.nothing.options(key=f"{run}-{key}").enqueue(filler)

        async def plain() -> None:
            await subject.nothing.enqueue(filler)

        return plain, keyed

    async def _rate(self, one: Callable[[], Awaitable[None]], count: int) -> float:
        begun_us = self._clock.monotonic_us()
        for _ in range(count):
            await one()
        return count * limits.SECOND_US / (self._clock.monotonic_us() - begun_us)


if __name__ == "__main__":
    driver = Driver()
    run_here(
        answer_lines(
            {
                "alone": driver.alone,
                "all": driver.all,
                "bulk": driver.bulk,
                "open_loop": driver.open_loop,
                "close": driver.close,
            }
        )
    )
