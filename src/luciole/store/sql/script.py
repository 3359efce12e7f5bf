"""Transaction scripts: generators that ask queries and do no I/O.

The same script runs on a thread's connection, on an asyncio one, and inside a transaction that a user opened.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

ResultT = TypeVar("ResultT")

#: One row of an answer: by position, in the statement's own column order.
Row: TypeAlias = Sequence[Any]


class Query(NamedTuple):
    """One named statement to run, and its values.

    `rows` are for a statement with a row source (`-- rows:` or `-- each:`); each is a tuple in the order of
    that header. Without rows such a statement is not run at all and its answer is empty.
    """

    name: str
    binds: Mapping[str, Any] = {}
    rows: Sequence[tuple[Any, ...]] = ()
    #: The first query of a script that writes, and whole by itself: it may commit before whatever follows it. In a
    #: script that only reads: the first, with which later ones need no common snapshot.
    alone: bool = False
    #: Alone, and its rows are taken to be new: where they are not, nothing is written and the answer is empty. Never
    #: run inside a transaction, which would not survive that.
    new: bool = False
    #: By the host's monotonic clock: nothing of this transaction is sent from then on, its commit included.
    until_us: int | None = None


#: One transaction: asks queries, is sent their rows, returns its result.
Script: TypeAlias = Generator[Query, Sequence[Row], ResultT]


def run(script: Script[ResultT], ask: Callable[[Query], Sequence[Row]]) -> ResultT:
    """Run a script to its end, on the caller's thread."""
    try:
        query = next(script)
        while True:
            query = script.send(ask(query))
    except StopIteration as end:
        result: ResultT = end.value
        return result
    finally:
        script.close()


async def run_async(script: Script[ResultT], ask: Callable[[Query], Awaitable[Sequence[Row]]]) -> ResultT:
    """Run a script to its end, awaiting each answer."""
    try:
        query = next(script)
        while True:
            query = script.send(await ask(query))
    except StopIteration as end:
        result: ResultT = end.value
        return result
    finally:
        script.close()
