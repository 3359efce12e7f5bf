"""PostgreSQL as a dialect: connections apart by purpose, one transaction for a script, hints by NOTIFY."""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, ParamSpec, TypeVar

from luciole import limits
from luciole.model.ids import Shard
from luciole.runtime.clock import Clock
from luciole.runtime.steps import Steps
from luciole.runtime.unbroken import Unbroken
from luciole.store.capabilities import Capabilities
from luciole.store.reads import Worry
from luciole.store.sql.dialect import Lane
from luciole.store.sql.migrate import Migration, load_migrations
from luciole.store.sql.postgres import inside
from luciole.store.sql.postgres.binding import NOW_US, SHIFTED_NOW_US, Prepared
from luciole.store.sql.postgres.failures import is_conflict, is_held, meaning
from luciole.store.sql.postgres.link import APPLICATION, HINTING, PINNED, Link, Place, connect
from luciole.store.sql.postgres.listen import Listener
from luciole.store.sql.postgres.pauses import pause_us
from luciole.store.sql.postgres.pool import Pool
from luciole.store.sql.postgres.stranded import end_stranded
from luciole.store.sql.postgres.transaction import READ, WRITE, Transaction
from luciole.store.sql.postgres.worries import look
from luciole.store.sql.queries import Statement, load
from luciole.store.sql.script import Script

ParamsT = ParamSpec("ParamsT")
ResultT = TypeVar("ResultT")

_CREATE_TABLE = re.compile(r"CREATE TABLE (\w+)")

_PACKAGE = "luciole.store.sql.postgres"

_log = logging.getLogger("luciole.store")

#: How many connections each purpose has, and after how long one that says nothing is given up.
LANES = {
    Lane.LEASE: (1, limits.POSTGRES_LEASE_COMMAND_US),
    Lane.PLAN: (limits.POSTGRES_PLAN_CONNECTIONS_MAX, limits.POSTGRES_HOT_COMMAND_US),
    Lane.SETTLE: (limits.POSTGRES_SETTLE_CONNECTIONS_MAX, limits.POSTGRES_HOT_COMMAND_US),
    Lane.ENQUEUE: (limits.POSTGRES_ENQUEUE_CONNECTIONS_MAX, limits.POSTGRES_HOT_COMMAND_US),
    Lane.CATALOG: (limits.POSTGRES_CATALOG_CONNECTIONS_MAX, limits.POSTGRES_COMMAND_US),
    Lane.READ: (limits.POSTGRES_READ_CONNECTIONS_MAX, limits.POSTGRES_COMMAND_US),
}

#: Purposes whose statements find all that they touch by key.
_HOT = frozenset({Lane.LEASE, Lane.PLAN, Lane.SETTLE, Lane.ENQUEUE})


@cache
def _load() -> tuple[tuple[Migration, ...], Mapping[str, Statement]]:
    """Return the migrations, and every statement by name; the same for all databases."""
    migrations = load_migrations(_PACKAGE)
    return migrations, load(_PACKAGE) | {step.name: step.statement for step in migrations}


@cache
def _prepare(now_us: str) -> Mapping[str, Prepared]:
    return {name: Prepared(statement, now_us=now_us) for name, statement in _load()[1].items()}


