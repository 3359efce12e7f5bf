"""The micro layer: what single steps cost, each with the optimisation that it guards.

Run as `python -m luciole.bench.micro`; it answers a `Repeat`.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import NamedTuple

from luciole import limits
from luciole.bench.burst.load import triggers
from luciole.bench.loops import run_here
from luciole.bench.processes import Message, answer_lines
from luciole.bench.result import Check, Repeat
from luciole.model.instant import Instant, from_datetime
from luciole.model.job import JobSpec
from luciole.model.next_fire_memo import NextFireMemo
from luciole.model.planning import plan_tick
from luciole.model.schedule import Cursor, Policy, pack_policy
from luciole.model.trigger import Trigger, cron
from luciole.runtime.clock import SystemClock

_ROUNDS = 7
_ROUND_US = 30 * limits.MS_US

_NOW_US = from_datetime(datetime(2026, 3, 1, tzinfo=UTC))

#: One round of a step: it does the step so often, and returns how often.
Step = Callable[[], int]


class Micro(NamedTuple):
    """One step to measure."""

    name: str
    guards: str  #: the optimisation that a slower figure would say is lost
    prepare: Callable[[], Step]


def _walk(walked: list[tuple[Trigger, Instant]], steps: int) -> Step:
    """Ask each trigger for its next fire, from the last one on."""

    def step() -> int:
        for trigger, at_us in walked:
            after_us: Instant | None = at_us
            for _ in range(steps):
                assert after_us is not None
                after_us = trigger.next_us(after_us)
        return steps * len(walked)

    return step


def _plain() -> Step:
    return _walk([(trigger, _NOW_US) for trigger in triggers(_NOW_US)], 20)


def _dst() -> Step:
    spring = from_datetime(datetime(2026, 3, 29, tzinfo=UTC)) - 2 * limits.HOUR_US
    walls = ("30 2 * * *", "*/15 * * * *", "0 3 * * *")
    return _walk([(cron(wall, tz="Europe/Berlin"), spring) for wall in walls], 8)


def _leap() -> Step:
    return _walk([(cron("0 0 29 2 *", tz="Europe/Berlin"), _NOW_US)], 4)


def _memo() -> Step:
    memo, asked = NextFireMemo(), triggers(_NOW_US)

    def step() -> int:
        for trigger in asked:
            memo.next_us(trigger, _NOW_US)
        return len(asked)

    step()
    return step


def _tick() -> Step:
    asked = triggers(_NOW_US)
    memo = NextFireMemo()
    policy_id = pack_policy(Policy(), JobSpec(handler="x"))
    cursors = tuple(
        Cursor(
            shard=n % 32,
            schedule_id=n,
            revision=1,
            fire_us=_NOW_US,
            due_us=_NOW_US,
            trigger_id=n % len(asked),
            job_id=1,
            policy_id=policy_id,
        )
        for n in range(1_000)
    )
    by_id = dict(enumerate(asked))

    def step() -> int:
        plan = plan_tick(cursors, now_us=_NOW_US, horizon_us=_NOW_US, triggers=by_id, next_fire=memo.next_us)
        return len(plan.moves)

    return step


MICROS: tuple[Micro, ...] = (
    Micro("next_fire_us", "cron fields as bit sets, and the offset of a zone looked up once a period", _plain),
    Micro("next_fire_dst_us", "gap and fold decided by arithmetic, without asking the zone for each wall time", _dst),
    Micro("next_fire_leap_us", "days that match found by month and year, not day by day", _leap),
    Micro("next_fire_memo_us", "a burst asks each (trigger, instant) once: the memo answers the others", _memo),
    Micro("plan_tick_us", "a packed policy taken apart once a tick, and next fires shared within it", _tick),
)


def measure(micro: Micro, clock: SystemClock) -> float:
    """Return microseconds for one step: the median of rounds of some tens of milliseconds each."""
    step = micro.prepare()
    begun_us, count = clock.monotonic_us(), 0
    while clock.monotonic_us() - begun_us < _ROUND_US:  # Warms up, and finds how often fits a round.
        count += step() > 0
    rounds = []
    for _ in range(_ROUNDS):
        begun_us = clock.monotonic_us()
        done = sum(step() for _ in range(count))
        rounds.append((clock.monotonic_us() - begun_us) / done)
    return median(rounds)


def right() -> Check:
    """Check that what is measured computes what it should: a known day, its gap and its leap year."""
    berlin = cron("30 2 * * *", tz="Europe/Berlin")
    leap = cron("0 0 29 2 *", tz="UTC")
    found = [
        berlin.next_us(from_datetime(datetime(2026, 3, 28, 12, tzinfo=UTC))),
        leap.next_us(_NOW_US),
        NextFireMemo().next_us(leap, _NOW_US),
        _tick()(),
    ]
    leap_day = from_datetime(datetime(2028, 2, 29, tzinfo=UTC))
    gap_end = from_datetime(datetime(2026, 3, 29, tzinfo=UTC) + timedelta(hours=1))
    wanted = [gap_end, leap_day, leap_day, 1_000]
    wrong = sum(one != other for one, other in zip(found, wanted, strict=True))
    return Check(name="steps_compute_what_they_should", source="report", expected="= 0", found=wrong, passed=not wrong)


async def repeat(index: int) -> Message:
    """Measure every step once."""
    clock = SystemClock()
    found = Repeat(index=index, checks=[right()])
    for micro in MICROS:
        found.figures[micro.name] = round(measure(micro, clock), 4)
    return found.message()


if __name__ == "__main__":
    run_here(answer_lines({"repeat": repeat}))
