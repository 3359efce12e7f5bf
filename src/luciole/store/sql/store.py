"""The store over SQL: the roles together, and the life of the connection to the database."""

from luciole.model.ids import Shard
from luciole.store.capabilities import Capabilities
from luciole.store.reads import Repair, Worry
from luciole.store.sql import migrate, repair
from luciole.store.sql.catalog import SqlCatalog
from luciole.store.sql.dialect import Dialect, Lane
from luciole.store.sql.executions import SqlExecutions
from luciole.store.sql.leases import SqlLeases
from luciole.store.sql.outbox import SqlOutbox
from luciole.store.sql.planning import SqlPlans
from luciole.store.sql.reads import SqlReads


class SqlStore(SqlLeases, SqlPlans, SqlOutbox, SqlExecutions, SqlCatalog, SqlReads):
    """A store on any database that a dialect speaks to."""

    def __init__(self, db: Dialect, *, shards: int | None = None) -> None:
        """Make a store; `open` it before use.

        Args:
            db: the database.
            shards: the number of shards that a new database gets and an old one must have; None: whatever it is.
        """
        super().__init__(db)
        self._wanted_shards = shards

    @property
    def capabilities(self) -> Capabilities:
        """What this store can do."""
        return self._db.capabilities

    async def open(self) -> None:
        """Connect, and check the schema."""
        try:
            await self._db.connect()
            if self._db.migrates_at_open:
                await self.migrate(shards=self._wanted_shards)
            self._shards = await self._db.read(
                Lane.CATALOG, migrate.check_schema, self._db.migrations, self._wanted_shards
            )
        except BaseException:
            await self._db.close()
            raise

    async def migrate(self, *, shards: int | None = None) -> int:
        """Bring the schema up to date; return how many steps ran."""
        await self._db.connect()
        return await self._db.write(Lane.CATALOG, migrate.migrate, self._db.migrations, shards)

    async def repair(self) -> tuple[Repair, ...]:
        """Restore rows of the store's own that are missing; return what that was."""
        await self._db.connect()
        return await self._db.write(Lane.CATALOG, repair.repair, self._db.migrations)

    async def close(self) -> None:
        """Release every connection; safe to repeat."""
        await self._db.close()

    def gauges(self) -> dict[str, int]:
        """Return who waits for connections and locks."""
        return self._db.gauges()

    async def wait_hint(self, timeout_us: int) -> frozenset[Shard]:
        """Wait until somebody may have made something due sooner, or until the time is over."""
        return await self._db.wait_hint(timeout_us)

    async def worries(self) -> tuple[Worry, ...]:
        """Return what about the database should worry somebody."""
        return await self._db.worries()
