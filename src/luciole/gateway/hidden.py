"""What a backlog hides: ready entries that polling does not come to, because what is due before them fills memory."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from luciole import limits
from luciole.gateway.holds import Holds
from luciole.gateway.jobs import JobShelf
from luciole.gateway.session import Session
from luciole.model.ids import RouteId, Shard
from luciole.model.instant import Instant
from luciole.model.outbox import Entry
from luciole.model.plan import ReadyRoute
from luciole.model.routing import Offer, Route, can_serve
from luciole.runtime.telemetry import Telemetry
from luciole.store.spi import OutboxStore


class _Capacity:
    """What the sessions of one moment could take of each route."""

    def __init__(self, offers: Iterable[Offer]) -> None:
        credits_: Counter[Offer] = Counter()
        for offer in offers:  # Most executors differ in nothing else.
            credits_[offer._replace(executor_id="", credits=0)] += offer.credits
        self._kinds = credits_
        self._found: dict[Route, int | None] = {}

    def of(self, route: Route) -> int | None:
        """Return the free credits of those that serve a route; None: nobody does."""
        if route not in self._found:
            able = [credits_ for kind, credits_ in self._kinds.items() if can_serve(kind, route)]
            self._found[route] = sum(able) if able else None
        return self._found[route]


@dataclass(slots=True, kw_only=True)
class Hidden:
    """Finds what could run, behind what can't.

    Polling takes the top priority and then what is due first, up to a bound. As long as no executor has room for that,
    nothing of it leaves memory, and polling would never come to the work of another handler behind it, for which
    there is room. So the store is asked what the entries of such a shard ask of executors, and then for entries of
    those routes that memory is short of: two questions, however long the backlog is.
    """

    store: OutboxStore
    telemetry: Telemetry
    holds: Holds
    jobs: JobShelf
    sessions: Callable[[], Sequence[Session]]
    _after: RouteId = -1  #: where the next look begins, because the last one was cut
    _turn: int = 0
    _routes: dict[RouteId, Route] = field(default_factory=dict)  #: those that were read before

    async def find(self, shards: Collection[Shard], before_us: Instant) -> list[Entry]:
        """Return ready entries that memory does not have and should take."""
        capacity = _Capacity(session.offer() for session in self.sessions() if not session.draining)
        seen = await self.telemetry.timed(
            "ready_routes",
            self.store.ready_routes(sorted(shards), before_us, after=self._after, limit=limits.ROUTES_MAX),
        )
        self._after = -1 if seen.after is None else seen.after
        wanted = [place for place in seen.routes if self._is_wanted(place, capacity)]
        if not wanted:
            return []
        start = self._turn % len(wanted)
        self._turn = start + limits.PAGE_MAX  # Where they are too many for one question, each gets its turn.
        wanted = (wanted[start:] + wanted[:start])[: limits.PAGE_MAX]
        read = self.holds.begin_read()
        entries: Sequence[Entry] = ()
        try:
            entries = await self.telemetry.timed(
                "route_entries", self.store.route_entries(wanted, before_us, limit=self._limit(wanted))
            )
            await self.jobs.load({entry.job_id for entry in entries})
        finally:
            news = self.holds.end_read(read, entries)
        taken = self._take(news, capacity)
        self.telemetry.count("found_behind_backlog", len(taken))
        return taken

    def _is_wanted(self, place: ReadyRoute, capacity: _Capacity) -> bool:
        hold = self.holds.shards.get(place.shard)
        if hold is None:
            return False
        route = self._routes.get(place.route)
        if route is None:
            return True  # What it asks is known once an entry of it was read.
        free = capacity.of(route)
        if free is None:
            return False
        # Some of every shard is there for when an executor has room again, so that none of them starves.
        return free > self.holds.lines.waiting[place.route] or not hold.routes[place.route]

    def _limit(self, wanted: Sequence[ReadyRoute]) -> int:
        """Return how much to read of each route: what is in memory comes back, too, and is no news."""
        sharing = max(Counter(place.shard for place in wanted).values())
        known = 0
        for place in wanted:
            hold = self.holds.shards.get(place.shard)
            if hold is not None:
                # A next attempt that never left memory does not know its route.
                known = max(known, hold.routes[place.route] + hold.routes[0])
        return min(max(limits.READY_REFILL // sharing, limits.ROUTE_REFILL_MIN) + known, limits.HELD_MAX)

    def _take(self, news: Iterable[Entry], capacity: _Capacity) -> list[Entry]:
        """Choose what memory takes: what an executor has room for, and a little of what it will have room for."""
        taken = []
        waiting = self.holds.lines.waiting
        going: Counter[Route] = Counter()
        staying: Counter[tuple[Shard, RouteId]] = Counter()
        spare: dict[Shard, int] = {}
        for entry in news:
            job = self.jobs.get(entry.job_id)
            if job is None:
                continue  # It can't be read, which is seen to when polling comes to it.
            route = job[1]
            if entry.labels:
                route = route._replace(labels=route.labels | frozenset(entry.labels))
            if entry.route:
                self._learn(entry.route, route)
            free = capacity.of(route)
            if free is None:
                continue
            if free > waiting[entry.route] and going[route] < max(2 * free, limits.ROUTE_REFILL_MIN):
                going[route] += 1  # What runs now, and as much to follow it.
                taken.append(entry)
                continue
            shard = entry.key.shard
            hold = self.holds.shards[shard]
            left = spare.setdefault(shard, self.holds.room(shard, behind=True))
            if left and not hold.routes[entry.route] and staying[shard, entry.route] < limits.ROUTE_REFILL_MIN:
                staying[shard, entry.route] += 1
                spare[shard] -= 1
                taken.append(entry)
        return taken

    def _learn(self, number: RouteId, route: Route) -> None:
        if len(self._routes) >= limits.ROUTES_KEPT:
            self._routes.clear()  # All of them come back by being read again.
        self._routes[number] = route
