"""Routing: which session gets how much of what waits, decided on counts alone.

Entries wait in lines; all of one line ask the same of an executor (its route) and have one priority. The higher
priority is served first, and the sessions that can serve a line share it as evenly as their credits allow.
"""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple

from luciole import limits
from luciole.model.ids import ExecutorId, RouteId

#: The numbers of routes have so many bits, so that the sum of two is a number that every store can keep.
ROUTE_MASK: Final = (1 << 62) - 1


class Route(NamedTuple):
    """What an execution asks of its executor."""

    namespace: str
    handler: str
    labels: frozenset[tuple[str, str]] = frozenset()  #: it must carry all of them


class Offer(NamedTuple):
    """What one session can take."""

    executor_id: ExecutorId
    namespace: str
    handlers: frozenset[str]
    labels: frozenset[tuple[str, str]]
    credits: int


class Line(NamedTuple):
    """Entries of one route and one priority that are due."""

    route: Route
    priority: int
    waiting: int


@lru_cache(maxsize=limits.ROUTE_NUMBERS_KEPT)
def route_id(namespace: str, handler: str, labels: tuple[tuple[str, str], ...]) -> RouteId:
    """Return the number by which stores tell apart what jobs ask of an executor; hardly ever do two share one."""
    hasher = sha256()
    for text in (namespace, handler, *(text for pair in sorted(set(labels)) for text in pair)):
        part = text.encode("utf-8", "surrogatepass")
        hasher.update(len(part).to_bytes(8, "big"))
        hasher.update(part)
    # 0 says that a route is not known.
    return int.from_bytes(hasher.digest()[:8], "big") & ROUTE_MASK or 1


def labels_text(labels: Iterable[tuple[str, str]]) -> str | None:
    """Return labels as stores keep them; None for no labels."""
    pairs = [list(pair) for pair in labels]
    return json.dumps(pairs) if pairs else None


def labels_mark(labels: Iterable[tuple[str, str]]) -> int:
    """Return what a request's own labels add to the number of its job's route; 0 for none.

    It is made of their text alone and by means that a database has as well.
    """
    text = labels_text(labels)
    return 0 if text is None else int(sha256(text.encode()).hexdigest()[:15], 16)


def route_of(job_route: RouteId, mark: int) -> RouteId:
    """Return the number of what one execution asks: its job's, and what `labels_mark` says of its own labels."""
    return (job_route + mark) & ROUTE_MASK


class Share(NamedTuple):
    """What one session gets of one line: indexes into the offers and the lines, and how many entries."""

    offer: int
    line: int
    entries: int


def can_serve(offer: Offer, route: Route) -> bool:
    """Whether a session's executor knows the handler and carries the labels."""
    return route.handler in offer.handlers and route.namespace == offer.namespace and route.labels <= offer.labels


def assign(lines: Sequence[Line], offers: Sequence[Offer], *, turn: int = 0) -> list[Share]:
    """Share out what waits.

    Args:
        lines: what waits, any order.
        offers: the sessions, any order.
        turn: grows with each call; moves the small remainders on, so that nobody is always last.

    Returns:
        Shares of at least one entry, the highest priority first; their sums exceed neither credits nor lines.
    """
    free = [offer.credits for offer in offers]
    left = [line.waiting for line in lines]
    shares: list[Share] = []
    by_priority: dict[int, list[int]] = {}
    for index, line in enumerate(lines):
        by_priority.setdefault(line.priority, []).append(index)
    able = _Able(offers)
    for priority in sorted(by_priority, reverse=True):
        equals = by_priority[priority]
        start = turn % len(equals)
        for count, index in enumerate(equals[start:] + equals[:start]):
            fit = [offer for offer in able.of(lines[index].route) if free[offer] > 0]
            if not fit:
                continue
            # The lines that come after it in this priority get their part of the same credits.
            credit = sum(free[offer] for offer in fit)
            quota = min(left[index], max(1, -(-credit // (len(equals) - count))))
            shares += _split(index, quota, fit, free, left, turn)
        for index in equals:  # What others of this priority left over.
            fit = [offer for offer in able.of(lines[index].route) if free[offer] > 0]
            if left[index] and fit:
                shares += _split(index, left[index], fit, free, left, turn)
    return shares


class _Able:
    """Which offers can serve a route, found once for each route."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._offers = offers
        self._found: dict[Route, list[int]] = {}

    def of(self, route: Route) -> list[int]:
        found = self._found.get(route)
        if found is None:
            found = self._found[route] = [index for index, offer in enumerate(self._offers) if can_serve(offer, route)]
        return found


def _split(line: int, quota: int, fit: Sequence[int], free: list[int], left: list[int], turn: int) -> list[Share]:
    """Share entries of one line among sessions, evenly up to their credits; keep `free` and `left` true."""
    given = dict.fromkeys(fit, 0)
    rest = quota
    open_offers = list(fit)
    while rest and open_offers:
        each, extra = divmod(rest, len(open_offers))
        start = turn % len(open_offers)
        turn += 1
        for position, offer in enumerate(open_offers[start:] + open_offers[:start]):
            part = min(each + (position < extra), free[offer])
            given[offer] += part
            free[offer] -= part
            rest -= part
        open_offers = [offer for offer in open_offers if free[offer] > 0]
    left[line] -= quota - rest
    return [Share(offer, line, entries) for offer, entries in given.items() if entries]
