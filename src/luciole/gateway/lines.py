"""Lines: entries that wait in memory, future ones by due time, due ones by what they ask of an executor."""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from luciole import limits
from luciole.gateway.jobs import JobShelf
from luciole.model.ids import JobId, RouteId
from luciole.model.instant import Instant
from luciole.model.outbox import Entry, EntryState
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
        self._later = _Later()  #: will be due
        self._ahead = _Later()  #: planned ahead: passes when it is due, and known to stand
        self.waiting: Counter[RouteId] = Counter()  #: polled entries in line, by what they ask of an executor
        self._unread: dict[JobId, list[Entry]] = {}  #: due, but the job version is not at hand

    def add(self, entry: Entry, now_us: Instant, *, ahead: bool = False) -> None:
        """Put an entry in line, or aside until it is due.

        Args:
            entry: durable.
            now_us: the store's clock.
            ahead: it was planned ahead, so that it may have been withdrawn since.
        """
        if ahead:
            self._ahead.add(entry)
        elif entry.due_us <= now_us:
            self.line_up(entry)
        else:
            self._later.add(entry)

    def line_up(self, entry: Entry) -> None:
        """Put an entry that is due in line."""
        if entry.state is EntryState.READY:
            self.waiting[entry.route] += 1
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

    def ripen(self, now_us: Instant, standing_us: Instant) -> list[Entry]:
        """Put what has become due in line, the top priority first, at most `limits.RIPEN_MAX` at once.

        Args:
            now_us: the store's clock.
            standing_us: what was planned ahead and is due by then can't be withdrawn any more.

        Returns:
            What was planned ahead of it.
        """
        # I11: by the store's clock, never before.
        for entry in self._later.take(now_us, limits.RIPEN_MAX):
            if self._waits(entry):
                self.line_up(entry)
        ripe = [entry for entry in self._ahead.take(min(now_us, standing_us), limits.RIPEN_MAX) if self._waits(entry)]
        for entry in ripe:
            self.line_up(entry)
        return ripe

    def next_us(self, standing_us: Instant) -> Instant | None:
        """Return when the first of what was set aside is due; of what was planned ahead, what `ripen` takes only."""
        later_us, ahead_us = self._later.first_us(), self._ahead.first_us()
        if ahead_us is None or ahead_us > standing_us:
            return later_us
        return ahead_us if later_us is None else min(ahead_us, later_us)

    def next_ahead_us(self, after_us: Instant) -> Instant | None:
        """Return when the first of what was planned ahead is due, after an instant."""
        return self._ahead.first_us(after_us)

    def unread_jobs(self) -> list[JobId]:
        """Return the job versions that due entries wait for."""
        return list(self._unread)

    def jobs_read(self, ids: Iterable[JobId]) -> list[Entry]:
        """Line up what waited for job versions; return the entries whose version can't be read."""
        unreadable = []
        for job_id in ids:
            for entry in self._unread.pop(job_id, ()):
                if entry.state is EntryState.READY:
                    self.waiting[entry.route] -= 1  # It is counted anew when it is put in line.
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
            if entry.state is EntryState.READY:
                self.waiting[entry.route] -= 1
            if self._waits(entry):
                drawn.append(entry)
        if not waiting:
            self._lines.pop((line.route, line.priority), None)
        return drawn

    def purge(self) -> None:
        """Drop what waits no more, everywhere at once."""
        waits = self._waits
        self.waiting.clear()
        for key, line in tuple(self._lines.items()):
            kept = deque(entry for entry in line if waits(entry))
            if kept:
                self._lines[key] = kept
                self.waiting.update(entry.route for entry in kept if entry.state is EntryState.READY)
            else:
                del self._lines[key]
        for job_id, entries in tuple(self._unread.items()):
            self._unread[job_id] = kept_unread = [entry for entry in entries if waits(entry)]
            self.waiting.update(entry.route for entry in kept_unread if entry.state is EntryState.READY)
        self._later.keep(waits)
        self._ahead.keep(waits)


class _Later:
    """Entries that are set aside until they are due; thousands share one instant."""

    def __init__(self) -> None:
        self._order: list[tuple[Instant, int]] = []
        self._entries: dict[tuple[Instant, int], deque[Entry]] = {}

    def add(self, entry: Entry) -> None:
        key = entry.due_us, -entry.priority
        entries = self._entries.get(key)
        if entries is None:
            entries = self._entries[key] = deque()
            heappush(self._order, key)
        entries.append(entry)

    def first_us(self, after_us: Instant | None = None) -> Instant | None:
        if after_us is None or not self._order or self._order[0][0] > after_us:
            return self._order[0][0] if self._order else None
        return min((due_us for due_us, _ in self._order if due_us > after_us), default=None)

    def take(self, until_us: Instant, count: int) -> list[Entry]:
        """Take up to `count` that are due by an instant, in order of due time and priority."""
        taken: list[Entry] = []
        while self._order and self._order[0][0] <= until_us and len(taken) < count:
            entries = self._entries[self._order[0]]
            while entries and len(taken) < count:
                taken.append(entries.popleft())
            if not entries:
                del self._entries[heappop(self._order)]
        return taken

    def keep(self, waits: Callable[[Entry], bool]) -> None:
        """Drop the others."""
        kept = {key: deque(filter(waits, entries)) for key, entries in self._entries.items()}
        self._entries = {key: entries for key, entries in kept.items() if entries}
        self._order = sorted(self._entries)
