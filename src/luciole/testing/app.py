"""An app in a test: the real node and executor on the memory store, in a time that the test passes."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from luciole.app import App
from luciole.client.schedule import Schedule
from luciole.limits import DAY_US, MS_US
from luciole.model.duration import Duration, duration_us
from luciole.model.execution import ExecutionView
from luciole.model.instant import from_datetime, to_datetime
from luciole.node import Surroundings
from luciole.running import Running, running
from luciole.runtime.clock import Clock, SystemClock
from luciole.service.schedules import find_schedule
from luciole.settings import Settings
from luciole.store.memory import MemoryState, MemoryStore
from luciole.store.reads import ExecutionFilter
from luciole.store.spi import Store
from luciole.testing.clock import START_US, FakeClock

_LOOK_US = MS_US


class _Unhurried(Settings):
    """Settings without bounds: nobody dies in this time, so an idle node looks about once a day."""

    def __post_init__(self) -> None:
        """Check nothing."""


def _unhurried(namespace: str) -> Settings:
    return _Unhurried(
        namespace=namespace,
        max_idle_wakeup_us=1 * DAY_US,
        stuck_after_us=30 * DAY_US,
        lease_ttl_us=30 * DAY_US,
        lease_renew_pause_us=5 * DAY_US,
        heartbeat_pause_us=5 * DAY_US,
        node_ttl_us=30 * DAY_US,
        session_ttl_us=30 * DAY_US,
        retention_us=36_500 * DAY_US,
    )


class AppTest:
    """Runs an app inside a test, with a clock that stands still until the test advances it.

    ```python
    async with AppTest(app) as test:
        await charge.options(delay="1h").enqueue(42)
        await test.advance("1h")
        (execution,) = await test.executions()
        assert execution.state is ExecutionState.SUCCEEDED
    ```

    Nothing is mocked: it is the node, the gateway and the executor that run in production. Handlers run in real time
    and take none of the virtual one.

    Args:
        app: the app; its own store is not touched.
        now: where the clock stands at first; default 2026-01-01 00:00 UTC.
        store: makes the store that it runs on, from the clock; default the memory store.
    """

    def __init__(self, app: App, *, now: datetime | None = None, store: Callable[[Clock], Store] | None = None) -> None:
        self.app = app
        self.clock = FakeClock(START_US if now is None else from_datetime(now, field="now"))
        self.store: Store = store(self.clock) if store else MemoryStore(MemoryState(), self.clock)
        self._real = SystemClock()
        self._context = running(
            app,
            _unhurried(app.namespace),
            store=self.store,
            surroundings=Surroundings(clock=self.clock),
            own_loop=False,
        )
        self._run: Running | None = None

    @property
    def now(self) -> datetime:
        """The virtual time, UTC."""
        return to_datetime(self.clock.now_us())

    @property
    def running(self) -> Running:
        """Node and executor, while the test runs."""
        assert self._run is not None  # Only inside of `async with`.
        return self._run

    async def advance(self, duration: Duration) -> None:
        """Let time pass, with all that is due in it; returns when all of it has come to rest.

        Args:
            duration: such as "1h", a number of seconds, or a timedelta.
        """
        end_us = self.clock.monotonic_us() + duration_us(duration)
        await self.settle()
        while (left_us := end_us - self.clock.monotonic_us()) > 0:
            alarm_us = self.clock.next_alarm_us()
            await self.clock.advance(left_us if alarm_us is None else min(left_us, alarm_us))
            await self.settle()

    async def settle(self) -> None:
        """Wait until everything that is due now has ended, without time passing."""
        await self.clock.settle()
        while self._run is not None and self._run.executor.gauges()["busy"]:
            await self._real.sleep(_LOOK_US)
            await self.clock.settle()

    async def executions(self, *, schedule: str | Schedule | None = None) -> list[ExecutionView]:
        """Return what ran or waits, attempts included; of one schedule, the newest first."""
        query = ExecutionFilter()
        if schedule is not None:
            name = schedule if isinstance(schedule, str) else schedule.name
            view = await find_schedule(self.store, self.app.namespace, name)
            query = ExecutionFilter(schedule_id=view.schedule_id)
        rows = (await self.store.list_executions(query)).rows
        return [await self.store.get_execution(row.key) or row for row in rows]

    async def __aenter__(self) -> Self:
        await self.store.open()
        self._run = await self._context.__aenter__()
        await self.settle()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:  # noqa: ANN401 - as the context inside
        ending = asyncio.ensure_future(self._context.__aexit__(kind, error, trace))
        try:
            while not ending.done():  # Draining takes time, which nobody else passes any more.
                await self.clock.advance(self.clock.next_alarm_us() or 0)
                await self._real.sleep(_LOOK_US)
            return await ending
        finally:
            self._run = None
            await self.store.close()
