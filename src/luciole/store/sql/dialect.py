"""What a database must answer to carry the store: the whole seam between the shared layer and a technology."""

from collections.abc import Callable
from enum import Enum
from typing import Any, ParamSpec, Protocol, TypeVar

from luciole.model.ids import Shard
from luciole.store.capabilities import Capabilities
from luciole.store.reads import Worry
from luciole.store.sql.migrate import Migration
from luciole.store.sql.script import Script

ParamsT = ParamSpec("ParamsT")
ResultT = TypeVar("ResultT")


class Lane(Enum):
    """What a transaction is for, so that a dialect can keep connections apart (a heartbeat never waits for a plan)."""

    LEASE = "lease"
    PLAN = "plan"
    SETTLE = "settle"
    ENQUEUE = "enqueue"
    CATALOG = "catalog"
    READ = "read"  #: read-only; a page for people

    __hash__ = object.__hash__  # There is one of each, and each transaction looks its own up.


class Dialect(Protocol):
    """A database that runs scripts.

    A transaction is retried when the database says that it lost a race (at most `limits.CONFLICT_TRIES_MAX`
    times), each time with a fresh script; every other failure is raised as an error of `luciole.errors`.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What a store on this dialect can do."""
        ...

    @property
    def migrates_at_open(self) -> bool:
        """Whether opening brings the schema up to date by itself."""
        ...

    @property
    def migrations(self) -> tuple[Migration, ...]:
        """What `load_migrations` found for it; each runs as the query of its name."""
        ...

    async def connect(self) -> None:
        """Open the connections; safe to repeat. Does not look at the schema."""
        ...

    async def close(self) -> None:
        """Let what is under way finish, then release every connection; safe to repeat."""
        ...

    async def write(
        self, lane: Lane, script: Callable[ParamsT, Script[ResultT]], *args: ParamsT.args, **kwargs: ParamsT.kwargs
    ) -> ResultT:
        """Run a script as one transaction of its own; return its result once it is durable (I9)."""
        ...

    async def read(
        self, lane: Lane, script: Callable[ParamsT, Script[ResultT]], *args: ParamsT.args, **kwargs: ParamsT.kwargs
    ) -> ResultT:
        """Run a script that only reads, on one snapshot."""
        ...

    def hint(self, shards: frozenset[Shard]) -> None:
        """Wake who waits, here and (at a bounded rate) in other processes; never blocks, never fails."""
        ...

    def gauges(self) -> dict[str, int]:
        """Return who waits for connections and locks; see `Gauged`."""
        ...

    async def wait_hint(self, timeout_us: int) -> frozenset[Shard]:
        """Wait for a hint; see `Store.wait_hint`."""
        ...

    def inside(self, kind: str) -> Any:  # noqa: ANN401 - each kind of connection has a runner of its own type
        """Return `run(connection, script, *args)` for a user's own transaction; an awaitable one for async kinds.

        Raises:
            Unsupported: not this kind; the message lists the kinds that work.
        """
        ...

    async def worries(self) -> tuple[Worry, ...]:
        """Look at the database itself; see `Watchful.worries`."""
        ...


class Role:
    """What every role of a SQL store stands on."""

    def __init__(self, db: Dialect) -> None:
        self._db = db
        self._shards: int | None = None

    @property
    def shards(self) -> int:
        """The number of shards recorded at initialisation; known after `open`."""
        assert self._shards is not None, "open the store first"
        return self._shards
