"""The app: what users define their jobs and schedules on."""

import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypedDict, TypeVar, Unpack, overload

from luciole.client.client import Client
from luciole.client.handle import Handle
from luciole.client.home import Home, twin
from luciole.client.job import BoundCall, Job
from luciole.client.schedule import Schedule
from luciole.errors import AlreadyExists, InvalidTrigger, InvalidValue
from luciole.executor.registry import HandlerOptions, HandlerRegistry
from luciole.model.duration import Duration
from luciole.model.ids import parse_execution_key
from luciole.model.job import MisfireWord, OverlapWord
from luciole.model.trigger import Trigger
from luciole.runtime.clock import Clock, SystemClock
from luciole.service import schedules
from luciole.service.checking import read_name, refuse_unknown
from luciole.service.jobs import JobOptions, read_job_options
from luciole.service.schedules import Declaration, Declared
from luciole.store.spi import Store

if TYPE_CHECKING:
    from luciole.running import Running

P = ParamSpec("P")
R = TypeVar("R")

#: Where the store is when nobody says.
DSN_DEFAULT = "sqlite:///luciole.db"


class ScheduleOptions(TypedDict, total=False):
    """What `app.schedule(...)` takes beside name, call and trigger."""

    misfire: MisfireWord  #: default "fire_once"
    misfire_after: Duration  #: from which lateness a fire counts as missed; default 60 s
    catch_up: int  #: with misfire "catch_up": how many missed fires run at most
    overlap: OverlapWord  #: default "forbid"


