"""One group commit: several operations in one transaction, each of which fails alone."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from luciole import limits
from luciole.runtime.steps import Steps

#: What one caller wants done inside a transaction that is already open.
Operation: TypeAlias = Callable[[sqlite3.Connection], Any]


class CommitFailed(Exception):
    """The commit itself failed: unlike any failure before it, it may have happened all the same."""

    def __init__(self, problem: sqlite3.Error) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one operation ended."""

    result: Any = None
    error: BaseException | None = None

    def tell(self, done: "asyncio.Future[Any]") -> None:
        """Tell whoever waits for it, unless nobody does any more."""
        if done.done():
            return
        if self.error is None:
            done.set_result(self.result)
        else:
            done.set_exception(self.error)


def commit_group(
    connection: sqlite3.Connection,
    operations: Sequence[Operation],
    *,
    begin: Callable[[sqlite3.Connection], None],
    monotonic_us: Callable[[], int],
    steps: Steps | None = None,
) -> list[Outcome | None]:
    """Run operations in one transaction and commit it; return how each ended, in order.

    None says that an operation was not run, or was undone with the others: it belongs into the next group. At
    least one operation always comes to its end.

    Raises:
        sqlite3.Error: the transaction could not begin; nothing was written.
        CommitFailed: it could not commit; nobody may be told that their work is there (I9).
    """
    begun_us = 0 if steps is None else steps.begin()
    begin(connection)
    if steps is not None:
        steps.end("lock", begun_us)
        begun_us = steps.begin()
    try:
        outcomes = _run_all(connection, operations, monotonic_us() + limits.SQLITE_TRANSACTION_MAX_US, monotonic_us)
        if steps is not None:
            steps.end("statement", begun_us)
            begun_us = steps.begin()
        if connection.in_transaction:
            _commit(connection)
        if steps is not None:
            steps.end("commit", begun_us)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return outcomes + [None] * (len(operations) - len(outcomes))


def _commit(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as problem:
        raise CommitFailed(problem) from problem


def _run_all(
    connection: sqlite3.Connection, operations: Sequence[Operation], until_us: int, monotonic_us: Callable[[], int]
) -> list[Outcome | None]:
    if len(operations) == 1:
        return [_run_alone(connection, operations[0])]
    outcomes: list[Outcome | None] = []
    for operation in operations:
        if outcomes and monotonic_us() >= until_us:
            break  # A long transaction would keep other processes out.
        outcome = _run_one(connection, operation)
        outcomes.append(outcome)
        if not connection.in_transaction:
            # SQLite gave up the whole transaction (a full disk, say), so what went before is undone as well.
            return [None] * (len(outcomes) - 1) + [outcome]
    return outcomes


def _run_alone(connection: sqlite3.Connection, operation: Operation) -> Outcome:
    """Run the only operation of a transaction: it needs no savepoint, since its failure takes nobody else's work."""
    try:
        return Outcome(result=operation(connection))
    except Exception as error:  # noqa: BLE001 - it is handed to its caller
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return Outcome(error=error)


def _run_one(connection: sqlite3.Connection, operation: Operation) -> Outcome:
    connection.execute("SAVEPOINT operation")
    try:
        result = operation(connection)
    except Exception as error:  # noqa: BLE001 - it is handed to its caller; the others go on
        if connection.in_transaction:
            connection.execute("ROLLBACK TO operation")
            connection.execute("RELEASE operation")
        return Outcome(error=error)
    connection.execute("RELEASE operation")
    return Outcome(result=result)
