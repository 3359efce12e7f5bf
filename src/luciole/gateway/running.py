"""Runs on record: the batched heartbeat of attempts that last, and what its answer asks to end."""

from collections.abc import Callable
from dataclasses import dataclass, field

from luciole import limits
from luciole.gateway.flights import Flights
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import Running
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import OutboxStore
from luciole.wire.messages import Cancel


@dataclass(slots=True, kw_only=True)
class RunRecorder:
    """Records runs of over a second in batches."""

    store: OutboxStore
    telemetry: Telemetry
    flights: Flights
    wake: Callable[[], None]  #: pokes the loop of `tick`
    idle_pause_us: int = limits.REST_US
    _waiting: dict[ExecutionKey, Running] = field(default_factory=dict)

    def add(self, running: Running) -> None:
        """Take one run; a later word about the same replaces it."""
        self._waiting[running.key] = running
        self.wake()

    async def tick(self) -> int:
        """Record what has gathered; return the pause."""
        batch = [self._waiting.pop(key) for key in tuple(self._waiting)[: limits.REPORT_BATCH_MAX]]
        if not batch:
            return self.idle_pause_us
        try:
            ended = await self.telemetry.timed("mark_running", self.store.mark_running(batch))
        except BaseException:
            for running in batch:
                self._waiting.setdefault(running.key, running)  # Safe to repeat.
            raise
        attempts = {running.key: running.attempt for running in batch}
        for key in ended:
            flight = self.flights.of_attempt(key, attempts[key])
            if flight is not None and not flight.cancelled:
                flight.cancelled = True
                flight.entry = flight.entry._replace(cancel=True)
                flight.session.push(Cancel(attempts=((key, attempts[key]),), reason="cancelled"))
        return 0 if self._waiting else self.idle_pause_us
