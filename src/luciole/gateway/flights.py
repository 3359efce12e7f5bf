"""Flights: attempts that an executor has, and the session that speaks for each."""

from collections.abc import Iterator

from luciole.gateway.session import Flight, Session
from luciole.model.ids import ExecutionKey
from luciole.model.instant import Instant


class Flights:
    """All flights of this node by execution; one attempt of an execution at a time."""

    def __init__(self) -> None:
        self._flights: dict[ExecutionKey, Flight] = {}
        self._orphans: dict[ExecutionKey, Flight] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, key: ExecutionKey) -> bool:
        return key in self._flights

    @property
    def orphans(self) -> int:
        """How many wait for their executor to come back."""
        return len(self._orphans)

    def all(self) -> tuple[Flight, ...]:
        """Return all flights, orphans among them."""
        return tuple(self._flights.values())

    def get(self, key: ExecutionKey) -> Flight | None:
        """Return the flight of an execution."""
        return self._flights.get(key)

    def of_attempt(self, key: ExecutionKey, attempt: int) -> Flight | None:
        """Return the flight of an execution while it is this very attempt."""
        flight = self._flights.get(key)
        return flight if flight is not None and flight.entry.attempt == attempt else None

    def begin(self, flight: Flight) -> None:
        """Note that a session has an attempt; an older one of the same execution is nobody's concern any more."""
        key = flight.entry.key
        former = self._flights.get(key)
        if former is not None:
            self._remove(former)
        self._flights[key] = flight
        flight.session.flights[key] = flight

    def end(self, key: ExecutionKey, attempt: int) -> Flight | None:
        """Forget a flight while it is this very attempt."""
        flight = self.of_attempt(key, attempt)
        if flight is not None:
            self._remove(flight)
        return flight

    def _remove(self, flight: Flight) -> None:
        key = flight.entry.key
        del self._flights[key]
        if flight.orphaned_until_us is None:
            flight.session.flights.pop(key, None)
        else:
            self._orphans.pop(key, None)

    def orphan(self, flight: Flight, until_us: int) -> None:
        """Note that nobody speaks for a flight any more; it is given time until then (monotonic)."""
        if flight.orphaned_until_us is None:
            flight.orphaned_until_us = until_us
            flight.session.flights.pop(flight.entry.key, None)
            self._orphans[flight.entry.key] = flight

    def move(self, flight: Flight, session: Session) -> None:
        """Let another session speak for a flight."""
        key = flight.entry.key
        flight.session.flights.pop(key, None)
        self._orphans.pop(key, None)
        flight.orphaned_until_us = None
        flight.session = session
        flight.foreign = True
        session.flights[key] = flight

    def overdue_orphans(self, now_us: int) -> Iterator[Flight]:
        """Yield the flights whose executor did not come back in time (monotonic)."""
        for flight in tuple(self._orphans.values()):
            if flight.orphaned_until_us is not None and flight.orphaned_until_us <= now_us:
                yield flight

    def next_orphan_us(self) -> Instant | None:
        """Return when the first orphan runs out of time (monotonic)."""
        ends = (flight.orphaned_until_us for flight in self._orphans.values())
        return min((end for end in ends if end is not None), default=None)
