"""A reader: a connection beside the writer, in a thread of its own, that sees one snapshot for each script."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from luciole.errors import StoreUnavailable
from luciole.store.sql.sqlite.failures import meaning
from luciole.store.sql.sqlite.group import Operation


class Reader:
    """One connection that only reads."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], *, path: str) -> None:
        """Make a reader; `open` it before use.

        Args:
            connect: opens the connection.
            path: the file, for messages.
        """
        self._connect = connect
        self._path = path
        self._opening = asyncio.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Open the connection; safe to repeat, several callers at once included.

        Raises:
            StoreUnavailable: the file can't be opened; the reader stays closed.
        """
        async with self._opening:
            if self._thread:
                return
            self._thread = ThreadPoolExecutor(1, "luciole-sqlite-reader")
            try:
                # The thread keeps what it opens: a caller who is cancelled meanwhile leaves nothing open behind.
                await self._in_thread(self._connected)
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """Finish what is under way, then close; safe to repeat."""
        thread, self._thread = self._thread, None
        if thread:
            await asyncio.get_running_loop().run_in_executor(thread, self._disconnect)
            thread.shutdown()

    async def run(self, operation: Operation) -> Any:  # noqa: ANN401 - it returns what the operation returns
        """Run an operation on one snapshot."""
        return await self._in_thread(self._read, operation)

    async def _in_thread(self, function: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401 - passes through
        if self._thread is None:
            raise StoreUnavailable(f"{self._path}: the store is not open; call `open` first")
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *args)

    def _read(self, operation: Operation) -> Any:  # noqa: ANN401 - it returns what the operation returns
        connection = self._connected()
        try:
            connection.execute("BEGIN")
            result = operation(connection)
            connection.execute("COMMIT")
        except BaseException as problem:
            # The next one gets a new connection, which reads what is really there.
            self._disconnect()
            raise meaning(problem, self._path) from problem
        return result

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._connection.execute("PRAGMA query_only = ON")
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            connection.close()
