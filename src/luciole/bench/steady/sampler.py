"""What the parts of a run use while it lasts: CPU, memory, disk, write-ahead log, and how much is open."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from luciole import limits
from luciole.bench import faults
from luciole.bench.backends import Place, connect_postgres, sqlite_path
from luciole.bench.check import kind_of
from luciole.bench.cpu import tree_cpu_us
from luciole.runtime.clock import Clock
from luciole.runtime.extras import require

with require("bench"):
    import psutil

#: A look each second; resources are summed over five and thirty of them, as monitoring systems do.
LOOK_US = limits.SECOND_US
SHORT_LOOKS = 5
LONG_LOOKS = 30

#: A look that comes so much later than it should says that the bench itself was starved.
LATE_MAX_US = 5 * limits.SECOND_US

#: Samples of one window that a result keeps.
_KEPT_MAX = 600

_TABLES = ("cursor", "execution", "entry")


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One look; counters are totals since ever."""

    at_us: int  #: by the monotonic clock
    cpu_us: dict[str, int]  #: of each part
    rss_bytes: dict[str, int]
    disk_writes: int | None  #: of the device that the data lies on
    disk_reads: int | None
    wal_bytes: int | None
    open_entries: int
    oldest_us: int  #: how long the oldest open entry that is due has been due
    table_bytes: int
    dead_rows: int