class JobDecorator(Protocol):
    """What `app.job(...)` returns: it makes a job of a function and keeps its types."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Job[P, R, R]: ...


class App:
    """Jobs and schedules of one program, and the store that they live in.

    Args:
        dsn: "sqlite:///path.db", "postgresql://…" or "memory://"; default: `LUCIOLE_DSN`, else ./luciole.db. A path
            means SQLite.
        name: who owns the schedules, and the first part of handler names; keep it when code moves. Default: the
            name of the module that makes the app.
        namespace: apps in different namespaces never meet.
        store: an open store instead of a dsn; whoever opened it closes it.
        clock: passes the pauses of waiting; tests bring their own.
    """

    def __init__(
        self,
        dsn: str | Path | None = None,
        *,
        name: str | None = None,
        namespace: str = "default",
        store: Store | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = read_name(_module_name() if name is None else name, field="app name")
        self.namespace = read_name(namespace, field="namespace")
        self.registry = HandlerRegistry()
        self.dsn = str(dsn or os.environ.get("LUCIOLE_DSN") or DSN_DEFAULT)  #: where the store is
        self._store = store
        self._clock = clock or SystemClock()
        self._jobs: dict[str, Job[..., Any, Any]] = {}
        self._declarations: dict[str, Declaration] = {}
        self._home = Home(self._open_client)

    @property
    def jobs(self) -> tuple[Job[..., Any, Any], ...]:
        """The jobs defined so far."""
        return tuple(self._jobs.values())

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        """The schedules declared so far."""
        return tuple(self._declarations.values())

    @overload
    def job(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> Job[P, R, R]: ...
    @overload
    def job(self, **options: Unpack[JobOptions]) -> JobDecorator: ...
    def job(  # type: ignore[misc]  # mypy finds no match for the TypedDict of the third form
        self, function: Callable[..., Any] | None = None, /, **options: Unpack[JobOptions]
    ) -> Any:
        """Make a job of a function, async or plain: `@app.job` or `@app.job(retry=Retry(5), timeout="30s")`.

        Args:
            function: the handler.
            **options: `name`, `retry`, `timeout`, `at_most_once`, `losses_max`, `run_in`, `labels`, `priority`; see
                `JobOptions`.

        Raises:
            InvalidValue: an unknown option, a wrong value, or a function that can't be a handler.
            AlreadyExists: another function has this name.
        """

        def define(function: Callable[..., Any]) -> Job[..., Any, Any]:
            return self._define(function, options)

        if function is None:
            refuse_unknown("app.job", options, JobOptions.__annotations__)
            return define
        return define(function)

    def schedule(
        self,
        name: str,
        call: BoundCall[Any] | Job[[], Any, Any],
        trigger: Trigger,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Declare a schedule: `app.schedule("nightly", report.bind("eu"), cron("30 2 * * *", tz="Europe/Berlin"))`.

        It is stored when the app is declared: by `luciole up`, `luciole executor`, or `await app.declare()`. One
        that is declared no longer stays as it is; `await schedule.delete()` ends it.

        Args:
            name: unique in the namespace.
            call: the job with its arguments; a job without parameters as it is.
            trigger: `cron(...)`, `every(...)`, `calendar_every(...)` or `once(...)`.
            **options: `misfire`, `misfire_after`, `catch_up`, `overlap`; see `ScheduleOptions`.

        Raises:
            InvalidValue: a wrong name or policy.
            InvalidTrigger: not a trigger.
            AlreadyExists: the app declares the name twice.
        """
        declaration = _declaration(name, call, trigger, options)
        if name in self._declarations:
            raise AlreadyExists(f"schedule {name!r}: the app declares it twice; give one of them another name")
        self._declarations[name] = declaration
        return Schedule(self._home, self.namespace, name)

    def find_schedule(self, name: str) -> Schedule:
        """Return a schedule by its name, for its verbs; whether it exists shows when one is used."""
        return Schedule(self._home, self.namespace, name)

    def find_execution(self, execution_id: str) -> Handle[Any]:
        """Return the handle of an execution by its public id.

        Raises:
            InvalidValue: the text is no execution id.
        """
        return Handle(self._home, parse_execution_key(execution_id), None)

    async def put_schedule(
        self,
        name: str,
        call: BoundCall[Any] | Job[[], Any, Any],
        trigger: Trigger,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Store one schedule now, for those that come and go at run time; arguments as for `schedule`.

        One of this name is changed to it, recomputed from now.

        Raises:
            InvalidValue: a wrong name or policy.
            AlreadyExists: the name belongs to another app.
        """
        one = _declaration(name, call, trigger, options)
        await self._home.call(
            lambda client: schedules.declare(client.store, [one], namespace=self.namespace, owner=self.name)
        )
        return Schedule(self._home, self.namespace, name)

    async def declare(self) -> Declared:
        """Store the schedules that the code declares, and the versions of its jobs.

        New ones start from now; changed ones are recomputed from now; unchanged ones are not touched.

        Raises:
            AlreadyExists: a name belongs to another app; the message names both.
            StoreUnavailable: the store can't be reached.
        """

        async def run(client: Client) -> Declared:
            await client.prepare([job.spec for job in self.jobs])
            return await schedules.declare(client.store, self.declarations, namespace=self.namespace, owner=self.name)

        self.registry.check()
        return await self._home.call(run)

    def running(self, **settings: object) -> "AbstractAsyncContextManager[Running]":
        """Run the app inside this event loop, as `luciole up` does: `async with app.running(slots=10): ...`.

        For programs that are more than an app, such as a web server. Leaving the context lets it drain.

        Args:
            **settings: by their keys in docs/settings.md, such as `slots=10` or `listen="127.0.0.1:0"`.

        Raises:
            InvalidValue: an unknown setting, or a wrong value.
            LucioleError: on entering: it can't start.
        """
        from luciole.running import running  # noqa: PLC0415 - defining jobs needs no engine
        from luciole.settings import load_settings  # noqa: PLC0415 - same

        given = {"dsn": self.dsn, "namespace": self.namespace, **settings}
        return running(self, load_settings(**given), store=self._store)

    def use_store(self, store: Store) -> None:
        """Use an open store that lives on the running loop, from every loop and thread; its owner closes it."""
        self._home.bind(Client(store, self._clock))

    async def open(self) -> None:
        """Connect now instead of at the first use, and have all at hand that `tx=` needs.

        Raises:
            StoreUnavailable: the store can't be reached.
        """
        await self._home.call(lambda client: client.prepare([job.spec for job in self.jobs]))

    async def close(self) -> None:
        """Let what is under way become durable and disconnect; the next use connects anew."""
        await self._home.close()

    declare_sync = twin(declare)
    put_schedule_sync = twin(put_schedule)
    open_sync = twin(open)  # noqa: A003 - the method above
    close_sync = twin(close)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __enter__(self) -> Self:
        self.open_sync()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_sync()

    def __repr__(self) -> str:
        return f"<App {self.name!r}: {len(self._jobs)} jobs, {len(self._declarations)} schedules>"

    def _define(self, function: Callable[..., Any], options: JobOptions) -> Job[..., Any, Any]:
        if isinstance(function, Job):
            raise InvalidValue(f"app.job: {function.name} is a job already")
        handler = options.get("name") or f"{self.name}.{getattr(function, '__name__', 'handler')}"
        spec = read_job_options(handler, options, namespace=self.namespace)
        registered = self.registry.add(handler, function, HandlerOptions(run_in=spec.run_in))
        job: Job[..., Any, Any] = Job(function, self._home, registered.codec, spec)
        self._jobs[handler] = job
        return job

    async def _open_client(self) -> Client:
        if self._store is not None:
            return Client(self._store, self._clock)
        from luciole.wiring import open_store  # noqa: PLC0415 - defining jobs needs no store technology

        store = await open_store(self.dsn)
        return Client(store, self._clock, close_store=store.close)


def _declaration(
    name: str, call: BoundCall[Any] | Job[[], Any, Any], trigger: Trigger, options: ScheduleOptions
) -> Declaration:
    read_name(name, field="schedule name")
    refuse_unknown(f"schedule {name!r}", options, ScheduleOptions.__annotations__)
    bound = call.bind() if isinstance(call, Job) else call
    if not isinstance(bound, BoundCall):
        raise InvalidValue(f"schedule {name!r}: a {type(call).__name__} is no call; pass a job, or job.bind(arguments)")
    if not hasattr(trigger, "next_us"):
        raise InvalidTrigger(
            f"schedule {name!r}: a {type(trigger).__name__} is no trigger; use cron(), every(), "
            "calendar_every() or once()"
        )
    return Declaration(name=name, job=bound.spec, trigger=trigger, policy=schedules.read_policy(**options))


def _module_name() -> str:
    """Return the name of the module that makes an app; for a program that is run, the name of its file."""
    frame = sys._getframe(2)  # noqa: SLF001 - the documented way to the caller's module
    name = str(frame.f_globals.get("__name__", "app"))
    if name != "__main__":
        return name
    spec = frame.f_globals.get("__spec__")  # Of a module that is run by `python -m`.
    return Path(str(frame.f_globals.get("__file__", "app"))).stem if spec is None else str(spec.name)
