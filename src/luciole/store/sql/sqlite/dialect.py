"""SQLite as a dialect: one file, one writer for each process, readers beside it."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, ParamSpec, TypedDict, TypeVar, cast

from luciole import limits
from luciole.errors import Unsupported
from luciole.model.ids import Shard
from luciole.runtime.chance import Chance
from luciole.runtime.clock import Clock
from luciole.runtime.steps import Steps
from luciole.store.bounds import check_deadline
from luciole.store.capabilities import Capabilities
from luciole.store.reads import Worry
from luciole.store.sql.dialect import Lane
from luciole.store.sql.hints import Hints
from luciole.store.sql.migrate import Migration, load_migrations
from luciole.store.sql.queries import load
from luciole.store.sql.script import Query, Row, Script, run
from luciole.store.sql.sqlite import inside
from luciole.store.sql.sqlite.binding import Prepared, Table, asker
from luciole.store.sql.sqlite.connecting import Durability, begin_writing, connect
from luciole.store.sql.sqlite.reader import Reader
from luciole.store.sql.sqlite.writer import Writer

ParamsT = ParamSpec("ParamsT")
ResultT = TypeVar("ResultT")

_PACKAGE = "luciole.store.sql.sqlite"


class _Waiting(TypedDict):
    """What waiting for other processes takes."""

    chance: Chance
    monotonic_us: Callable[[], int]


@cache
def _prepare() -> tuple[tuple[Migration, ...], dict[str, Prepared]]:
    """Return the migrations, and every statement by name; the same for all files."""
    migrations = load_migrations(_PACKAGE)
    statements = load(_PACKAGE) | {step.name: step.statement for step in migrations}
    return migrations, {name: Prepared(statement) for name, statement in statements.items()}


class SqliteDialect:
    """One SQLite file."""

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock,
        chance: Chance,
        durability: Durability = Durability.FULL,
        steps: Steps | None = None,
    ) -> None:
        """Make a dialect; `connect` it before use.

        Args:
            path: the file; it is made when it is missing.
            clock: the store's clock.
            chance: returns a random number in [0, 1); it spreads the tries of processes that want to write at once.
            durability: what survives a power cut.
            steps: is told what commits are made of; None: nobody measures.

        Raises:
            Unsupported: `:memory:` was asked for.
        """
        if str(path) in {"", ":memory:"} or str(path).startswith("file:"):
            raise Unsupported(
                f"sqlite: {str(path)!r} is no file, and nothing in memory is durable; give a path such as "
                "'luciole.db', or use the memory store in tests"
            )
        self._path = Path(path).absolute()
        self._clock = clock
        self._hints = Hints(clock)
        self._seen_version: int | None = None
        self._looking: asyncio.Task[None] | None = None
        self._migrations, self._prepared = _prepare()
        waiting: _Waiting = {"chance": chance, "monotonic_us": clock.monotonic_us}
        open_file = partial(connect, self._path, durability, **waiting)
        self._writer = Writer(
            partial(open_file, has_table=True),
            path=str(self._path),
            begin=partial(begin_writing, **waiting),
            monotonic_us=clock.monotonic_us,
            steps=steps,
        )
        # A long page for a person never stands before what planning and delivering read.
        self._pages = Reader(open_file, path=str(self._path))
        self._reader = Reader(open_file, path=str(self._path))

    @property
    def capabilities(self) -> Capabilities:
        """What a store on SQLite can do."""
        return Capabilities(
            name="sqlite",
            durable=True,
            spans_shards=True,
            shared=True,
            remote_hints=True,
            transactional_enqueue=inside.KINDS,
            plan_connections=2,
            plan_batch_max=limits.PLAN_BATCH_MAX,
        )

    @property
    def migrates_at_open(self) -> bool:
        """A file has one owner, so it migrates by itself."""
        return True

    @property
    def migrations(self) -> tuple[Migration, ...]:
        """The numbered files."""
        return self._migrations

    async def connect(self) -> None:
        """Open the file; safe to repeat."""
        await self._writer.open()
        self._changed_elsewhere()
        await self._reader.open()
        await self._pages.open()

    async def close(self) -> None:
        """Let what is queued finish, then close; safe to repeat."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        await self._pages.close()
        await self._reader.close()
        await self._writer.close()

    async def write(
        self, lane: Lane, script: Callable[ParamsT, Script[ResultT]], *args: ParamsT.args, **kwargs: ParamsT.kwargs
    ) -> ResultT:
        """Run a script in the next group commit."""

        def operation(connection: sqlite3.Connection) -> ResultT:
            ask = asker(connection, self._prepared, self._clock.now_us, table=Table())
            return run(script(*args, **kwargs), self._in_time(ask))

        return cast("ResultT", await self._writer.run(operation, is_large=lane is Lane.PLAN))

    async def read(
        self, lane: Lane, script: Callable[ParamsT, Script[ResultT]], *args: ParamsT.args, **kwargs: ParamsT.kwargs
    ) -> ResultT:
        """Run a script on one snapshot, beside the writer."""
        reader = self._pages if lane is Lane.READ else self._reader

        def operation(connection: sqlite3.Connection) -> ResultT:
            return run(script(*args, **kwargs), asker(connection, self._prepared, self._clock.now_us))

        return cast("ResultT", await reader.run(operation))

    def hint(self, shards: frozenset[Shard]) -> None:
        """Wake who waits in this process; other processes see the file change."""
        self._hints.tell(shards)

    def gauges(self) -> dict[str, int]:
        """Return what is queued for the writer, and how often another process held the file's lock for too long."""
        return {"waiting.writer": self._writer.waiting, "conflicts": self._writer.conflicts}

    async def wait_hint(self, timeout_us: int) -> frozenset[Shard]:
        """Wait for a hint of this process, or for a commit of another one."""
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look(), name="luciole-sqlite-look")
        return await self._hints.wait(timeout_us) or frozenset()

    def inside(self, kind: str) -> Any:  # noqa: ANN401 - each kind of connection has a runner of its own type
        """Return what runs a script in a user's own transaction on this file."""
        return inside.runner(kind, self._path, self._prepared, self._clock.now_us)

    async def worries(self) -> tuple[Worry, ...]:
        """Nothing: a file has no life of its own."""
        return ()

    def _in_time(self, ask: Callable[[Query], Sequence[Row]]) -> Callable[[Query], Sequence[Row]]:
        """Ask nothing more once a deadline that the script told is over, however long it stood in line."""
        until_us: int | None = None

        def ask_in_time(query: Query) -> Sequence[Row]:
            nonlocal until_us
            until_us = until_us if query.until_us is None else query.until_us
            if until_us is not None:
                check_deadline(until_us, self._clock.monotonic_us())
            return ask(query)

        return ask_in_time

    async def _look(self) -> None:
        """Wake those who wait here when another process has committed; ends when nobody waits any more.

        One task for all of them that only sleeps: a bounded wait for each look would cost three times as much.
        """
        try:
            while self._hints.waited_for():
                await self._clock.sleep(limits.SQLITE_POLL_US)
                # Who comes back to wait looks again: a change that is seen while nobody waits would be forgotten.
                if self._hints.waited_for() and self._changed_elsewhere():
                    self._hints.wake()
        finally:
            self._looking = None

    def _changed_elsewhere(self) -> bool:
        """Whether another connection has committed since the last look; cheap, and reads no page."""
        connection = self._writer.idle_connection()
        if connection is None:
            return False
        before, self._seen_version = self._seen_version, connection.execute("PRAGMA data_version").fetchone()[0]
        return before != self._seen_version
