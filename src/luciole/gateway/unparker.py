"""The unparker: executions that nobody knew go on when somebody comes who does."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from luciole import limits
from luciole.gateway.dispatcher import UNKNOWN_HANDLER
from luciole.model.execution import ExecutionState, ExecutionView
from luciole.runtime.telemetry import Telemetry
from luciole.store.reads import ExecutionFilter
from luciole.store.spi import Store

_log = logging.getLogger("luciole.unparker")


@dataclass(slots=True, kw_only=True)
class Unparker:
    """Looks through what is parked once for each handler that is new here, and makes ready what waited for it."""

    store: Store
    telemetry: Telemetry
    wake: Callable[[], None]  #: pokes the loop of `tick`
    idle_pause_us: int = limits.REST_US
    _new: set[tuple[str, str]] = field(default_factory=set)  #: namespace and handler
    _page: str | None = None

    def welcome(self, namespace: str, handlers: Iterable[str]) -> None:
        """Note handlers that no executor here knew before."""
        self._new.update((namespace, handler) for handler in handlers)
        self._page = None
        self.wake()

    async def tick(self) -> int:
        """Look through one page; return the pause."""
        if not self._new:
            return self.idle_pause_us
        query = ExecutionFilter(states=frozenset({ExecutionState.PARKED}), limit=limits.PAGE_MAX, page=self._page)
        page = await self.telemetry.timed("list_executions", self.store.list_executions(query))
        keys = [view.key for view in page.rows if self._waits(view)]
        if keys:
            count = await self.telemetry.timed("unpark", self.store.unpark(keys))
            self.telemetry.count("unparked", count)
            _log.info("%d executions go on: somebody knows their handlers now", count)
        self._page = page.next
        if page.next is None:
            self._new.clear()
        return 0 if self._new else self.idle_pause_us

    def _waits(self, view: ExecutionView) -> bool:
        known = (view.namespace, view.handler) in self._new
        # What was parked for another reason needs a person.
        return known and (view.error or "").startswith(UNKNOWN_HANDLER)
