"""Samplers look often enough, or the run is invalid."""

import asyncio
import os

import pytest

from luciole.bench.attribution.parts import Used
from luciole.bench.attribution.samplers import PartsSampler, Sampler, Sampling
from luciole.limits import MS_US
from luciole.runtime.clock import SystemClock
from luciole.testing.clock import FakeClock


class Scripted(Sampler):
    name = "scripted"

    def __init__(self, fails_at: int) -> None:
        self.fails_at = fails_at
        self.looks = 0

    async def look(self, at_us: int) -> None:
        self.looks += 1
        if self.looks >= self.fails_at:
            raise OSError(f"gone at {at_us}")


async def test_a_sampler_that_looks_on_is_not_lost() -> None:
    clock, sampler = FakeClock(), Scripted(fails_at=1_000)
    sampling = Sampling([sampler], clock, every_us=MS_US)
    async with sampling:
        await clock.advance(20 * MS_US)
    assert sampling.lost == []
    assert sampler.looks >= 20


@pytest.mark.parametrize(("fails_at", "said"), [(1, "could not start"), (2, "was lost: OSError: gone")])
async def test_a_lost_sampler_is_said(fails_at: int, said: str) -> None:
    sampler = Scripted(fails_at)
    clock = FakeClock()
    sampling = Sampling([sampler], clock, every_us=MS_US)
    async with sampling:
        await clock.advance(2 * MS_US)
    assert [said in reason for reason in sampling.lost] == [True]


async def test_a_sampler_that_hangs_most_of_the_time_is_lost() -> None:
    class Hanging(Scripted):
        answered = asyncio.Event()

        async def look(self, at_us: int) -> None:
            await super().look(at_us)
            if self.looks > 1:
                await self.answered.wait()

    clock, sampler = FakeClock(), Hanging(fails_at=1_000)
    sampling = Sampling([sampler], clock, every_us=MS_US)
    async with sampling:
        await clock.advance(100 * MS_US)
        sampler.answered.set()
    assert ["looked 1 times instead of 100" in reason for reason in sampling.lost] == [True]


def test_what_a_part_used_is_the_difference_around_the_window() -> None:
    sampler = PartsSampler({"it": os.getpid()})
    sampler.looks = [(at, {"it": Used(at * 10, at, 500 - at)}) for at in (0, 100, 200, 300)]
    assert sampler.used(110, 190) == {"it": Used(1_000, 100, 400)}
    cpu, memory = sampler.series(0)
    assert cpu.values == [10.0, 10.0, 10.0]
    assert (memory.unit, len(memory.values)) == ("MiB", 4)


async def test_the_cpu_of_this_process_is_seen() -> None:
    sampler, clock = PartsSampler({"it": os.getpid()}), SystemClock()
    await sampler.open()
    await sampler.look(0)
    begun_us = clock.monotonic_us()
    while clock.monotonic_us() < begun_us + 50 * MS_US:
        pass
    await sampler.look(1)
    assert sampler.used(0, 1)["it"].cpu_us > 0
    assert sampler.used(0, 1)["it"].rss_bytes > 1_000_000
