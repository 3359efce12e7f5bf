"""The one writer of a process: it commits whatever is queued now, in one transaction.

A lone caller waits for nothing, a crowd shares one flush to disk. There is no timer: while one group is being
committed the next one gathers. The queue belongs to the event loop, the connection to one thread at a time.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from luciole.errors import OutcomeUnknown, StoreUnavailable
from luciole.runtime.steps import Steps
from luciole.store.sql.sqlite.failures import is_busy, meaning
from luciole.store.sql.sqlite.group import CommitFailed, Operation, Outcome, commit_group


@dataclass(frozen=True, slots=True)
class _Waiting:
    operation: Operation
    is_large: bool
    done: "asyncio.Future[Any]"


class Writer:
    """A queue of operations in front of one connection."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        *,
        path: str,
        begin: Callable[[sqlite3.Connection], None],
        monotonic_us: Callable[[], int],
        steps: Steps | None = None,
    ) -> None:
        """Make a writer; `open` it before use.

        Args:
            connect: opens the connection; it is used by one thread at a time.
            path: the file, for messages.
            begin: begins a transaction that may write, waiting for other processes within its bound.
            monotonic_us: a monotonic clock, microseconds.
            steps: is told what a group's time is made of; None: nobody measures.
        """
        self._connect = connect
        self._path = path
        self._begin = begin
        self._monotonic_us = monotonic_us
        self._steps = steps
        self._queue: list[_Waiting] = []
        self.conflicts = 0  #: how often another process held the lock for longer than we wait for it
        self._opening = asyncio.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None
        self._draining: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the connection; safe to repeat, several callers at once included.

        Raises:
            StoreUnavailable: the file can't be opened; the writer stays closed.
        """
        async with self._opening:
            if self._thread:
                return
            self._thread = ThreadPoolExecutor(1, "luciole-sqlite-writer")
            try:
                # The thread keeps what it opens: a caller who is cancelled meanwhile leaves nothing open behind.
                await asyncio.get_running_loop().run_in_executor(self._thread, self._connected)
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """Let everything queued finish, then close; safe to repeat."""
        while self._draining:
            await asyncio.wait([self._draining])
        thread, self._thread = self._thread, None
        if thread:
            await asyncio.get_running_loop().run_in_executor(thread, self._disconnect)
            thread.shutdown()

    async def run(self, operation: Operation, *, is_large: bool = False) -> Any:  # noqa: ANN401 - the operation's result
        """Run an operation in a transaction; return its result once that is durable (I9).

        Who is cancelled while waiting can't know what became of the operation, as with a broken connection. A large
        operation ends its group: two of them in one commit would save no time, and their callers would then
        compute at the same time instead of one computing while the other commits.
        """
        if self._thread is None:
            raise StoreUnavailable(f"{self._path}: the store is not open; call `open` first")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(operation, is_large, loop.create_future())
        self._queue.append(waiting)
        # No wake-up is lost: the drain looks at the queue and ends within one step of the loop.
        if self._draining is None:
            self._draining = loop.create_task(self._drain(), name="luciole-sqlite-writer")
        return await waiting.done

    @property
    def waiting(self) -> int:
        """How many operations are queued and not under way."""
        return len(self._queue)

    def idle_connection(self) -> sqlite3.Connection | None:
        """Return the connection while the writer is open and no group is under way, for a look that never blocks."""
        return None if self._draining or self._thread is None else self._connection

    async def _drain(self) -> None:
        try:
            while self._queue:
                group = self._take()
                outcomes = await self._commit([waiting.operation for waiting in group])
                undone = []
                for waiting, outcome in zip(group, outcomes, strict=True):
                    if outcome is None:
                        undone.append(waiting)
                    else:
                        outcome.tell(waiting.done)
                self._queue[:0] = undone
        finally:
            self._draining = None

    def _take(self) -> list[_Waiting]:
        """Take the next group from the queue; who gave up waiting is left out."""
        end = next((place for place, waiting in enumerate(self._queue, 1) if waiting.is_large), len(self._queue))
        group = [waiting for waiting in self._queue[:end] if not waiting.done.done()]
        del self._queue[:end]
        return group

    async def _commit(self, operations: Sequence[Operation]) -> Sequence[Outcome | None]:
        if not operations:
            return ()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._commit_in_thread, operations)
        except asyncio.CancelledError:
            error: BaseException = OutcomeUnknown(f"{self._path}: the program ended in a commit")
        except Exception as problem:  # noqa: BLE001 - I9: whatever it was, it fails everybody in this group
            error = problem
        return [Outcome(error=error)] * len(operations)

    def _commit_in_thread(self, operations: Sequence[Operation]) -> Sequence[Outcome | None]:
        connection = self._connected()
        try:
            outcomes = commit_group(
                connection,
                operations,
                begin=self._begin,
                monotonic_us=self._monotonic_us,
                steps=self._steps,
            )
        except (sqlite3.Error, CommitFailed) as failure:
            committing = isinstance(failure, CommitFailed)
            problem = failure.problem if isinstance(failure, CommitFailed) else failure
            if is_busy(problem):
                self.conflicts += 1
            else:
                # It may have seen half of an I/O error; a new connection reads what is really there.
                self._disconnect()
            raise meaning(problem, self._path, committing=committing) from problem
        return [
            Outcome(error=meaning(outcome.error, self._path)) if outcome and outcome.error else outcome
            for outcome in outcomes
        ]

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            connection.close()
