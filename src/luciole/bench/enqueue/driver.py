"""Who enqueues: a process that has the store's address and nothing else. No node runs.

Run as `python -m luciole.bench.enqueue.driver`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from math import log

from luciole import limits
from luciole.bench import subject
from luciole.bench.backends import Place
from luciole.bench.bare import Bare
from luciole.bench.loops import run_here
from luciole.bench.percentiles import Distribution
from luciole.bench.processes import Message, answer_lines
from luciole.runtime.chance import new_process_id, seeded_chance
from luciole.runtime.clock import SystemClock

#: The loops are run in so many turns, one after the other, so that a drift of the machine meets all of them.
_TURNS = 5


class Driver:
    """What the coordinator's verbs do here."""

    def __init__(self) -> None:
        self._clock = SystemClock()

    async def alone(self, dsn: str, schema: str | None, count: int, payload_bytes: int) -> Message:
        """Enqueue one by one, without and with a request key, between loops of bare inserts; return rates."""
        bare = await Bare.open(Place(dsn=dsn, schema=schema), self._clock)
        filler, payload = "x" * payload_bytes, b"x" * payload_bytes
        run, key = new_process_id(), 0

        async def keyed() -> None:
            nonlocal key
            key += 1
            await subject.nothing.options(key=f"{run}-{key}").enqueue(filler)

        async def plain() -> None:
            await subject.nothing.enqueue(filler)

        for one in (plain, keyed):
            await self._rate(one, 20)
        rates: dict[str, list[float]] = {"bare_insert": [], "bare_transaction": [], "single": [], "keyed": []}
        for _ in range(_TURNS):
            rates["bare_insert"].append(await bare.insert_rate(count // _TURNS, payload))
            rates["single"].append(await self._rate(plain, count // _TURNS))
            rates["bare_transaction"].append(await bare.insert_rate(count // _TURNS, payload, begun=True))
            rates["keyed"].append(await self._rate(keyed, count // _TURNS))
        await bare.close()
        # Turns are equally long in rows: the rate over all of them is the harmonic mean.
        means = {name: len(found) / sum(1 / rate for rate in found) for name, found in rates.items()}
        return {"rates": means, "enqueued": 2 * (count // _TURNS * _TURNS + 20)}

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
        at_us, end_us, count = float(begun_us), begun_us + duration_s * limits.SECOND_US, 0

        async def timed(intended_us: int) -> None:
            await subject.nothing.enqueue(filler)
            taken.add(self._clock.monotonic_us() - intended_us)

        async with asyncio.TaskGroup() as group:
            while (at_us := at_us - log(1 - chance()) * limits.SECOND_US / rate) < end_us:
                while (left_us := round(at_us) - self._clock.monotonic_us()) > 0:
                    await self._clock.sleep(left_us)
                late.add(self._clock.monotonic_us() - round(at_us))
                group.create_task(timed(round(at_us)))
                count += 1
        return {"late": late.percentiles(), "taken": taken.percentiles(), "enqueued": count}

    async def close(self) -> Message:
        """Disconnect."""
        await subject.app.close()
        return {}

    async def _rate(self, one: Callable[[], Awaitable[None]], count: int) -> float:
        begun_us = self._clock.monotonic_us()
        for _ in range(count):
            await one()
        return count * limits.SECOND_US / (self._clock.monotonic_us() - begun_us)


if __name__ == "__main__":
    driver = Driver()
    run_here(
        answer_lines({"alone": driver.alone, "bulk": driver.bulk, "open_loop": driver.open_loop, "close": driver.close})
    )
