"""One attempt as its executor holds it, and where attempts run."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from luciole.executor.context import Context
from luciole.executor.outcome import Ended
from luciole.executor.registry import Handler
from luciole.model.instant import Instant
from luciole.model.job import RunIn
from luciole.runtime.clock import Clock
from luciole.wire.messages import Delivered


class StoreTime:
    """The store's clock as the nodes tell it: the host's monotonic clock plus the offset last heard."""

    __slots__ = ("_clock", "_offset_us")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_us = clock.now_us() - clock.monotonic_us()

    def observe(self, now_us: Instant, *, asked_us: int) -> None:
        """Take what a node said: after it was asked and before it was heard, however long its way here took.

        Args:
            now_us: the store's clock, as the node knows it.
            asked_us: when the question was sent, by the host's monotonic clock.
        """
        heard_us = self._clock.monotonic_us()
        self._offset_us = min(max(self._offset_us, now_us - heard_us), now_us - asked_us)

    def now_us(self) -> Instant:
        """Return the store's clock, microseconds UTC; from any thread."""
        return self._clock.monotonic_us() + self._offset_us

    def monotonic_us(self, instant: Instant) -> int:
        """Return an instant of the store on the host's monotonic clock."""
        return instant - self._offset_us


class Attempt:
    """One attempt, from its delivery until its outcome is known.

    The loop of the sessions owns it. Its place sets `started_us` and `handle`.
    """

    __slots__ = (
        "abandoned", "context", "delivered", "handle", "handler", "home", "lease_us", "origin", "place", "started_us",
        "told",
    )  # fmt: skip

    def __init__(self, delivered: Delivered, handler: Handler, home: str) -> None:
        self.delivered = delivered
        self.handler = handler
        self.origin = home  #: the node that delivered it
        self.home: str | None = home  #: the node that looks after it; None when its session is gone
        self.lease_us: int | None = None  #: without a home: when it has to end, by the monotonic clock
        self.place = handler.place(delivered.run_in)
        self.context = Context(
            key=delivered.key,
            attempt=delivered.attempt,
            handler=delivered.handler,
            fire_us=delivered.fire_us,
            due_us=delivered.due_us,
            deadline_us=delivered.deadline_us,
        )
        self.started_us: Instant | None = None
        self.told: Ended | None = None  #: why its end was asked for
        self.abandoned = False  #: its outcome is no longer of interest; it still fills its slot
        self.handle: Any = None  #: the place's own

    def begin(self, time: StoreTime) -> None:
        """Note that the handler starts now; called by its place."""
        # I11: a node delivers what is due, so a start before it would be this clock's error.
        self.started_us = max(time.now_us(), self.delivered.due_us)


#: An attempt, how it ended, and when by the store's clock.
Finished: TypeAlias = tuple[Attempt, Ended, Instant]


class Place(Protocol):
    """Where handlers run. It reports the end of each attempt that it was given, once."""

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Run these; an attempt that was told to end before its handler starts ends without starting."""
        ...

    def end(self, attempt: Attempt, *, hard: bool) -> bool:
        """Ask for the end of an attempt whose `told` is set.

        Args:
            attempt: it may have ended already.
            hard: force it where that is possible.

        Returns:
            Whether it can be expected to end by that.
        """
        ...


Places: TypeAlias = dict[RunIn, Place]
