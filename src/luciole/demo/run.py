"""The course of the demo: start, fire, kill, start another, wait for the end, audit."""

import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from luciole.demo.audit import Audit, audit_store
from luciole.demo.plan import declare_schedules
from luciole.demo.processes import DemoProcess, start_process, wait_for_address
from luciole.demo.shop import app
from luciole.limits import MS_US, SECOND_US
from luciole.model.instant import Instant, from_datetime, to_datetime
from luciole.runtime.clock import Clock
from luciole.store.spi import Store
from luciole.wiring import open_store

#: What the demo tells while it runs: a line that stays, or one that the next replaces.
Tell = Callable[[str], None]

_SHOP = "luciole.demo.shop:app"


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How long the parts of the demo take."""

    length: timedelta = timedelta(seconds=24)  #: of the time in which schedules fire
    kill_after: timedelta = timedelta(seconds=10.4)  #: when many runs that started on the second are half-way
    settle: timedelta = timedelta(seconds=20)  #: what open work gets at the end


class Demo:
    """One run of the demo in a folder of its own.

    Args:
        folder: for the store, logs and the node's address.
        clock: passes the pauses.
        say: tells what happened.
        show: tells how it stands.
        course: how long the parts take.
    """

    def __init__(self, folder: Path, *, clock: Clock, say: Tell, show: Tell, course: Course | None = None) -> None:
        self._folder = folder
        self._dsn = f"sqlite:///{folder / 'demo.db'}"
        self._clock = clock
        self._say = say
        self._show = show
        self._course = course or Course()
        self._processes: list[DemoProcess] = []

    async def run(self) -> Audit:
        """Run it all; return what the audit found. Its processes end with it, however it ends."""
        async with self._store() as store, self._ending():
            node_file = self._folder / "node.address"
            node = await self._start("node", "node", "--listen", "127.0.0.1:0", "--address-file", str(node_file))
            address = await wait_for_address(node_file, node, self._clock)
            self._say(f"node {node.pid} listens on {address}")
            executor = await self._start_executor("executor", address)
            start_us, end_us = await self._declare(store)
            await self._watch(store, until_us=start_us + self._course.kill_after // _MICROSECOND)
            await executor.kill()
            self._processes.remove(executor)
            self._say(f"executor {executor.pid} killed with SIGKILL, in the middle of its work")
            await self._start_executor("second executor", address)
            await self._watch(store, until_us=end_us + SECOND_US)
            await self._settle(store)
            self._say("audit: reading the store, computing every fire time anew")
            return await audit_store(store, from_us=start_us, until_us=end_us)

    async def _declare(self, store: Store) -> tuple[Instant, Instant]:
        """Store the schedules; return from when and until when they fire."""
        # At an even second, on which the mails fire: so the kill finds them half-way.
        start_us = ((await store.now_us() + SECOND_US) // (2 * SECOND_US) + 1) * 2 * SECOND_US
        start = to_datetime(start_us)
        declare_schedules(app, start=start, length=self._course.length)
        app.use_store(store)
        declared = await app.declare()
        self._say(f"{declared.created} schedules: every few seconds, cron in ten zones, once, flaky, slow")
        return start_us, from_datetime(start + self._course.length)

    async def _start(self, name: str, *arguments: str) -> DemoProcess:
        process = await start_process(name, arguments, folder=self._folder, dsn=self._dsn)
        self._processes.append(process)
        return process

    async def _start_executor(self, name: str, address: str) -> DemoProcess:
        executor = await self._start(name, "executor", _SHOP, "--node", address, "--slots", "200")
        self._say(f"{name} {executor.pid} runs {_SHOP}")
        return executor

    async def _watch(self, store: Store, *, until_us: Instant) -> None:
        while (now_us := await store.now_us()) < until_us:
            for process in self._processes:
                process.check()
            left_s = (until_us - now_us) // SECOND_US
            open_entries = (await store.backlog()).open_entries
            self._show(f"{await _fired(store):,} fired, {open_entries:,} open, {left_s} s to go")
            await self._clock.sleep(min(500 * MS_US, until_us - now_us))

    async def _settle(self, store: Store) -> None:
        """Wait until nothing is due or open; what is still open after a while is for the audit to tell."""
        end_us = self._clock.monotonic_us() + self._course.settle // _MICROSECOND
        while self._clock.monotonic_us() < end_us:
            backlog = await store.backlog()
            if not backlog.open_entries and not backlog.due_schedules:
                return
            self._show(f"{backlog.open_entries} open, waiting for their end")
            await self._clock.sleep(200 * MS_US)

    @asynccontextmanager
    async def _store(self) -> AsyncIterator[Store]:
        store = await open_store(self._dsn)
        try:
            yield store
        finally:
            await store.close()

    @asynccontextmanager
    async def _ending(self) -> AsyncIterator[None]:
        try:
            yield
        except BaseException:
            for process in self._processes:
                await process.kill()
            raise
        for process in reversed(self._processes):  # The executor first, so that it can tell its node.
            await process.stop()


async def _fired(store: Store) -> int:
    """Return what the node says that it has fired, a second ago or so: good enough to watch, not to audit."""
    cluster = await store.cluster(node_ttl_us=10 * SECOND_US)
    counts = [json.loads(node.telemetry).get("counters", {}).get("fired", 0) for node in cluster.nodes]
    return int(sum(counts))


_MICROSECOND = timedelta(microseconds=1)


async def run_demo(*, clock: Clock, say: Tell, show: Tell) -> Audit:
    """Run the demo in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="luciole-demo-") as folder:
        return await Demo(Path(folder), clock=clock, say=say, show=show).run()
