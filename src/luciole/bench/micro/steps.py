"""The steps of the micro layer that compute and store nothing, each with the optimisation that it guards."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from luciole import limits
from luciole.bench.burst.load import triggers
from luciole.bench.result import Check
from luciole.model.ids import ExecutionKey
from luciole.model.instant import Instant, from_datetime
from luciole.model.job import JobSpec, Retry
from luciole.model.next_fire_memo import NextFireMemo
from luciole.model.planning import plan_tick
from luciole.model.retrying import retry_delay_us
from luciole.model.routing import Line, Offer, Route, assign
from luciole.model.schedule import Cursor, Policy, pack_policy
from luciole.model.trigger import Trigger, cron
from luciole.wire.codec import decode, encode
from luciole.wire.messages import Deliver, Delivered, Message

_DIGEST_BYTES = 32

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


def _frame(payload_bytes: int) -> list[Message]:
    key = ExecutionKey(shard=3, schedule_id=7, fire_us=_NOW_US, part=0)
    attempt = Delivered(
        key=key,
        attempt=1,
        handler="bench.handler",
        payload=bytes(payload_bytes),
        content_type="application/octet-stream",
        fire_us=_NOW_US,
        due_us=_NOW_US,
        timeout_us=None,
        deadline_us=None,
        run_in=None,
    )
    return [Deliver(attempts=(attempt,))]


def _encode(payload_bytes: int) -> Callable[[], Step]:
    def prepare() -> Step:
        frame = _frame(payload_bytes)
        return lambda: len(encode(frame))

    return prepare


def _decode(payload_bytes: int) -> Callable[[], Step]:
    def prepare() -> Step:
        (encoded,) = encode(_frame(payload_bytes))
        return lambda: len(decode(encoded))

    return prepare


def _checksum(payload_bytes: int) -> Callable[[], Step]:
    def prepare() -> Step:
        spec = JobSpec(handler="bench.handler", payload=bytes(payload_bytes))

        def step() -> int:
            return len(spec.digest()) // _DIGEST_BYTES

        return step

    return prepare


def _routing() -> Step:
    handlers = [f"bench.handler{n}" for n in range(16)]
    lines = [Line(Route("bench", handler), n % 4, 100) for n, handler in enumerate(handlers)]
    offers = [
        Offer(f"{n:016x}", "bench", frozenset(handlers[n:] + handlers[: n // 2]), frozenset(), 64) for n in range(8)
    ]

    def step() -> int:
        return len(assign(lines, offers)) > 0

    return step


def _retry() -> Step:
    policy = Retry(limit=10)

    def step() -> int:
        for failures in range(1, 11):
            retry_delay_us(policy, failures, 0.5)
        return 10

    return step


MICROS: tuple[Micro, ...] = (
    Micro("next_fire_us", "cron fields as bit sets, and the offset of a zone looked up once a period", _plain),
    Micro("next_fire_dst_us", "gap and fold decided by arithmetic, without asking the zone for each wall time", _dst),
    Micro("next_fire_leap_us", "days that match found by month and year, not day by day", _leap),
    Micro("next_fire_memo_us", "a burst asks each (trigger, instant) once: the memo answers the others", _memo),
    Micro("plan_tick_us", "a packed policy taken apart once a tick, and next fires shared within it", _tick),
    Micro("encode_4k_us", "an attempt becomes protobuf column by column, without an object a field", _encode(4_096)),
    Micro("decode_4k_us", "what is read by the thousand is made without calling its class", _decode(4_096)),
    Micro(
        "encode_1m_us", "a payload is weighed without being made, and copied once into its frame", _encode(1_000_000)
    ),
    Micro("decode_1m_us", "a payload leaves its frame in one copy", _decode(1_000_000)),
    Micro("digest_4k_us", "a job version is found by the digest of its parts, not by comparing rows", _checksum(4_096)),
    Micro(
        "digest_1m_us",
        "a payload goes into the digest as it is, without being joined to anything",
        _checksum(1_000_000),
    ),
    Micro("routing_us", "who can serve a route is found once a round, and entries are shared by counts", _routing),
    Micro("retry_delay_us", "the pause is arithmetic on the policy, without a table or a loop over failures", _retry),
)


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
