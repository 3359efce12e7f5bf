"""One of two stores that are compared: what it answers, without what may differ between two stores that agree."""

import dataclasses
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, TypeVar

from luciole import limits
from luciole.errors import LucioleError, StoreUnavailable
from luciole.model.ids import ExecutionKey, NodeId
from luciole.model.plan import DueBatch
from luciole.model.schedule import Cursor, ScheduleState
from luciole.store.reads import ExecutionFilter, ScheduleFilter
from luciole.store.spi import Store
from luciole.testing.contract.harness import StoreHarness

#: A verb with its arguments, for a client of a side: `call(store, 0 or 1)`.
Call = Callable[[Store, int], Awaitable[Any]]

#: Longer than any case lasts.
FAR_US = 3_660 * limits.DAY_US
NODE_TTL_US = 30 * limits.SECOND_US

AnswerT = TypeVar("AnswerT")

TRIES_MAX = 3

#: Request keys that a sequence of verbs uses.
REQUEST_KEYS = ("k0", "k1")


@dataclasses.dataclass(slots=True, kw_only=True)
class Side:
    """One store with the names of the ids that it gave itself."""

    harness: StoreHarness
    number: int  #: 0: left, 1: right
    jobs: dict[int, str] = dataclasses.field(default_factory=dict)  #: by the id that this store gave
    triggers: dict[int, str] = dataclasses.field(default_factory=dict)

    def client(self, number: int) -> Store:
        """Return one of the two clients."""
        return self.harness.clients[number]

    async def ask(self, client: int, call: Call) -> Any:  # noqa: ANN401 - any verb's answer
        """Return a verb's answer to one client, or the class of the error that it raised."""
        try:
            answer = await patiently(lambda: call(self.client(client), self.number))
        except LucioleError as error:
            return type(error)
        if isinstance(answer, DueBatch):
            await self.learn(answer.cursors)
        return answer

    async def learn(self, cursors: tuple[Cursor, ...]) -> None:
        """Get to know the triggers of cursors."""
        unknown = {cursor.trigger_id for cursor in cursors} - self.triggers.keys()
        if unknown:
            self.triggers |= await self.client(0).load_triggers(sorted(unknown))

    def plain(self, value: Any) -> Any:  # noqa: ANN401 - it takes every kind of answer apart
        """Return a value as plain tuples; ids of a store's own become names, revisions are left out."""
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._fields({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
        if isinstance(value, ExecutionKey):
            return tuple(value)
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            return self._fields(value._asdict())
        if isinstance(value, tuple | list):
            return tuple(map(self.plain, value))
        if isinstance(value, frozenset | set):
            return tuple(sorted(map(self.plain, value)))
        return (type(value).__name__, value.name) if isinstance(value, Enum) else value

    def _fields(self, fields: dict[str, Any]) -> Any:  # noqa: ANN401 - pairs of a name and a plain value
        known = {"job_id": self.jobs, "trigger_id": self.triggers}
        return tuple(
            (name, known[name].get(value, value) if name in known else self.plain(value))
            for name, value in fields.items()
            if name != "revision"
        )

    async def picture(self) -> dict[str, Any]:
        """Return all that can be seen of this store, plain."""
        return await patiently(self._picture)

    async def _picture(self) -> dict[str, Any]:
        store = self.client(0)
        shards = range(store.shards)
        now_us = await store.now_us()
        due = await store.due_cursors(shards, now_us + FAR_US, limit=limits.DUE_MAX)
        await self.learn(due.cursors)
        schedules = (await store.list_schedules(ScheduleFilter(states=frozenset(ScheduleState)))).rows
        executions = (await store.list_executions(ExecutionFilter())).rows
        found = {
            "now": now_us,
            "cluster": await store.cluster(node_ttl_us=NODE_TTL_US),
            "due": sorted(due.cursors, key=lambda cursor: cursor.schedule_id),
            "schedules": schedules,
            "executions": [await store.get_execution(view.key) for view in executions],
            "ready": await store.ready_entries(shards, now_us, limit=limits.HELD_MAX),
            "later": await store.ready_entries(shards, now_us + FAR_US, limit=limits.HELD_MAX),
            "open": await store.open_entries(shards, after=None, limit=limits.HELD_MAX),
            "ledgers": [await store.list_ledger(view.schedule_id, view.shard, limit=100) for view in schedules],
            "jobs": await store.list_jobs(None, limit=100),
            "keys": [await store.find_request("default", key) for key in REQUEST_KEYS],
            "backlog": await store.backlog(),
        }
        return {name: self.plain(value) for name, value in found.items()}


async def patiently(ask: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
    """Ask again where nothing was written: a machine so busy that a database gave us up is no finding."""
    for _ in range(TRIES_MAX - 1):
        try:
            return await ask()
        except StoreUnavailable:
            continue
    return await ask()


def nodes() -> tuple[NodeId, NodeId]:
    """Return the two nodes that race."""
    return "a" * 16, "b" * 16
