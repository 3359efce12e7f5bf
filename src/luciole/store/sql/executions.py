"""Executions by request, and their end, over SQL."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from luciole import limits
from luciole.errors import InvalidValue, NotFound
from luciole.model.execution import Enqueued, EnqueueRequest, ExecutionState, Origin
from luciole.model.ids import NO_SCHEDULE, ExecutionKey, Shard
from luciole.model.instant import Instant
from luciole.model.outbox import EntryState
from luciole.model.routing import labels_mark, labels_text
from luciole.model.schedule import OverlapCode, ScheduleState
from luciole.store.bounds import check_batch, check_limit, check_request, check_shards
from luciole.store.reads import Page
from luciole.store.sql.cancelling import cancel, entries_of
from luciole.store.sql.dialect import Lane, Role
from luciole.store.sql.hints import hint_text
from luciole.store.sql.overlap import Admission, Open, flags_under, open_of_row
from luciole.store.sql.reads import states_of
from luciole.store.sql.script import Query, Script

#: A request key with its namespace.
_Name: TypeAlias = tuple[str, str | None]

#: Before every key of a shard.
_START = (-1, limits.INSTANT_MIN_US, -(1 << 63))


class SqlExecutions(Role):
    """The role `ExecutionStore`."""

    async def enqueue(self, requests: Sequence[EnqueueRequest]) -> tuple[Enqueued, ...]:
        """Make executions and their entries durable; answers in order."""
        self._check(requests)
        answers = await self._db.write(Lane.ENQUEUE, enqueue, requests)
        self._db.hint(frozenset(answer.key.shard for answer in answers if answer.created))
        return answers

    def enqueue_sql(self, kind: str) -> Any:  # noqa: ANN401 - sync or async by the kind of connection
        """Return `enqueue(connection, requests)` for a user's own transaction; awaitable for async kinds."""
        run_inside = self._db.inside(kind)

        def enqueue_inside(connection: Any, requests: Sequence[EnqueueRequest]) -> Any:  # noqa: ANN401 - same
            self._check(requests)
            return run_inside(connection, _enqueue_and_tell, requests)

        return enqueue_inside

    async def trigger_schedule(self, request: EnqueueRequest) -> Enqueued | None:
        """Create an execution of a schedule by request, or none where overlap forbids it."""
        check_request(request, self.shards)
        answer = await self._db.write(Lane.ENQUEUE, _trigger, request)
        if answer and answer.created:
            self._db.hint(frozenset({request.shard}))
        return answer

    async def request_cancel(self, keys: Sequence[ExecutionKey]) -> tuple[ExecutionState | None, ...]:
        """Ask for the end of executions, durably; return the state of each afterwards."""
        check_batch("keys", keys, limits.PAGE_MAX)
        states = await self._db.write(Lane.ENQUEUE, _request_cancel, keys)
        self._db.hint(frozenset(key.shard for key in keys))
        return states

    async def unpark(self, keys: Sequence[ExecutionKey]) -> int:
        """Make parked executions ready again, due now; return how many were parked."""
        check_batch("keys", keys, limits.PAGE_MAX)
        count = await self._db.write(Lane.ENQUEUE, _unpark, keys)
        self._db.hint(frozenset(key.shard for key in keys))
        return count

    async def prune(
        self, shard: Shard, before_us: Instant, *, after: ExecutionKey | None, limit: int
    ) -> Page[ExecutionKey]:
        """Delete terminal executions that finished before an instant, walking a shard in key order."""
        check_limit("limit", limit, limits.PRUNE_BATCH_MAX)
        check_shards([shard], self.shards)
        return await self._db.write(Lane.CATALOG, _prune, shard, before_us, after, limit)

    def _check(self, requests: Sequence[EnqueueRequest]) -> None:
        check_batch("requests", requests, limits.ENQUEUE_BATCH_MAX)
        for request in requests:
            check_request(request, self.shards)
            if request.schedule_id != NO_SCHEDULE:
                raise InvalidValue("schedule_id: an execution of a schedule comes by `trigger_schedule`")


