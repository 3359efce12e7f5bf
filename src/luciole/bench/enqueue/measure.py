"""The enqueue profile as a run."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from luciole import limits
from luciole.bench.arrivals import Arrived, arrived_as_asked, asked, rate_missed
from luciole.bench.backends import Place
from luciole.bench.check import ask, check, judge
from luciole.bench.enqueue.driver import EnqueueOrders
from luciole.bench.fresh import FreshRepeats
from luciole.bench.processes import Message, Process
from luciole.bench.result import Check, Percentiles, Phase, Repeat
from luciole.bench.stores import open_fresh
from luciole.bench.work import quiesce

#: A generator that is later than this at its 99th percentile measured itself.
_LATE_MAX_US = 20 * limits.MS_US


class EnqueueSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters, as requested."""

    singles: int  #: one by one, of each kind
    bulk: int  #: in one call
    rate: int  #: a second, in the open loop
    duration_s: int  #: of the open loop
    payload_bytes: int = 0
    seed: int = 1
    shards: int = 32


class EnqueueMeasure(FreshRepeats[EnqueueSpec]):
    """One process enqueues into a fresh store; no node is there, so nothing else happens."""

    explained_apart = True

    def _line(self, repeat: Repeat) -> str:
        figures = repeat.figures
        return (
            f"one by one {figures['single_rate'] / figures['bare_insert_rate']:.2f} of a bare insert "
            f"({figures['single_transaction_share']:.2f} of a bare transaction), "
            f"keyed {figures['keyed_rate'] / figures['bare_insert_rate']:.2f}; "
            f"bulk {figures['bulk_rate']:,.0f}/s, "
            f"{figures['bulk_rate'] / figures['enqueue_ceiling_rate']:.2f} of what the server alone writes"
        )

    async def _ceilings(self) -> Mapping[str, float]:
        rows = await self._rows(("enqueue",), self._spec.bulk, self._spec.payload_bytes)
        return {"enqueue_ceiling_rate": rows["enqueue"]}

    async def _repeat(self, index: int, place: Place, folder: Path) -> Repeat:
        del folder
        spec = self._spec
        store = await open_fresh(place, shards=spec.shards)
        await store.close()
        if not self._counts:
            return await self._all(index, place)
        repeat = Repeat(index=index, actual={"processes": 1, "seed": spec.seed + index})
        self._begun_us = self._clock.monotonic_us()
        async with await Process.start("luciole.bench.enqueue.driver", {"LUCIOLE_DSN": place.dsn}) as driver:
            alone = await self._phase(
                repeat,
                driver,
                "alone",
                dsn=place.dsn,
                schema=place.schema,
                count=spec.singles,
                payload_bytes=spec.payload_bytes,
            )
            await quiesce(place)
            bulk = await self._phase(repeat, driver, "bulk", count=spec.bulk, payload_bytes=spec.payload_bytes)
            await quiesce(place)
            told = await self._phase(
                repeat,
                driver,
                "open_loop",
                rate=spec.rate,
                duration_s=spec.duration_s,
                seed=spec.seed + index,
                payload_bytes=spec.payload_bytes,
            )
            await driver.ask("close")
        rates: dict[str, float] = alone["rates"]
        repeat.figures |= {f"{name}_rate": rate for name, rate in rates.items()} | {
            "single_transaction_share": rates["single"] / rates["bare_transaction"],
            "bulk_rate": bulk["rate"],
        }
        repeat.distributions["request_time"] = msgspec.convert(told["taken"], Percentiles)
        repeat.distributions["generator_lag"] = late = msgspec.convert(told["late"], Percentiles)
        if late.p99 > _LATE_MAX_US:
            repeat.invalid.append(f"the generator was late by {late.p99:,} us at the 99th percentile")
        arrived = msgspec.convert(told["arrived"], Arrived)
        repeat.actual["rate"] = round(arrived.count * limits.SECOND_US / max(1, arrived.last_us), 1)
        wanted = asked(spec.rate, spec.duration_s * limits.SECOND_US, spec.seed + index)
        repeat.checks += await self._checks(place, alone["enqueued"] + spec.bulk + told["enqueued"])
        repeat.checks += arrived_as_asked(arrived, wanted)
        repeat.invalid += rate_missed(arrived, wanted)
        return repeat

    async def _all(self, index: int, place: Place) -> Repeat:
        """Let the driver enqueue in each way, watched or profiled; no figure comes of it."""
        spec = self._spec
        orders = EnqueueOrders(
            place=place,
            singles=spec.singles,
            bulk=spec.bulk,
            rate=spec.rate,
            duration_s=spec.duration_s,
            seed=spec.seed + index,
            payload_bytes=spec.payload_bytes,
        )
        async with await Process.start("luciole.bench.enqueue.driver", {"LUCIOLE_DSN": place.dsn}) as driver:
            answer, found = await self._asked(place, driver, "all", orders)
        found.checks = await self._checks(place, answer["enqueued"])
        return found

    async def _checks(self, place: Place, jobs: int) -> list[Check]:
        entries = (await ask(place, ("open_entries",), {}))["open_entries"]
        return [
            judge("entries_of_all", "store", "= :jobs", entries, {"jobs": jobs}),
            *await check(place, "submit", {"jobs": jobs, "shards": self._spec.shards}),
        ]

    async def _phase(self, repeat: Repeat, driver: Process, verb: str, **orders: int | str | None) -> Message:
        begun_us = self._clock.monotonic_us()
        told = await driver.ask(verb, **orders)
        repeat.phases.append(
            Phase(
                name=verb,
                begun_s=(begun_us - self._begun_us) / limits.SECOND_US,
                duration_s=(self._clock.monotonic_us() - begun_us) / limits.SECOND_US,
            )
        )
        return told