class Store:
    """Plain questions to the store of a run, on a connection of the bench's own."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._connection: Any = None
        self._asking = asyncio.Lock()  # The sampler and whoever waits for something share the connection.

    async def open(self) -> None:
        """Connect."""
        if kind_of(self._place) == "postgres":
            self._connection = await connect_postgres(self._place)

    async def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            await self._connection.close()

    async def state(self, now_us: int) -> dict[str, int]:
        """Return what is open, and how large the tables are.

        Args:
            now_us: the store's clock, which is the host's: a run's server is on this machine.
        """
        if self._connection is None:
            return await asyncio.to_thread(self._state_of_file, now_us)
        (row,) = await self._fetch(
            "SELECT count(*) AS open_entries, "
            "coalesce($1::bigint - min(due_us) FILTER (WHERE due_us <= $1), 0)::bigint AS oldest_us, "
            "pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS wal_bytes, "
            "(SELECT sum(pg_total_relation_size(relid))::bigint FROM pg_stat_user_tables WHERE relname = ANY ($2)) "
            "AS table_bytes, "
            "(SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables WHERE relname = ANY ($2)) AS dead_rows "
            "FROM entry",
            now_us,
            list(_TABLES),
        )
        return {name: int(value or 0) for name, value in row.items()}

    async def number(self, question: str) -> int:
        """Return the answer to a question that has one number for it, in words that both kinds know."""
        if self._connection is not None:
            return int((await self._fetch(question))[0][0])
        return await asyncio.to_thread(self._ask_file, question)

    async def telemetry(self) -> list[str]:
        """Return what each node last told of itself, as JSON."""
        question = "SELECT telemetry FROM node"
        if self._connection is not None:
            return [row["telemetry"] for row in await self._fetch(question)]
        with closing(_read_only(sqlite_path(self._place.dsn))) as lite:
            return [row[0] for row in lite.execute(question)]

    async def gauge(self, name: str) -> int:
        """Return what a gauge of the nodes says, the most of all; 0 while none has told of it."""
        return max((json.loads(text).get("gauges", {}).get(name, 0) for text in await self.telemetry()), default=0)

    async def numbers(self, question: str) -> list[int]:
        """Return the first column of the answer to a question, in words that both kinds know."""
        if self._connection is not None:
            return [int(row[0]) for row in await self._fetch(question)]
        with closing(_read_only(sqlite_path(self._place.dsn))) as lite:
            return [int(row[0]) for row in lite.execute(question)]

    async def _fetch(self, question: str, *values: Any) -> list[Any]:  # noqa: ANN401 - what SQL has
        async with self._asking:
            return list(await self._connection.fetch(question, *values))

    def _state_of_file(self, now_us: int) -> dict[str, int]:
        path = sqlite_path(self._place.dsn)
        question = "SELECT count(*), coalesce(? - min(CASE WHEN due_us <= ? THEN due_us END), 0) FROM entry"
        with closing(_read_only(path)) as lite:
            open_entries, oldest_us = lite.execute(question, (now_us, now_us)).fetchone()
        return {
            "open_entries": open_entries,
            "oldest_us": oldest_us,
            "table_bytes": path.stat().st_size,
            "dead_rows": 0,
        }

    def _ask_file(self, question: str) -> int:
        with closing(_read_only(sqlite_path(self._place.dsn))) as lite:
            return int(lite.execute(question).fetchone()[0])


class Sampler:
    """Looks once a second, from `run` until it is cancelled.

    Args:
        pids: the parts, by name; each counts with all that it started.
        store: the store's questions.
        folder: where the data lies.
        clock: the time.
    """

    def __init__(self, pids: Mapping[str, int], store: Store, folder: Path, clock: Clock) -> None:
        self._pids = dict(pids)
        self._store = store
        self._device = _device(folder)
        self._clock = clock
        self.samples: list[Sample] = []
        self.late_us = 0  #: the most that a look came late

    async def run(self) -> None:
        """Look until cancelled."""
        next_us = self._clock.monotonic_us()
        while True:
            self.late_us = max(self.late_us, self._clock.monotonic_us() - next_us)
            await self.look()
            faults.fail_look()
            next_us = max(next_us + LOOK_US, self._clock.monotonic_us())
            await self._clock.sleep(next_us - self._clock.monotonic_us())

    async def look(self) -> Sample:
        """Look once."""
        state = await self._store.state(self._clock.now_us())
        disk = _disk(self._device)
        sample = Sample(
            at_us=self._clock.monotonic_us(),
            cpu_us={name: tree_cpu_us(pid) for name, pid in self._pids.items()},
            rss_bytes={name: _rss_bytes(pid) for name, pid in self._pids.items()},
            disk_writes=None if disk is None else disk.write_count,
            disk_reads=None if disk is None else disk.read_count,
            wal_bytes=state.get("wal_bytes"),
            open_entries=state["open_entries"],
            oldest_us=state["oldest_us"],
            table_bytes=state["table_bytes"],
            dead_rows=state["dead_rows"],
        )
        self.samples.append(sample)
        return sample


def resources(samples: Sequence[Sample]) -> dict[str, float]:
    """Return mean and peak of what a window used; peaks are of five seconds, and of thirty where there are as many."""
    if len(samples) <= SHORT_LOOKS:
        return {}
    figures: dict[str, float] = {}
    parts: dict[str, list[str]] = {}
    for name in samples[0].cpu_us:
        parts.setdefault(part_of(name), []).append(name)
    for part, names in parts.items():
        rates = _rates([(one.at_us, sum(one.cpu_us[name] for name in names)) for one in samples], SHORT_LOOKS)
        figures[f"{part}_cores"] = rates.mean / limits.SECOND_US
        figures[f"{part}_cores_peak"] = rates.peak / limits.SECOND_US
        figures[f"{part}_rss_mib"] = max(sum(one.rss_bytes[name] for name in names) for one in samples) / 1_048_576
    figures["cores"] = sum(figures[f"{part}_cores"] for part in parts)
    writes = [(one.at_us, one.disk_writes + (one.disk_reads or 0)) for one in samples if one.disk_writes is not None]
    if writes:
        short = _rates(writes, SHORT_LOOKS)
        figures |= {"iops": short.mean, "iops_peak_5s": short.peak}
        if len(writes) > LONG_LOOKS:
            figures["iops_peak_30s"] = _rates(writes, LONG_LOOKS).peak
    log = [(one.at_us, one.wal_bytes) for one in samples if one.wal_bytes is not None]
    if log:
        rates = _rates(log, SHORT_LOOKS)
        figures |= {"wal_bytes_per_s": rates.mean, "wal_bytes_per_s_peak": rates.peak}
    return figures | {
        "open_max": max(one.open_entries for one in samples),
        "oldest_max_us": max(one.oldest_us for one in samples),
    }


def thinned(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return samples evenly spread over a window, few enough to be kept with its result."""
    return samples[:: -(-len(samples) // _KEPT_MAX)] if samples else samples


def part_of(name: str) -> str:
    """Return which part a process belongs to: `node_2` is of `node`."""
    return name.partition("_")[0]


class _Rates(msgspec.Struct, frozen=True):
    mean: float
    peak: float


def _rates(totals: Sequence[tuple[int, int]], looks: int) -> _Rates:
    """Return the growth a second of a counter: over all, and the most of any so many looks."""
    spans = [(totals[0], totals[-1]), *zip(totals, totals[looks:], strict=False)]
    found = [(last[1] - first[1]) * limits.SECOND_US / max(1, last[0] - first[0]) for first, last in spans]
    return _Rates(found[0], max(found))


def _rss_bytes(pid: int) -> int:
    """Return the memory of a process and all that it started; what they share counts once where the system says it."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        children = root.children(recursive=True)
        if not children:
            return int(root.memory_info().rss)
        for process in (root, *children):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                found = process.memory_info()
                total += found.rss - getattr(found, "shared", 0)
    return total


def _device(folder: Path) -> str | None:
    resolved = folder.resolve()
    mounts = [one for one in psutil.disk_partitions(all=True) if resolved.is_relative_to(one.mountpoint)]
    return Path(max(mounts, key=lambda one: len(one.mountpoint)).device).name if mounts else None


def _disk(device: str | None) -> Any:  # noqa: ANN401 - a record of psutil
    return None if device is None else (psutil.disk_io_counters(perdisk=True) or {}).get(device)


def _read_only(path: Path) -> Any:  # noqa: ANN401 - a connection of sqlite3
    import sqlite3  # noqa: PLC0415 - only this kind needs it

    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
