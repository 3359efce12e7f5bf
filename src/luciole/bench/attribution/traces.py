"""The ways of single jobs: the slowest and a random choice keep the stamps of their stages.

A p99 spike burns no CPU, so that no flame graph shows it; the way of a slow job does.
"""

from collections.abc import Iterable, Sequence
from zlib import crc32

from luciole.bench.attribution.document import Trace
from luciole.bench.spans import Span
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import Entry

SLOWEST = 50
RANDOM = 200


class Ways:
    """Keeps which call made which jobs durable; the ways of single jobs are worked out when the window is over."""

    def __init__(self) -> None:
        self.due_us = 0  #: the instant that all are due at, by the monotonic clock
        self._commits: list[tuple[Sequence[Entry], Span]] = []
        self._settles: list[tuple[Sequence[Entry], int, int]] = []

    def committed(self, entries: Sequence[Entry], call: Span | None) -> None:
        """Note the entries that one call made durable."""
        if call is not None:
            self._commits.append((entries, call))

    def settled(self, entries: Sequence[Entry], begun_us: int, ended_us: int) -> None:
        """Note the entries that one call settled."""
        self._settles.append((entries, begun_us, ended_us))

    def traces(self) -> list[Trace]:
        """Return the chosen ways, times in microseconds since the due time, the slowest first."""
        commits = {entry.key: call for entries, call in self._commits for entry in entries}
        ways = {
            entry.key: [
                ("wait for the planner", 0, commits[entry.key].begun_us - self.due_us),
                ("commit", commits[entry.key].begun_us - self.due_us, commits[entry.key].ended_us - self.due_us),
                ("held", commits[entry.key].ended_us - self.due_us, begun_us - self.due_us),
                ("settle", begun_us - self.due_us, ended_us - self.due_us),
            ]
            for entries, begun_us, ended_us in self._settles
            for entry in entries
            if entry.key in commits
        }
        return choose(ways)


def choose(ways: dict[ExecutionKey, list[tuple[str, int, int]]]) -> list[Trace]:
    """Return the slowest ways, and some at random: those whose id has the least checksum, the same in each run."""
    slowest = sorted(ways, key=lambda key: -ways[key][-1][2])[:SLOWEST]
    others = sorted(set(ways) - set(slowest), key=_checksum)[:RANDOM]
    return [
        *(Trace(name=key.text(), chosen="slowest", stages=ways[key]) for key in slowest),
        *(Trace(name=key.text(), chosen="random", stages=ways[key]) for key in others),
    ]


def merge(parts: Iterable[Sequence[Trace]]) -> list[Trace]:
    """Return the slowest of several processes and as many random ones of each as there is room for."""
    traces = [trace for part in parts for trace in part]
    slowest = sorted((one for one in traces if one.chosen == "slowest"), key=lambda one: -one.stages[-1][2])
    others = sorted((one for one in traces if one.chosen == "random"), key=lambda one: crc32(one.name.encode()))
    return [*slowest[:SLOWEST], *others[:RANDOM]]


def chrome_trace(traces: Sequence[Trace]) -> dict[str, object]:
    """Return traces in the form that chrome://tracing and Perfetto read: one line of complete events for each job."""
    events: list[dict[str, object]] = []
    for line, trace in enumerate(traces, 1):
        name = {"name": f"{trace.chosen}: {trace.name}"}
        events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": line, "args": name})
        events += [
            {"name": stage, "ph": "X", "pid": 1, "tid": line, "ts": begun_us, "dur": max(0, ended_us - begun_us)}
            for stage, begun_us, ended_us in trace.stages
        ]
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _checksum(key: ExecutionKey) -> int:
    return crc32(key.text().encode("ascii"))