class PostgresDialect:
    """One schema in one database."""

    def __init__(
        self,
        dsn: str,
        *,
        clock: Clock,
        chance: Callable[[], float],
        schema: str = "luciole",
        clock_can_shift: bool = False,
        before_commit: Callable[[], Awaitable[None]] | None = None,
        steps: Steps | None = None,
        connections_max: int | None = None,
    ) -> None:
        """Make a dialect; `connect` it before use.

        Args:
            dsn: `postgresql://user:password@host:port/database`.
            clock: for pauses and waits; the store's clock is the server's.
            chance: returns a random number in [0, 1); it spreads the tries of transactions that lost a race.
            schema: where our tables are.
            clock_can_shift: for tests: the store's clock is ahead by what `meta` says under `clock_shift_us`, or
                stands still at `clock_us`.
            before_commit: for tests: awaited when a transaction that writes has done its work, so that two can be
                interleaved by hand.
            steps: is told what calls are made of; None: nobody measures.
            connections_max: for benches: fewer connections for each purpose than its calls may take at once.

        Raises:
            InvalidValue: the DSN or the schema can't be read.
            MissingExtra: asyncpg is not installed.
        """
        self._place = Place(dsn, schema)
        self._clock = clock
        self._chance = chance
        self._before_commit = before_commit
        self._now_us = SHIFTED_NOW_US if clock_can_shift else NOW_US
        self._prepared = _prepare(self._now_us)
        self._conflicts = 0
        self._steps = steps
        self._pools = {
            lane: Pool(
                partial(self._open, lane), min(most, connections_max or most), patience_us=patience_us, steps=steps
            )
            for lane, (most, patience_us) in LANES.items()
        }
        self._listener = Listener(partial(connect, self._place, HINTING), clock=clock, chance=chance, channel=schema)
        self._unbroken = Unbroken()  # Half a command would poison its connection.

    @property
    def capabilities(self) -> Capabilities:
        """What a store on PostgreSQL can do."""
        return Capabilities(
            name="postgres",
            durable=True,
            spans_shards=True,
            shared=True,
            remote_hints=True,
            transactional_enqueue=inside.KINDS,
            plan_connections=limits.POSTGRES_PLAN_CONNECTIONS_MAX,
            plan_batch_max=limits.PLAN_BATCH_MAX,
        )

    @property
    def migrates_at_open(self) -> bool:
        """No: a shared database is changed by `luciole migrate` alone, when somebody says so."""
        return False

    @property
    def migrations(self) -> tuple[Migration, ...]:
        """The numbered files."""
        return _load()[0]

    async def connect(self) -> None:
        """Open a first connection, so that a wrong DSN is told at once; safe to repeat.

        Raises:
            InvalidValue: the server will never let us in like this.
            StoreUnavailable: it can't be reached at the moment.
            Unsupported: it is too old.
        """
        for pool in self._pools.values():
            pool.reopen()
        pool = self._pools[Lane.LEASE]
        pool.give_back(await pool.borrow())

    async def close(self) -> None:
        """Let what is under way finish, then close every connection; safe to repeat."""
        await self._unbroken.wait()
        await self._listener.close()
        for pool in self._pools.values():
            await pool.close()

    async def write(
        self, lane: Lane, script: Callable[ParamsT, Script[ResultT]], *args: ParamsT.args, **kwargs: ParamsT.kwargs
    ) -> ResultT:
        """Run a script as one transaction; return its result once it is durable (I9)."""
        pool, tries = self._pools[lane], 0
        while True:
            transaction: Transaction[ResultT] = Transaction(WRITE, self._clock.monotonic_us, self._before_commit)
            try:
                return await self._run(pool, transaction, script(*args, **kwargs))
            except Exception as problem:
                tries += 1
                if is_held(problem):
                    await self._unbroken.run(self._free_locks())
                if not is_conflict(problem) or tries >= limits.CONFLICT_TRIES_MAX:
                    raise meaning(problem, str(self._place), committing=transaction.committing) from problem
            self._conflicts += 1
            await self._clock.sleep(pause_us(tries, limits.POSTGRES_CONFLICT_PAUSE_MAX_US, self._chance()))

    async def read(
        self, lane: Lane, script: Callable[ParamsT, Script[ResultT]], *args: ParamsT.args, **kwargs: ParamsT.kwargs
    ) -> ResultT:
        """Run a script that only reads, on one snapshot."""
        try:
            transaction: Transaction[ResultT] = Transaction(READ, self._clock.monotonic_us)
            return await self._run(self._pools[lane], transaction, script(*args, **kwargs))
        except Exception as problem:
            raise meaning(problem, str(self._place), committing=False) from problem

    def hint(self, shards: frozenset[Shard]) -> None:
        """Wake whoever waits for these shards, here at once and elsewhere soon."""
        self._listener.tell(shards)

    def gauges(self) -> dict[str, int]:
        """Return who waits for a connection, how often somebody had to, and how many races were lost and repeated."""
        found = {"conflicts": self._conflicts}
        for lane, pool in self._pools.items():
            found[f"waiting.{lane.name.lower()}"] = pool.waiting
            found[f"waits.{lane.name.lower()}"] = pool.waits
        return found

    async def wait_hint(self, timeout_us: int) -> frozenset[Shard]:
        """Wait for a hint of any process."""
        return await self._listener.wait(timeout_us)

    def inside(self, kind: str) -> Any:  # noqa: ANN401 - each kind of connection has a runner of its own type
        """Return what runs a script in a user's own transaction."""
        migrations, statements = _load()
        return inside.runner(
            kind,
            schema=self._place.schema,
            statements=statements,
            tables=_tables_of(migrations),
            now_us=self._now_us,
        )

    async def worries(self) -> tuple[Worry, ...]:
        """Look for what holds up the server or weakens its promises."""
        return await self._unbroken.run(self._worries())

    async def _worries(self) -> tuple[Worry, ...]:
        try:
            return await self._lend(self._pools[Lane.READ], lambda link: look(link.raw))
        except Exception as problem:
            raise meaning(problem, str(self._place), committing=False) from problem

    def _run(self, pool: Pool, transaction: Transaction[ResultT], script: Script[ResultT]) -> Awaitable[ResultT]:
        """Run a transaction once; it comes to its end, whatever becomes of the caller."""
        link = pool.borrow_at_once()
        if link is None:
            return self._unbroken.run(self._lend(pool, lambda borrowed: transaction.run(borrowed, script)))
        # Nothing has to be waited for or opened before it is sent: that needs no task of its own.
        return self._unbroken.in_place(self._use(pool, link, transaction.run(link, script)))

    async def _free_locks(self) -> None:
        """End whoever keeps locks and can't go on; the caller comes again."""
        try:
            await self._lend(self._pools[Lane.READ], lambda link: end_stranded(link.raw, APPLICATION))
        except Exception as problem:  # noqa: BLE001 - what the caller waited for is told already
            _log.warning(
                "could not look for sessions that keep locks: %s", meaning(problem, str(self._place), committing=False)
            )

    async def _lend(self, pool: Pool, use: Callable[[Link], Awaitable[ResultT]]) -> ResultT:
        """Use a connection of a pool, as soon as there is one."""
        link = await pool.borrow()
        return await self._use(pool, link, use(link))

    async def _use(self, pool: Pool, link: Link, work: Awaitable[ResultT]) -> ResultT:
        """Do some work with what was borrowed, and give it back."""
        begun_us = 0 if self._steps is None else self._steps.begin()
        try:
            result = await work
        except BaseException as problem:
            pool.give_back(link, problem)
            raise
        finally:
            if self._steps is not None:
                self._steps.end("connection", begun_us)
        pool.give_back(link)
        return result

    async def _open(self, lane: Lane) -> Link:
        return Link(await connect(self._place, PINNED if lane in _HOT else {}), self._prepared, self._steps)


def _tables_of(migrations: Sequence[Migration]) -> tuple[str, ...]:
    """Return the names of our tables, those that keep the migrations themselves included."""
    commands = (command for step in migrations for command in step.statement.commands)
    return ("meta", "migration", *(match[1] for command in commands if (match := _CREATE_TABLE.match(command))))
