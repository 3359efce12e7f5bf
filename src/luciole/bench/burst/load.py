"""What a burst registers: many schedules of a few dozen triggers, the first fire of each a day ahead or later."""

from collections.abc import Sequence
from datetime import timedelta

from luciole.limits import DAY_US
from luciole.model.instant import Instant, to_datetime
from luciole.model.job import JobSpec
from luciole.model.schedule import Policy
from luciole.model.trigger import Trigger, cron
from luciole.service.schedules import Declaration

NAMESPACE = "bench"
OWNER = "bench"
PREFIX = "burst-"
WARM_UP_PREFIX = "warm-up-"

#: Distinct expressions, each with a zone: as a user's would be, with and without daylight saving.
_EXPRESSIONS = (
    ("*/5 * * * *", "UTC"),
    ("*/10 * * * *", "Europe/Berlin"),
    ("*/15 * * * *", "America/New_York"),
    ("*/20 * * * *", "Asia/Tokyo"),
    ("*/30 * * * *", "Australia/Sydney"),
    ("0 * * * *", "UTC"),
    ("7 * * * *", "America/Sao_Paulo"),
    ("30 * * * *", "Asia/Kolkata"),
    ("45 */2 * * *", "Europe/London"),
    ("0 */4 * * *", "America/Chicago"),
    ("15 */6 * * *", "Africa/Cairo"),
    ("30 2 * * *", "Europe/Berlin"),
    ("30 1 * * *", "America/New_York"),
    ("0 0 * * *", "UTC"),
    ("0 9 * * 1-5", "Europe/Paris"),
    ("0 18 * * mon,wed,fri", "America/Los_Angeles"),
    ("15 3 * * 0", "Asia/Shanghai"),
    ("0 6 1 * *", "Europe/Madrid"),
    ("0 7 L * *", "Europe/Rome"),
    ("0 8 15W * *", "Asia/Singapore"),
    ("0 9 * * 1#1", "Pacific/Auckland"),
    ("30 4 1,15 * *", "America/Toronto"),
    ("0 12 * 1,4,7,10 *", "Europe/Warsaw"),
    ("59 23 * * *", "America/St_Johns"),
)

TRIGGERS = len(_EXPRESSIONS)


def triggers(now_us: Instant) -> list[Trigger]:
    """Return the triggers; none fires within a day of now."""
    start = to_datetime(now_us - now_us % DAY_US) + timedelta(days=2)
    return [cron(expression, tz=tz, start=start) for expression, tz in _EXPRESSIONS]


def declarations(count: int, *, prefix: str, now_us: Instant) -> Sequence[Declaration]:
    """Return schedules named by a prefix and a number, each with overlap `forbid`."""
    spread = triggers(now_us)
    job = JobSpec(namespace=NAMESPACE, handler="luciole.bench.noop")
    policy = Policy()
    return [
        Declaration(name=f"{prefix}{n:07d}", job=job, trigger=spread[n % len(spread)], policy=policy)
        for n in range(count)
    ]
