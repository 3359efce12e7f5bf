"""The parameters of the steady profile, and the load that follows from them; pure."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Literal

import msgspec

from luciole import limits
from luciole.bench.verdict import Usage
from luciole.model.instant import Instant, to_datetime
from luciole.model.trigger import Trigger, every

_HANDLER = re.compile(r"(?:(sleep|cpu|block):(\d{1,6})ms)|noop")

#: Distinct phases of a spread load: one each 10 ms of a minute, and as many triggers.
_PHASES = 6_000

#: Schedules that are registered but do not fire inside the window wait this long.
_STILL_US = limits.DAY_US

#: Up to here the number of nodes was measured; more is labelled unproven.
NODES_PROVEN = 4


class Handler(msgspec.Struct, frozen=True, kw_only=True):
    """What each run does."""

    kind: Literal["sleep", "cpu", "block", "noop"]
    duration_ms: int = 0


class SteadySpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters, as requested."""

    schedules: int
    period_s: int = 60
    duration_s: int  #: from the first fire to the last; a number of periods, or less than one
    warmup_s: int = 0  #: fires of the window's beginning that do not count for punctuality
    phase: Literal["spread", "aligned"] = "spread"
    handler: str = "sleep:200ms"
    nodes: int = 1
    executors: int = 1
    slots: int = 2_000  #: of all executors together
    shards: int = 32
    plan_ahead_us: int = 0  #: the nodes' setting of that name

    @property
    def fires_each(self) -> int:
        """How often a schedule fires that fires at all."""
        return max(1, self.duration_s // self.period_s)

    @property
    def firing(self) -> int:
        """How many of the schedules fire inside the window: all, unless it is shorter than a period."""
        if self.phase == "aligned" or self.duration_s >= self.period_s:
            return self.schedules
        return sum(self.phase_us(n) < self.duration_s * limits.SECOND_US for n in range(self.schedules))

    @property
    def rate(self) -> float:
        """Starts a second, on average of the window."""
        return self.schedules / self.period_s

    def phase_us(self, number: int) -> int:
        """Return how long after the beginning of a period a schedule fires."""
        if self.phase == "aligned":
            return 0
        period_us = self.period_s * limits.SECOND_US
        return number * _PHASES // self.schedules * period_us // _PHASES

    def check(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            Usage: it does; the message names the option.
        """
        read_handler(self.handler)
        if self.duration_s > self.period_s and self.duration_s % self.period_s:
            raise Usage("--duration: longer than a period, it is a whole number of periods")
        if self.slots < self.executors:
            raise Usage("--slots: each executor needs one at least")
        if not 0 <= self.warmup_s < self.duration_s:
            raise Usage("--warmup: it must end before the window does")


def read_handler(text: str) -> Handler:
    """Return what `sleep:200ms`, `cpu:5ms`, `block:5ms` or `noop` means.

    Raises:
        Usage: it is none of them.
    """
    matched = _HANDLER.fullmatch(text)
    if matched is None:
        raise Usage(f"--handler: {text!r} is none; write sleep:200ms, cpu:5ms, block:5ms or noop")
    if matched[1] is None:
        return Handler(kind="noop")
    return Handler(kind=matched[1], duration_ms=int(matched[2]))  # type: ignore[arg-type] # as the expression says


def triggers(spec: SteadySpec, start_us: Instant) -> Iterator[Trigger]:
    """Yield the trigger of each schedule that fires inside the window.

    Args:
        spec: the load.
        start_us: the first fire time of all.
    """
    window_us = spec.duration_s * limits.SECOND_US
    period = timedelta(seconds=spec.period_s)
    end = to_datetime(start_us + window_us - 1)
    made: dict[int, Trigger] = {}
    for number in range(spec.schedules):
        phase_us = spec.phase_us(number)
        if phase_us >= window_us:
            return  # Phases grow with the number.
        if phase_us not in made:
            first = to_datetime(start_us + phase_us)
            made[phase_us] = every(period, anchor=first, start=first, end=end)
        yield made[phase_us]


def still_trigger(spec: SteadySpec, from_us: Instant) -> Trigger:
    """Return a trigger of the load's period that does not fire within a day."""
    start = to_datetime(from_us + _STILL_US)
    return every(timedelta(seconds=spec.period_s), anchor=start, start=start)