def enqueue(requests: Sequence[EnqueueRequest], *, inside: bool = False) -> Script[tuple[Enqueued, ...]]:
    """Make executions and their entries durable; see `ExecutionStore.enqueue`.

    Args:
        requests: what to create.
        inside: it is part of a transaction of somebody else's, which must survive whatever is found.
    """
    if not inside and _are_plain(requests):
        return (yield from _enqueue_plain(requests))
    if len(requests) == 1:
        answer = yield from _enqueue_lone(requests[0])
        if answer is not None:
            return (answer,)
    return (yield from _enqueue_any(requests))


def _enqueue_any(requests: Sequence[EnqueueRequest], *, alone: bool = True) -> Script[tuple[Enqueued, ...]]:
    answers: dict[int, Enqueued] = {}
    turns = list(_turns(requests))
    alone = alone and len(turns) == 1 and all(request.key is None for request in requests)
    for turn in turns:
        answers.update((yield from _enqueue_turn(turn, alone)))
    return tuple(answers[place] for place in range(len(requests)))


def _enqueue_plain(requests: Sequence[EnqueueRequest]) -> Script[tuple[Enqueued, ...]]:
    """Create executions that have nothing but a payload; what is there already, for whatever reason, is looked up."""
    rows = [_plain_row(request) for request in requests]
    if len(rows) > 1:
        rows.sort()
    found = yield Query("enqueue_new", rows=rows, alone=True, new=True)
    new = {part: fire_us for fire_us, part in found}
    old: Iterator[Enqueued] = iter(())
    if len(new) < len(requests):
        rest = [request for request in requests if -request.request_id not in new]
        old = iter((yield from _enqueue_any(rest, alone=not new)))
    return tuple(
        [
            Enqueued(ExecutionKey(request.shard, NO_SCHEDULE, fire_us, part), created=True)
            if (fire_us := new.get(part := -request.request_id)) is not None
            else next(old)
            for request in requests
        ]
    )


def _enqueue_and_tell(requests: Sequence[EnqueueRequest]) -> Script[tuple[Enqueued, ...]]:
    """Enqueue in a transaction of somebody else's, whose commit nobody here sees: the hint goes out with it."""
    answers = yield from enqueue(requests, inside=True)
    shards = {answer.key.shard for answer in answers if answer.created}
    if shards:
        yield Query("tell_at_commit", {"shards": hint_text(shards)})
    return answers


def _enqueue_lone(request: EnqueueRequest) -> Script[Enqueued | None]:
    """Create one execution in one statement: a lone caller waits for each round trip.

    Returns:
        None: nothing was written. It exists, or somebody else's claim of its request key can't be seen yet, or the
        store has no such statement.
    """
    row = _row(request, request.fire_us)
    if request.key is not None:
        rows = yield Query("enqueue_named", rows=(row,), alone=True)
        return Enqueued(key=ExecutionKey(*rows[0][:4]), created=rows[0][4]) if rows else None
    rows = yield Query("enqueue", rows=(row,), alone=True)
    return Enqueued(key=_key(request, rows[0][0]), created=True) if rows else None


def _turns(requests: Sequence[EnqueueRequest]) -> Iterable[dict[int, EnqueueRequest]]:
    """Part a batch so that no request id and no request key comes twice in a turn."""
    turn: dict[int, EnqueueRequest] = {}
    taken: set[object] = set()
    for place, request in enumerate(requests):
        marks: set[object] = {request.request_id}
        if request.key is not None:
            marks.add((request.namespace, request.key))
        if taken & marks:
            yield turn
            turn, taken = {}, set()
        turn[place] = request
        taken |= marks
    yield turn


