"""Lines: entries that wait in memory, future ones by due time, due ones by what they ask of an executor."""

from collections import deque
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from luciole.gateway.jobs import JobShelf
from luciole.model.ids import JobId
from luciole.model.instant import Instant
from luciole.model.outbox import Entry
from luciole.model.routing import Line, Route


class Lines:
    """The order in which entries are delivered.

    A line may hold entries that were settled meanwhile; they are passed over when they come to the front.

    Args:
        jobs: says what a job version asks of an executor.
        waits: whether an entry still waits, as the table of held entries has it.
    """

    def __init__(self, jobs: JobShelf, waits: Callable[[Entry], bool]) -> None:
        self._jobs = jobs
        self._waits = waits
        self._lines: dict[tuple[Route, int], deque[Entry]] = {}
        self._future: list[tuple[Instant, int, Entry]] = []
        self._sequence = 0
        self._unread: dict[JobId, list[Entry]] = {}  #: due, but the job version is not at hand

    def add(self, entry: Entry, now_us: Instant) -> None:
        """Put an entry in line, or aside until it is due."""
        if entry.due_us <= now_us:
            self.line_up(entry)
        else:
            self._sequence += 1
            heappush(self._future, (entry.due_us, self._sequence, entry))

    def line_up(self, entry: Entry) -> None:
        """Put an entry that is due in line."""
        job = self._jobs.get(entry.job_id)
        if job is None:
            self._unread.setdefault(entry.job_id, []).append(entry)
            return
        route = job[1]
        if entry.labels:
            route = route._replace(labels=route.labels | frozenset(entry.labels))
        line = self._lines.get((route, entry.priority))
        if line is None:
            line = self._lines[route, entry.priority] = deque()
        line.append(entry)

    def ripen(self, now_us: Instant) -> Instant | None:
        """Put what has become due in line; return when the next becomes due."""
        future = self._future
        while future and future[0][0] <= now_us:  # I11: by the store's clock, never before.
            entry = heappop(future)[2]
            if self._waits(entry):
                self.line_up(entry)
        return future[0][0] if future else None

    def unread_jobs(self) -> list[JobId]:
        """Return the job versions that due entries wait for."""
        return list(self._unread)

    def jobs_read(self, ids: Iterable[JobId]) -> list[Entry]:
        """Line up what waited for job versions; return the entries whose version can't be read."""
        unreadable = []
        for job_id in ids:
            for entry in self._unread.pop(job_id, ()):
                if self._waits(entry):
                    if self._jobs.get(job_id) is None:
                        unreadable.append(entry)
                    else:
                        self.line_up(entry)
        return unreadable

    def counts(self) -> list[Line]:
        """Return what waits, for routing."""
        return [Line(route, priority, len(line)) for (route, priority), line in self._lines.items()]

    def draw(self, line: Line, count: int) -> list[Entry]:
        """Take up to `count` entries from the front of a line."""
        waiting = self._lines.get((line.route, line.priority))
        drawn: list[Entry] = []
        while waiting and len(drawn) < count:
            entry = waiting.popleft()
            if self._waits(entry):
                drawn.append(entry)
        if not waiting:
            self._lines.pop((line.route, line.priority), None)
        return drawn

    def purge(self) -> None:
        """Drop what waits no more, everywhere at once."""
        waits = self._waits
        for key, line in tuple(self._lines.items()):
            kept = deque(entry for entry in line if waits(entry))
            if kept:
                self._lines[key] = kept
            else:
                del self._lines[key]
        for job_id, entries in tuple(self._unread.items()):
            self._unread[job_id] = [entry for entry in entries if waits(entry)]
        self._future = [item for item in self._future if waits(item[2])]
        heapify(self._future)
