"""The store's clock as a node knows it: the host's monotonic clock plus a calibrated offset."""

import logging
from collections import deque
from dataclasses import dataclass, field

from luciole import limits
from luciole.errors import ClockSkew
from luciole.model.instant import Instant, iso
from luciole.runtime.clock import Clock

_log = logging.getLogger("luciole.clock")


@dataclass(slots=True, kw_only=True)
class StoreClock:
    """Never ahead of the store's clock, and behind it by at most one round trip.

    A round trip that was sent at `a`, came back at `b` and brought the store's time S bounds the store's present
    from below: S + (now - b). The highest of the latest few bounds is what `now_us` says, so that an execution that
    is due by it is due by the store too (I11). The host's wall clock plays no part after the start.
    """

    clock: Clock
    jumps: int = 0  #: how often the store's clock was seen to jump
    _offset_us: int | None = None
    _lowest_us: deque[int] = field(default_factory=lambda: deque(maxlen=limits.CLOCK_SAMPLES))

    @property
    def offset_us(self) -> int | None:
        """The store's clock minus the host's monotonic one; None before the first sample."""
        return self._offset_us

    def now_us(self) -> Instant:
        """Return the store's clock, microseconds UTC, never ahead of it."""
        assert self._offset_us is not None  # The first heartbeat comes before anything that asks.
        return self.clock.monotonic_us() + self._offset_us

    def until_us(self, at_us: Instant) -> int:
        """Return the time from now to an instant of the store's clock, in microseconds; negative when it is over."""
        return at_us - self.now_us()

    def wall_offset_us(self) -> int | None:
        """Return the store's clock minus the host's wall clock, in microseconds; None before the first sample."""
        return None if self._offset_us is None else self.now_us() - self.clock.now_us()

    def observe(self, store_us: Instant, *, sent_us: int, received_us: int) -> None:
        """Take one sample.

        Args:
            store_us: what the store's clock said.
            sent_us: the host's monotonic clock just before the question.
            received_us: the same, just after the answer.
        """
        low = store_us - received_us
        high = store_us - sent_us
        if self._offset_us is not None:
            ahead = low - self._offset_us  # The store went forward by at least this much,
            behind = self._offset_us - high  # or back by at least this much.
            jump = ahead if ahead > limits.CLOCK_JUMP_US else -behind if behind > limits.CLOCK_JUMP_US else 0
            if jump:
                self.jumps += 1
                self._lowest_us.clear()
                _log.warning(
                    "clock jump: the store's clock moved by %+.3f s against this host, to %s",
                    jump / limits.SECOND_US,
                    iso(store_us),
                )
        self._lowest_us.append(low)
        # I11: a bound that a step back has made false is dropped at once, whatever its size.
        self._offset_us = min(max(self._lowest_us), high)

    def refuse_skew(self) -> None:
        """Compare the store's clock with the host's wall clock; what a node does once, when it starts.

        Raises:
            ClockSkew: they are further apart than `limits.CLOCK_SKEW_MAX_US`.
        """
        skew = self.clock.now_us() - self.now_us()
        if abs(skew) > limits.CLOCK_SKEW_MAX_US:
            raise ClockSkew(
                f"this host's clock is {skew / limits.SECOND_US:+.0f} s from the store's ({iso(self.now_us())}); "
                "set it (for example by NTP) and start again"
            )