def _enqueue_turn(turn: Mapping[int, EnqueueRequest], alone: bool) -> Script[dict[int, Enqueued]]:  # noqa: FBT001 - private
    claimed, known = yield from _claim([request for request in turn.values() if request.key is not None])
    fires: dict[int, Instant | None] = {}
    for place, request in turn.items():
        if (request.namespace, request.key) not in known:
            fires[place] = claimed.get((request.namespace, request.key), request.fire_us)
    new = yield from _insert([_row(turn[place], fire_us) for place, fire_us in fires.items()], alone=alone)
    answers = {}
    for place, request in turn.items():
        fire_us = new.get(request.request_id)
        if place not in fires:
            answers[place] = Enqueued(key=known[request.namespace, request.key], created=False)
        elif fire_us is not None:
            answers[place] = Enqueued(key=_key(request, fire_us), created=True)
        else:
            # It exists, at the time that it asked for or at this very microsecond.
            fire_us = fires[place]
            if fire_us is None:
                fire_us = (yield Query("clock"))[0][0] + request.delay_us
            answers[place] = Enqueued(key=_key(request, fire_us), created=False)
    return answers


def _claim(
    requests: Sequence[EnqueueRequest],
) -> Script[tuple[dict[_Name, Instant], dict[_Name, ExecutionKey]]]:
    """Take request keys for new executions; return the fire times of those taken, and what the others name."""
    if not requests:
        return {}, {}
    rows = [
        (
            request.namespace,
            request.key,
            request.shard,
            request.schedule_id,
            request.fire_us,
            request.delay_us,
            -request.request_id,
        )
        for request in sorted(requests, key=lambda request: (request.namespace, request.key))
    ]
    claimed = {(row[0], row[1]): row[2] for row in (yield Query("claim_request_keys", rows=rows))}
    names = [row[:2] for row in rows if row[:2] not in claimed]
    known = {(row[0], row[1]): ExecutionKey(*row[2:]) for row in (yield Query("find_request_keys", rows=names))}
    return claimed, known


def _insert(rows: Iterable[tuple[Any, ...]], *, alone: bool = False) -> Script[dict[int, Instant]]:
    """Insert executions with their entries; return the fire time of each new one by its request id."""
    new = yield Query("enqueue", rows=sorted(rows, key=lambda row: row[:3]), alone=alone)
    return {-part: fire_us for fire_us, part in new}


def _key(request: EnqueueRequest, fire_us: Instant) -> ExecutionKey:
    return ExecutionKey(request.shard, request.schedule_id, fire_us, -request.request_id)


def _row(
    request: EnqueueRequest, fire_us: Instant | None, *, flags: int | None = None, waits: bool = False
) -> tuple[Any, ...]:
    return (
        request.shard,
        request.schedule_id,
        -request.request_id,
        fire_us,
        request.payload,
        request.key,
        request.delay_us,
        request.job_id,
        int(ExecutionState.QUEUED if waits else ExecutionState.READY),
        int(EntryState.WAITING if waits else EntryState.READY),
        request.priority,
        request.flags if flags is None else flags,
        int(request.origin),
        None if request.payload is None else request.content_type,
        labels_text(request.labels),
        request.deadline_us,
        request.namespace,
        None if request.replay_of is None else request.replay_of.text(),
        None if request.parent is None else request.parent.text(),
        request.route,
        0 if request.route else labels_mark(request.labels),
    )


def _are_plain(requests: Sequence[EnqueueRequest]) -> bool:
    """Tell whether requests have nothing but a payload, and no time of their own, by which they could exist already."""
    for request in requests:
        if (
            request.key is not None
            or request.fire_us is not None
            or request.deadline_us is not None
            or request.labels
            or request.payload is None
            or not request.route
            or request.origin is not Origin.ENQUEUE
            or request.replay_of is not None
            or request.parent is not None
        ):
            return False
    return len(requests) == 1 or len({request.request_id for request in requests}) == len(requests)


