"""The retry policy as users write it."""

from luciole import limits
from luciole.model import job
from luciole.model.duration import Duration, duration_us


class Retry(job.Retry):
    """When a failed attempt is tried again.

    `Retry(5)` means at most five attempts after the first. The pause before retry n is
    `min(delay * factor ** (n - 1), delay_max)`, an hour at most by default, spread by `jitter` (0.2 = ±20 %);
    `factor=1` keeps it fixed. A handler may choose its own pause by raising `RetryLater`.
    """

    __slots__ = ()

    def __init__(
        self,
        limit: int,
        *,
        delay: Duration = "1s",
        factor: float = 2.0,
        delay_max: Duration | None = None,
        jitter: float = 0.2,
    ) -> None:
        delay_us = duration_us(delay, field="retry.delay")
        super().__init__(
            limit=limit,
            delay_us=delay_us,
            factor=factor,
            delay_max_us=max(limits.HOUR_US, delay_us)
            if delay_max is None
            else duration_us(delay_max, field="retry.delay_max"),
            jitter=jitter,
        )
