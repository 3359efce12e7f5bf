"""Schedules as users hold them."""

from datetime import datetime

from luciole.client.client import Client
from luciole.client.handle import Handle
from luciole.client.home import Home, twin
from luciole.model.instant import to_datetime
from luciole.model.schedule import ScheduleView
from luciole.model.trigger import Fire, trigger_from_spec
from luciole.service import schedules


class Schedule:
    """One schedule by its name; the verbs act on what is stored.

    Attributes:
        name: unique in the app's namespace.
    """

    __slots__ = ("_home", "_namespace", "name")

    def __init__(self, home: Home, namespace: str, name: str) -> None:
        self._home = home
        self._namespace = namespace
        self.name = name

    async def view(self) -> ScheduleView:
        """Return all that is stored of it.

        Raises:
            NotFound: there is none of this name.
        """
        return await self._home.call(lambda client: schedules.find_schedule(client.store, self._namespace, self.name))

    async def next(self) -> datetime | None:
        """Return its next fire time in UTC; None when it is paused or has none.

        Raises:
            NotFound: there is none of this name.
        """
        view = await self.view()
        return None if view.fire_us is None or view.due_us is None else to_datetime(view.fire_us)

    async def pause(self, reason: str = "") -> None:
        """Stop it until it is resumed; fires that are due and not started stay. Safe to repeat.

        Raises:
            NotFound: there is none of this name.
            IllegalState: it is parked or exhausted.
        """
        await self._home.call(lambda client: schedules.pause(client.store, self._namespace, self.name, reason=reason))

    async def resume(self) -> None:
        """Let it fire again from now on; the fire times of the pause go to the ledger. Safe to repeat.

        Raises:
            NotFound: there is none of this name.
            IllegalState: its trigger has no further fire time.
        """
        await self._home.call(lambda client: schedules.resume(client.store, self._namespace, self.name))

    async def delete(self) -> None:
        """Delete it: it never fires again; its executions stay until retention prunes them.

        Raises:
            NotFound: there is none of this name.
        """
        await self._home.call(lambda client: schedules.delete(client.store, self._namespace, self.name))

    async def trigger(self) -> Handle[object]:
        """Run its job now, beside its own fire times.

        Raises:
            NotFound: there is none of this name.
            IllegalState: an execution of it is open, and its overlap policy forbids another.
        """

        async def run(client: Client) -> Handle[object]:
            (request_id,) = await client.ids.take()
            done = await schedules.trigger_by_hand(client.store, self._namespace, self.name, request_id=request_id)
            return Handle(self._home, done.key, None, created=done.created)

        return await self._home.call(run)

    async def explain(self, n: int = 5) -> list[Fire]:
        """Return its next fires with the reasons for each (gap, fold, jitter).

        Raises:
            NotFound: there is none of this name.
        """
        view = await self.view()
        now_us = await self._home.call(lambda client: client.store.now_us())
        trigger = trigger_from_spec(view.spec.trigger)
        return trigger.explain(to_datetime(now_us), n, schedule_id=view.schedule_id)

    view_sync = twin(view)
    next_sync = twin(next)  # noqa: A003 - the method above
    pause_sync = twin(pause)
    resume_sync = twin(resume)
    delete_sync = twin(delete)
    trigger_sync = twin(trigger)
    explain_sync = twin(explain)

    def __repr__(self) -> str:
        return f"<schedule {self.name!r}>"