def _plain_row(request: EnqueueRequest) -> tuple[Any, ...]:
    return (
        request.shard,
        -request.request_id,
        request.payload,
        request.job_id,
        request.delay_us,
        request.priority,
        request.flags,
        request.content_type,
        request.namespace,
        request.route,
    )


def _trigger(request: EnqueueRequest) -> Script[Enqueued | None]:
    group = (request.shard, request.schedule_id)
    yield Query("lock_cursors", rows=[group])
    found = yield Query("schedule_of_request", {"schedule_id": request.schedule_id, "shard": request.shard})
    if not found or found[0][0] == ScheduleState.DELETED:
        raise NotFound(f"schedule {request.schedule_id}: there is none in shard {request.shard}")
    overlap = OverlapCode(found[0][1] & 3)
    fire_us = request.fire_us
    if fire_us is None:
        fire_us = (yield Query("clock"))[0][0] + request.delay_us
    key = _key(request, fire_us)
    known = yield from _known(request, key)
    if known:
        return Enqueued(key=known, created=False)
    # In a statement after the lock, so that a plan and this one can't both see nothing.
    rows = yield Query("open_of_schedules", rows=[group])
    opened = open_of_row(rows[0]) if rows else Open()
    if opened.gives_way(overlap):
        opened.cancelled((yield from cancel((yield from entries_of([group])))).values())
    admission = opened.admit(overlap, 0)  # It is the only one that is made.
    if admission is Admission.SKIP:
        return None
    if request.key is not None:
        yield from _claim([request._replace(fire_us=fire_us)])
    flags = flags_under(overlap, request.flags)
    yield from _insert([_row(request, fire_us, flags=flags, waits=admission is Admission.WAIT)])
    yield Query("bump_cursors", rows=[(*group, 1)])
    return Enqueued(key=key, created=True)


def _known(request: EnqueueRequest, key: ExecutionKey) -> Script[ExecutionKey | None]:
    """Return the execution that a request names already, by its request key or by its id."""
    if request.key is not None:
        named = yield Query("find_request_keys", rows=[(request.namespace, request.key)])
        if named:
            return ExecutionKey(*named[0][2:])
    exists = yield Query("execution_states", rows=[key])
    return key if exists else None


def _request_cancel(keys: Sequence[ExecutionKey]) -> Script[tuple[ExecutionState | None, ...]]:
    after = yield from cancel(keys)
    return (yield from states_of(keys)) if after.keys() != set(keys) else tuple(after[key] for key in keys)


def _unpark(keys: Sequence[ExecutionKey]) -> Script[int]:
    rows = yield Query("lock_entries", rows=sorted(set(keys)))
    parked = [tuple(row[:4]) for row in rows if row[5] == EntryState.PARKED]
    yield Query("unpark_entries", rows=parked)
    yield Query("delete_failures", rows=parked)
    return len(parked)


def _prune(shard: Shard, before_us: Instant, after: ExecutionKey | None, limit: int) -> Script[Page[ExecutionKey]]:
    start = zip(("schedule_id", "fire_us", "part"), _START if after is None else after[1:], strict=True)
    seen = yield Query("prune_walk", {"shard": shard, "limit": limit, **dict(start)})
    ended = [row for row in seen if ExecutionState(row[4]).terminal and row[5] is not None and row[5] < before_us]
    keys = tuple(ExecutionKey(*row[:4]) for row in ended)
    for name in ("delete_executions", "delete_attempts", "delete_failures"):
        yield Query(name, rows=keys)
    yield Query("delete_request_keys", rows=sorted((row[6], row[7]) for row in ended if row[7] is not None))
    if len(seen) == limit:
        return Page(rows=keys, next=ExecutionKey(*seen[-1][:4]).text())
    yield Query("prune_ledger", {"shard": shard, "before_us": before_us, "limit": limit})
    return Page(rows=keys, next=None)
