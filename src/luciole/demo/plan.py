"""The schedules of the demo: which there are, from when and until when they fire."""

from datetime import datetime, timedelta

from luciole.app import App
from luciole.demo.shop import charge, mail, reindex, tick
from luciole.model.trigger import cron, every, once

_ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe",
    "Pacific/Auckland", "America/St_Johns", "Africa/Cairo", "America/Sao_Paulo",
)  # fmt: skip


def declare_schedules(app: App, *, start: datetime, length: timedelta) -> None:
    """Declare a few hundred schedules that fire in [start, start + length] and then never again.

    Args:
        app: the app of `luciole.demo.shop`.
        start: an aware datetime at a whole second.
        length: of the time in which they fire.
    """
    end = start + length
    for number in range(200):
        period_s = 1 + number % 5
        app.schedule(
            f"tick-{number:03}",
            tick.bind(number),
            every(period_s, start=start, end=end),
            overlap="allow" if number % 2 else "forbid",
        )
    for number in range(60):
        zone = _ZONES[number % len(_ZONES)]
        trigger = cron(f"*/{2 + number % 4} * * * * *", seconds="first", tz=zone, start=start, end=end)
        app.schedule(f"cron-{number:02}", tick.bind(number), trigger, overlap="allow")
    for number in range(24):
        trigger_mail = every(2, start=start, end=end)
        app.schedule(f"mail-{number:02}", mail.bind(f"customer-{number}"), trigger_mail, overlap="allow")
    for number in range(12):
        app.schedule(f"flaky-{number:02}", charge.bind(number), every(3, start=start, end=end))
    for number in range(6):
        app.schedule(f"slow-{number}", reindex, every(1, start=start, end=end), overlap="forbid")
    for number in range(12):
        at = start + length * number / 12
        app.schedule(f"once-{number:02}", tick.bind(number), once(at))
