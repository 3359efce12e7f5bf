"""The client of one event loop: a store, ids at hand, grouped enqueues, one look for all who wait."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from luciole import limits
from luciole.client.grouping import Enqueuer, enqueue_repeatably
from luciole.client.ids import IdSource
from luciole.client.looking import StateLooks
from luciole.client.transactions import transaction_kind
from luciole.client.waiting import EndWatch
from luciole.errors import ResultTimeout
from luciole.model.execution import Enqueued, EnqueueRequest, ExecutionState, ExecutionView
from luciole.model.ids import ExecutionKey, JobId
from luciole.model.job import JobSpec
from luciole.runtime.clock import Clock
from luciole.service.executions import find_execution
from luciole.service.requests import PLAIN, RequestChoices, RequestForm
from luciole.store.spi import Store

#: Transactions of one bulk enqueue that are under way at once.
_BATCHES_AT_ONCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Requests that only need the user's own transaction."""

    run: Callable[[Any, Sequence[EnqueueRequest]], Any]  #: returns answers, or an awaitable of them
    requests: tuple[EnqueueRequest, ...]


class Client:
    """What the jobs of an app speak to; belongs to the event loop that opened it.

    Args:
        store: an open store.
        clock: passes the pauses between two looks.
        close_store: what to do with the store at the end; None leaves it open for its owner.
    """

    def __init__(self, store: Store, clock: Clock, *, close_store: Callable[[], Awaitable[None]] | None = None) -> None:
        self.store = store
        self.clock = clock
        self.ids = IdSource(store)
        self._enqueuer = Enqueuer(store)
        self._ends = EndWatch(store, clock)
        self._looks = StateLooks(store)
        self._close_store = close_store
        self._jobs: dict[JobSpec, JobId] = {}
        self._plain: dict[JobSpec, RequestForm] = {}  #: of requests without options

    async def prepare(self, specs: Sequence[JobSpec]) -> None:
        """Store job versions ahead, and have ids at hand.

        Afterwards an enqueue inside a user's transaction needs no other connection; on SQLite that
        transaction may hold the only write lock.
        """
        fresh = [spec for spec in specs if spec not in self._jobs]
        for start in range(0, len(fresh), limits.REGISTER_BATCH_MAX):
            batch = fresh[start : start + limits.REGISTER_BATCH_MAX]
            self._jobs |= zip(batch, await self.store.intern_jobs(batch), strict=True)
        await self.ids.fill()

    async def enqueue(self, spec: JobSpec, payload: bytes, choices: RequestChoices = PLAIN) -> Enqueued:
        """Make one call durable, in one statement with all that are being enqueued right now."""
        form = self._plain.get(spec) if choices is PLAIN else None
        if form is None:
            form = await self._form(spec, choices)
        request_id = self.ids.one()
        if request_id is None:  # Hardly ever: the next ones are fetched while there are some.
            (request_id,) = await self.ids.take()
        return await self._enqueuer.enqueue(form.request(payload, request_id))

    async def enqueue_many(
        self, spec: JobSpec, payloads: Sequence[bytes], choices: RequestChoices = PLAIN
    ) -> tuple[Enqueued, ...]:
        """Make many calls durable, a thousand to a transaction; answers in order.

        Two thousands are under way at once (I10: no more), while the next is prepared.
        """
        form, ids = await self._form(spec, choices), await self.ids.take(len(payloads))
        size = limits.ENQUEUE_BATCH_MAX
        answers: list[Enqueued] = []
        under_way: deque[asyncio.Task[tuple[Enqueued, ...]]] = deque()
        try:
            for start in range(0, len(payloads), size):
                end = start + size
                requests = [*map(form.request, payloads[start:end], ids[start:end])]
                if len(under_way) == _BATCHES_AT_ONCE:
                    answers += await under_way.popleft()
                under_way.append(asyncio.ensure_future(enqueue_repeatably(self.store, requests)))
                await asyncio.sleep(0)  # It leaves before the next is prepared.
            while under_way:
                answers += await under_way.popleft()
        finally:
            # All have ended before a failure is told: nothing is written after it.
            await asyncio.gather(*under_way, return_exceptions=True)
        return tuple(answers)

    async def prepare_transaction(self, spec: JobSpec, payloads: Sequence[bytes], choices: RequestChoices) -> Prepared:
        """Return what brings calls into the user's transaction; the caller runs it in its own thread or loop.

        Raises:
            InvalidValue: `tx` is no connection of a known kind.
            Unsupported: the store can't join transactions of this kind.
        """
        run = self.store.enqueue_sql(transaction_kind(choices.tx))
        form, ids = await self._form(spec, choices), await self.ids.take(len(payloads))
        return Prepared(run=run, requests=tuple(map(form.request, payloads, ids)))

    async def ended(self, key: ExecutionKey, timeout_us: int | None = None) -> ExecutionView:
        """Wait until an execution has ended; return it.

        Raises:
            NotFound: there is none.
            ResultTimeout: it has not ended in time; it goes on.
        """
        waiting = asyncio.ensure_future(self._ends.ended(key))
        if timeout_us is not None and not await self._in_time(waiting, timeout_us):
            raise ResultTimeout(
                f"execution {key.text()}: it has not ended after {timeout_us / limits.SECOND_US:g} s; it goes on"
            )
        await waiting
        return await find_execution(self.store, key)

    async def state(self, key: ExecutionKey) -> ExecutionState:
        """Return the state of an execution.

        Raises:
            NotFound: there is none.
        """
        state = await self._looks.state(key)
        return (await find_execution(self.store, key)).state if state is None else state

    async def close(self) -> None:
        """Let what is queued become durable, then release the store."""
        await self._enqueuer.close()
        await self._ends.close()
        await self._looks.close()
        await self.ids.close()
        if self._close_store is not None:
            await self._close_store()

    async def _form(self, spec: JobSpec, choices: RequestChoices) -> RequestForm:
        """Return what all requests of a job with these options have in common."""
        job_id = self._jobs.get(spec)
        if job_id is None:
            (job_id,) = await self.store.intern_jobs([spec])
            self._jobs[spec] = job_id
        now_us = 0 if choices.deadline_after_us is None else await self.store.now_us()
        form = RequestForm(spec, job_id, shards=self.store.shards, choices=choices, now_us=now_us)
        if choices is PLAIN:
            self._plain[spec] = form
        return form

    async def _in_time(self, waiting: "asyncio.Future[ExecutionState]", timeout_us: int) -> bool:
        alarm = asyncio.ensure_future(self.clock.sleep(timeout_us))
        try:
            both: set[asyncio.Future[Any]] = {waiting, alarm}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return waiting.done()
        finally:
            alarm.cancel()
            if not waiting.done():
                waiting.cancel()
