"""The rescuer: attempts that nobody speaks for are taken back, with evidence and a new token."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field

from luciole import limits
from luciole.model.ids import JobId
from luciole.model.job import JobSpec
from luciole.model.lease import Lease
from luciole.model.outbox import Entry, Settled, Settlement
from luciole.model.retrying import Lost, settle_loss
from luciole.runtime.store_clock import StoreClock
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import OutboxStore

_log = logging.getLogger("luciole.rescuer")

#: Reads job versions; ids that can't be read are absent.
LoadJobs = Callable[[Collection[JobId]], Awaitable[Mapping[JobId, JobSpec]]]


@dataclass(slots=True, kw_only=True)
class Rescuer:
    """Settles lost attempts in batches: tried again, quarantined, or lost for good.

    The settlement is guarded by the attempt token like any report, so a report that was durable first wins (I5).
    """

    store: OutboxStore
    store_clock: StoreClock
    telemetry: Telemetry
    trusted: Callable[[], Collection[Lease]]
    jobs: LoadJobs
    settled: Callable[[Entry, Settlement, Settled], None]  #: told of each answer
    wake: Callable[[], None]  #: pokes the loop of `tick`
    idle_pause_us: int = limits.REST_US
    _lost: deque[Lost] = field(default_factory=deque)

    @property
    def waiting(self) -> int:
        """How many lost attempts are not taken back yet."""
        return len(self._lost)

    def take(self, lost: Lost) -> None:
        """Take an attempt that nobody speaks for."""
        self._lost.append(lost)
        self.wake()

    async def tick(self) -> int:
        """Take back what was lost; return the pause."""
        batch = [self._lost.popleft() for _ in range(min(len(self._lost), limits.REPORT_BATCH_MAX))]
        if not batch:
            return self.idle_pause_us
        try:
            await self._rescue(batch)
        except BaseException:
            self._lost.extendleft(reversed(batch))  # Safe to repeat.
            raise
        return 0 if self._lost else self.idle_pause_us

    async def _rescue(self, batch: Collection[Lost]) -> None:
        held = {lease.shard for lease in self.trusted()}
        ours = [lost for lost in batch if lost.entry.key.shard in held]  # The others are their holders' to rescue.
        if not ours:
            return
        jobs = await self.jobs({lost.entry.job_id for lost in ours})
        now_us = self.store_clock.now_us()
        settlements = [settle_loss(lost, jobs.get(lost.entry.job_id), now_us=now_us) for lost in ours]
        answers = await self.telemetry.timed("settle", self.store.settle(settlements))
        for lost, settlement, answer in zip(ours, settlements, answers, strict=True):
            if answer is Settled.SETTLED:
                self.telemetry.count("rescued")
                _log.info("%s attempt %d is taken back: %s", lost.entry.key.text(), lost.entry.attempt, lost.error)
            self.settled(lost.entry, settlement, answer)
