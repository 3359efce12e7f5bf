"""One repeat of the micro layer; a process of its own.

Run as `python -m luciole.bench.micro.measure`; it answers a `Repeat`.
"""

import asyncio
from statistics import median

from luciole import limits
from luciole.bench.faults import slow_step
from luciole.bench.loops import run_here
from luciole.bench.micro.counting import COUNTED, Counter, count_instructions, count_opcodes
from luciole.bench.micro.durable import measure_durables
from luciole.bench.micro.steps import MICROS, Step, right
from luciole.bench.processes import Message, answer_lines
from luciole.bench.result import Repeat
from luciole.runtime.clock import SystemClock

_ROUNDS = 7
_ROUND_US = 30 * limits.MS_US


def measure(step: Step, clock: SystemClock) -> float:
    """Return microseconds for one step: the median of rounds of some tens of milliseconds each."""
    begun_us, count = clock.monotonic_us(), 0
    while clock.monotonic_us() - begun_us < _ROUND_US:  # Warms up, and finds how often fits a round.
        count += step() > 0
    rounds = []
    for _ in range(_ROUNDS):
        begun_us = clock.monotonic_us()
        done = sum(step() for _ in range(count))
        rounds.append((clock.monotonic_us() - begun_us) / done)
    return median(rounds)


async def repeat(index: int, counter: Counter) -> Message:
    """Measure every step once."""
    # In a thread: the steps that store have a loop of their own.
    return await asyncio.to_thread(_repeat, index, counter)


def _repeat(index: int, counter: Counter) -> Message:
    clock = SystemClock()
    found = Repeat(index=index, checks=[right()])
    for micro in MICROS:
        step = slow_step(micro.name, micro.prepare())
        found.figures[micro.name] = round(measure(step, clock), 4)
        if counter == "opcodes":
            found.figures[counted(micro.name, counter)] = round(count_opcodes(step), 3)
        elif counter != "none":
            found.figures[counted(micro.name, counter)] = round(count_instructions(micro, counter), 1)
    found.figures |= {name: round(value, 6) for name, value in measure_durables().items()}
    return found.message()


def counted(name: str, counter: Counter) -> str:
    """Return the name of the count that stands beside a time: `plan_tick_us` has `plan_tick_opcodes`."""
    return f"{name.removesuffix('_us')}_{COUNTED[counter]}"


if __name__ == "__main__":
    run_here(answer_lines({"repeat": repeat}))
