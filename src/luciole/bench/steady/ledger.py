"""The ledgers of executors: each start as they wrote it, held against what the store says.

It imports no store code; the executions come from a plain question.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from luciole import limits
from luciole.bench.backends import Place, connect_postgres, sqlite_path
from luciole.bench.check import judge, kind_of
from luciole.bench.result import Check
from luciole.model.instant import Instant

#: One start: shard, schedule, fire time, part, attempt, due time, and when it started.
START = Struct("<iqqqiqq")

#: Starts that are read at once.
_READ_STARTS = 10_000

#: State of the store: an executor ran it to its good end.
_SUCCEEDED = 10

#: State of the store: ended before it started; this bench cancels nothing that runs.
_CANCELLED = 12

#: Due-ness is judged by the store's clock, which nodes know to within a fraction of this.
_CLOCK_US = limits.MS_US

_QUESTION = "SELECT schedule_id, fire_us, part, attempt, state FROM execution WHERE shard = "


class Start(NamedTuple):
    """One start of one attempt."""

    shard: int
    schedule_id: int
    fire_us: Instant
    part: int
    attempt: int
    due_us: Instant
    started_us: Instant


#: An execution of one shard: schedule, fire time, part, attempt, state.
Row = tuple[int, int, int, int, int]


def ledger_path(folder: Path, pid: int) -> Path:
    """Return where a process keeps its ledger."""
    return folder / f"starts-{pid}"


def read_starts(folder: Path) -> Iterator[Start]:
    """Yield all starts in a folder's ledgers; a last record that a kill cut off does not count."""
    for path in sorted(folder.glob("starts-*")):
        with path.open("rb") as file:
            while found := file.read(_READ_STARTS * START.size):
                yield from map(Start._make, START.iter_unpack(found[: len(found) // START.size * START.size]))


async def read_executions(place: Place, shards: int) -> AsyncIterator[tuple[int, list[Row]]]:
    """Yield the executions of each shard, one shard after the other."""
    if kind_of(place) == "sqlite":
        import sqlite3  # noqa: PLC0415 - only this kind needs it

        with closing(sqlite3.connect(f"file:{sqlite_path(place.dsn)}?mode=ro", uri=True)) as lite:
            for shard in range(shards):
                yield shard, lite.execute(f"{_QUESTION}?", (shard,)).fetchall()
        return
    connection = await connect_postgres(place)
    try:
        for shard in range(shards):
            yield shard, [tuple(row) for row in await connection.fetch(f"{_QUESTION}$1", shard)]
    finally:
        await connection.close()


class Reconciliation:
    """Counts what starts and executions say against each other, shard by shard."""

    def __init__(self, starts: Iterable[Start]) -> None:
        # As bytes: hours of a load are many millions of starts.
        self._starts: dict[int, bytearray] = defaultdict(bytearray)
        self._count = self._early = 0
        for start in starts:
            self._starts[start.shard] += START.pack(*start)
            self._count += 1
            self._early += start.started_us + _CLOCK_US < start.due_us
        self._twice = self._unknown = self._unstarted = self._cancelled = 0

    def shard(self, shard: int, executions: Sequence[Row]) -> None:
        """Compare one shard, which is forgotten then."""
        attempts = {(schedule, fire, part): attempt for schedule, fire, part, attempt, _ in executions}
        started = set()
        for start in map(Start._make, START.iter_unpack(self._starts.pop(shard, b""))):
            key = (start.schedule_id, start.fire_us, start.part)
            token = (*key, start.attempt)
            self._twice += token in started
            started.add(token)
            self._unknown += start.attempt > attempts.get(key, 0)
        for schedule, fire, part, attempt, state in executions:
            has_started = (schedule, fire, part, attempt) in started
            self._unstarted += state == _SUCCEEDED and not has_started
            self._cancelled += state == _CANCELLED and has_started

    def checks(self) -> list[Check]:
        """Judge: each attempt starts at most once and not before it is due, what succeeded has started."""
        unknown = self._unknown + sum(map(len, self._starts.values())) // START.size
        return [
            judge("ledger_starts", "report", "> 0", self._count, {}),
            judge("ledger_attempts_started_twice", "report", "= 0", self._twice, {}),
            judge("ledger_starts_unknown_to_the_store", "report", "= 0", unknown, {}),
            judge("ledger_succeeded_without_a_start", "report", "= 0", self._unstarted, {}),
            judge("ledger_starts_of_what_was_cancelled", "report", "= 0", self._cancelled, {}),
            judge("ledger_starts_before_they_were_due", "report", "= 0", self._early, {}),
        ]


async def reconciled(place: Place, folder: Path, shards: int) -> list[Check]:
    """Hold all ledgers of a folder against all executions of a store."""
    reconciliation = Reconciliation(read_starts(folder))
    async for shard, executions in read_executions(place, shards):
        reconciliation.shard(shard, executions)
    return reconciliation.checks()
