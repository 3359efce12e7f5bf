"""The orders in which executions are listed, and the labels that their rows keep."""

import json
from collections.abc import Sequence

from luciole import limits
from luciole.model.execution import ExecutionState
from luciole.model.ids import ExecutionKey
from luciole.store.bounds import page_place, page_token
from luciole.store.reads import ExecutionFilter, Listing, listing_of
from luciole.store.sql.script import Query, Script

#: Before and behind every number of a key.
_LOW = -(1 << 63)
_HIGH = (1 << 63) - 1
_SHARD_HIGH = limits.SHARDS_MAX

#: Keys of a page, and the token of the next one.
_Keys = tuple[list[ExecutionKey], str | None]


def list_keys(query: ExecutionFilter, shards: int) -> Script[_Keys]:
    """Return the keys of one page in the order that the filter asks for."""
    listing = listing_of(query)
    states = sum(1 << state for state in query.states or ExecutionState)
    if listing is Listing.BY_SCHEDULE:
        return (yield from _by_schedule(query, states, shards))
    if listing is Listing.OPEN:
        return (yield from _open(query, states))
    if listing is Listing.TROUBLED:
        return (yield from _troubled(query, states))
    return (yield from _by_key(query, states))


def _by_schedule(query: ExecutionFilter, states: int, shards: int) -> Script[_Keys]:
    fire_us, at_shard, part = _descending(query, (_HIGH, _SHARD_HIGH, _HIGH))
    # The page before ended inside one shard: the shards below it may go on at its fire time, those above may not.
    starts = [
        (shard, fire_us, part if shard == at_shard else _HIGH if shard < at_shard else _LOW) for shard in range(shards)
    ]
    binds = {"schedule_id": query.schedule_id, "states": states, "limit": query.limit + 1}
    rows = yield Query("list_by_schedule", binds, starts)
    placed = sorted(((-row[2], -row[0], -row[3]), ExecutionKey(*row)) for row in rows)
    return _page(placed, query.limit)


def _open(query: ExecutionFilter, states: int) -> Script[_Keys]:
    start = _descending(query, (_HIGH, _SHARD_HIGH, _HIGH, _HIGH))
    binds = dict(zip(("fire_us", "shard", "schedule_id", "part"), start, strict=True))
    rows = yield Query("list_open", {**binds, "states": states, "limit": query.limit + 1})
    return _page([((-row[2], -row[0], -row[1], -row[3]), ExecutionKey(*row)) for row in rows], query.limit)


def _troubled(query: ExecutionFilter, states: int) -> Script[_Keys]:
    start = _descending(query, (_HIGH, _SHARD_HIGH, _HIGH, _HIGH, _HIGH))
    binds = dict(zip(("at_us", "shard", "schedule_id", "fire_us", "part"), start, strict=True))
    rows = yield Query("list_troubled", {**binds, "states": states, "limit": query.limit + 1})
    placed = [((-row[4], -row[0], -row[1], -row[2], -row[3]), ExecutionKey(*row[:4])) for row in rows]
    return _page(placed, query.limit)


def _by_key(query: ExecutionFilter, states: int) -> Script[_Keys]:
    start = page_place(query.page, (int,) * 4) if query.page else (-1, _LOW, _LOW, _LOW)
    binds = ExecutionKey(*start)._asdict()
    rows = yield Query("list_by_key", {**binds, "states": states, "limit": query.limit + 1})
    return _page([(tuple(row), ExecutionKey(*row)) for row in rows], query.limit)


def _descending(query: ExecutionFilter, first: tuple[int, ...]) -> tuple[int, ...]:
    """Return where a page goes on: its token's numbers, which are negated because they descend."""
    return tuple(-number for number in page_place(query.page, (int,) * len(first))) if query.page else first


def _page(placed: Sequence[tuple[tuple[int, ...], ExecutionKey]], limit: int) -> _Keys:
    chosen = placed[:limit]
    token = page_token(*chosen[-1][0]) if len(placed) > limit else None
    return [key for _, key in chosen], token


def labels_of(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return the labels that a row keeps as text."""
    return () if text is None else tuple((name, value) for name, value in json.loads(text))
