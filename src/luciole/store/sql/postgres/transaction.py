"""One transaction: a script run from beginning to end on one connection."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from luciole.store.bounds import check_deadline
from luciole.store.sql.postgres.failures import is_broken, is_there_already
from luciole.store.sql.postgres.link import Link
from luciole.store.sql.script import Query, Row, Script

ResultT = TypeVar("ResultT")

WRITE = "BEGIN"
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(slots=True)
class Transaction(Generic[ResultT]):
    """Runs a script once. Whoever sees it fail asks `committing` whether its outcome is known."""

    begin: str  #: the command that begins it
    monotonic_us: Callable[[], int]  #: the host's clock that deadlines are told in
    before_commit: Callable[[], Awaitable[None]] | None = None
    committing: bool = False  #: a commit was sent and not answered
    _until_us: int | None = None  #: the deadline of whoever holds the leases that it stands on

    async def run(self, link: Link, script: Script[ResultT]) -> ResultT:
        """Run the script on a connection; it commits by itself."""
        try:
            query = next(script)
        except StopIteration as end:
            nothing_asked: ResultT = end.value
            return nothing_asked
        self._until_us = query.until_us
        while link.has_nothing_to_do(query) or (query.alone and (query.new or self.before_commit is None)):
            rows: Sequence[Row] = ()
            if self.before_commit is None or not query.new:
                # What is new and commits by itself can't be interleaved by hand: the longer way can.
                self.committing = query.alone
                try:
                    rows = await link.ask(query, self._may_send)
                except Exception as problem:
                    if not (query.new and is_there_already(problem)):
                        raise
                self.committing = False
            try:
                query = script.send(rows)
            except StopIteration as end:
                done_at_once: ResultT = end.value
                return done_at_once
        self._may_send()
        await link.execute(self.begin)
        try:
            result = await self._drive(link, script, query)
            if self.before_commit is not None:
                await self.before_commit()
            self._may_send()
        except Exception as problem:
            await _roll_back(link, problem)
            raise
        self.committing = True
        await link.execute("COMMIT")
        return result

    def _may_send(self) -> None:
        """Raise once it is too late to send anything: this process may have been stopped at any await before it."""
        if self._until_us is not None:
            check_deadline(self._until_us, self.monotonic_us())

    async def _drive(self, link: Link, script: Script[ResultT], query: Query) -> ResultT:
        """Answer a script's queries, from this one on."""
        try:
            while True:
                query = script.send(await link.ask(query, self._may_send))
        except StopIteration as end:
            result: ResultT = end.value
            return result
        finally:
            script.close()


async def _roll_back(link: Link, problem: Exception) -> None:
    """End a transaction that failed; a connection that can't do that is given up, and the server ends it."""
    try:
        if not is_broken(problem):
            await link.execute("ROLLBACK")
    except Exception:  # noqa: BLE001 - the first problem is the one to tell
        link.drop()
