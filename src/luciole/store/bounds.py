"""The checks that every store makes before it writes: batches within their bounds, pages that can be read."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence, Sized
from itertools import pairwise
from typing import Any

from luciole import limits
from luciole.errors import FenceError, InvalidValue, PayloadTooLarge
from luciole.model.execution import EnqueueRequest, ExecutionState
from luciole.model.ids import RouteId, Shard
from luciole.model.instant import Instant
from luciole.model.job import JobSpec
from luciole.model.lease import Lease, trusted_until_us
from luciole.model.outbox import Settlement
from luciole.model.plan import Plan, ReadyRoute, RouteBatch
from luciole.model.routing import ROUTE_MASK
from luciole.model.schedule import NewSchedule
from luciole.model.stride import Stride

#: What UTF-8 or a database can't hold.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

#: What a settlement may make of an execution that goes on.
_GOES_ON = frozenset({ExecutionState.READY, ExecutionState.RETRY_WAIT, ExecutionState.PARKED})


def check_batch(field: str, rows: Sized, most: int) -> None:
    """Refuse a batch that is over its bound (I10).

    Raises:
        InvalidValue: it has more than `most` rows; nothing was written.
    """
    if len(rows) > most:
        raise InvalidValue(f"{field}: {len(rows)} rows in one call; at most {most}, so make several calls")


def check_limit(field: str, limit: int, most: int) -> None:
    """Refuse a limit outside 1 to `most`.

    Raises:
        InvalidValue: it is.
    """
    if not 1 <= limit <= most:
        raise InvalidValue(f"{field}: {limit} is outside 1 to {most}")


def check_shards(shards: Sequence[Shard], count: int) -> None:
    """Refuse shards that this store doesn't have.

    Raises:
        InvalidValue: one is outside 0 to `count - 1`.
    """
    for shard in shards:
        if not 0 <= shard < count:
            raise InvalidValue(f"shard: {shard} is outside 0 to {count - 1}, the shards of this store")


def check_trusted(leases: Iterable[Lease], monotonic_us: int) -> None:
    """Refuse to go on under leases that their holder does not trust any more.

    Args:
        leases: what a guarded write stands on.
        monotonic_us: the host's monotonic clock.

    Raises:
        FenceError: the holder's own deadline for one of them is over.
    """
    check_deadline(trusted_until_us(leases), monotonic_us)


def check_deadline(until_us: int | None, monotonic_us: int) -> None:
    """Refuse to go on once a holder's own deadline is over; None: there is none.

    Raises:
        FenceError: it is.
    """
    if until_us is not None and monotonic_us >= until_us:  # I3: what might be stale is not even sent.
        raise FenceError(
            f"lease: its holder's own deadline passed {monotonic_us - until_us} us ago, so nothing is sent under it; "
            "was this process stopped or starved?"
        )


def check_text(field: str, text: str, most: int) -> None:
    """Refuse a name that is too long, or that no database can keep.

    Raises:
        InvalidValue: it has over `most` characters, a NUL or half a surrogate pair.
    """
    if len(text) > most:
        raise InvalidValue(f"{field}: {len(text)} characters; at most {most}")
    if not (text.isascii() and "\x00" not in text) and _UNSTORABLE.search(text):
        raise InvalidValue(f"{field}: {text[:80]!r} has a NUL or half a surrogate pair; leave that out")


def stored_text(text: str | None, most: int) -> str | None:
    """Return a text that somebody else wrote as every database can keep it; it never blocks a state change (I8).

    NUL and halves of surrogate pairs become U+FFFD; what is over `most` characters is cut off.
    """
    return None if text is None else _UNSTORABLE.sub("\ufffd", text[:most])


def check_plan(plan: Plan, most: int) -> None:
    """Refuse a chunk that no store may write: too long, one schedule twice, a cursor that does not go forward (I2).

    Raises:
        InvalidValue: it is such a chunk; the message names the schedule.
    """
    check_batch("plan.moves", plan.moves, most)
    seen = set()
    for move in plan.moves:
        schedule_id, fire_us = move.cursor.schedule_id, move.cursor.fire_us
        if schedule_id in seen:
            raise InvalidValue(f"plan.moves: schedule {schedule_id} is there twice; plan it in two chunks")
        seen.add(schedule_id)
        fires, next_fire_us = move.fires, move.next_fire_us
        if len(fires) == 1 and next_fire_us is not None and fire_us <= fires[0].fire_us < next_fire_us:
            continue  # Nearly every move; a burst has tens of thousands of them.
        check_batch(f"fires of schedule {schedule_id}", fires, limits.CATCH_UP_MAX)
        # I2: cursors only move forward, and no fire lies outside the step.
        end_us = limits.INSTANT_MAX_US + 1 if move.next_fire_us is None else move.next_fire_us
        times = [fire_us - 1, *(fire.fire_us for fire in move.fires), max(end_us, fire_us)]
        if end_us <= fire_us or any(later <= earlier for earlier, later in pairwise(times)):
            raise InvalidValue(
                f"plan.moves: the step of schedule {schedule_id} from {fire_us} to {end_us} does not go forward, "
                "or its fire times are not ascending inside it"
            )


def check_stride(stride: Stride, most: int) -> None:
    """Refuse a stride that no store may write: too long, one thing twice, a step that does not go forward (I2).

    Raises:
        InvalidValue: it is such a stride.
    """
    cursors = sum(share.cursors for share in stride.shares)
    if cursors > most:
        raise InvalidValue(f"stride.shares: {cursors} cursors in one call; at most {most}, so make several calls")
    check_batch("stride.steps", stride.steps, most)
    if len({share.shard for share in stride.shares}) < len(stride.shares):
        raise InvalidValue("stride.shares: a shard is there twice; give each shard one share")
    if len({step.group for step in stride.steps}) < len(stride.steps):
        raise InvalidValue("stride.steps: a group is there twice; give each group one step")
    for step in stride.steps:
        if step.next_fire_us is not None and step.next_fire_us <= step.group.fire_us:
            raise InvalidValue(
                f"stride.steps: the step from {step.group.fire_us} to {step.next_fire_us} does not go forward"
            )


def page_token(*place: str | int) -> str:
    """Return the token of a page that goes on after this place in the order of its verb."""
    return json.dumps(place, separators=(",", ":"))


def page_place(token: str, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """Return the place that `page_token` was given, values of these kinds.

    Raises:
        InvalidValue: the text is no token of this listing.
    """
    try:
        place = json.loads(token)
    except ValueError:
        place = None
    if not isinstance(place, list) or tuple(type(item) for item in place) != kinds:
        raise InvalidValue(f"page: {token[:80]!r} is no token of this listing; pass the `next` of its former page")
    return tuple(place)


def check_request(request: EnqueueRequest, shards: int) -> None:
    """Refuse a request that is over a bound (I10).

    Raises:
        InvalidValue: a field is outside its bounds; the message names it.
        PayloadTooLarge: the payload is.
    """
    if not 0 <= request.shard < shards:
        check_shards([request.shard], shards)
    if request.request_id < 1:
        raise InvalidValue(f"request_id: {request.request_id} is not positive; take ids with `take_ids`")
    if not limits.PRIORITY_MIN <= request.priority <= limits.PRIORITY_MAX:
        raise InvalidValue(f"priority: {request.priority} is outside {limits.PRIORITY_MIN} to {limits.PRIORITY_MAX}")
    check_text("namespace", request.namespace, limits.NAME_LENGTH_MAX)
    check_text("content_type", request.content_type, limits.NAME_LENGTH_MAX)
    if request.key is not None:
        check_text("key", request.key, limits.KEY_LENGTH_MAX)
    if request.labels:
        check_labels(request.labels)
    if not 0 <= request.route <= ROUTE_MASK:
        raise InvalidValue(f"route: {request.route} is outside 0 to {ROUTE_MASK}; make it with `route_of`")
    if request.delay_us < 0:
        raise InvalidValue(f"delay: {request.delay_us} us is negative")
    if request.payload is not None and len(request.payload) > limits.PAYLOAD_BYTES_MAX:
        raise PayloadTooLarge(f"payload: {len(request.payload)} bytes; at most {limits.PAYLOAD_BYTES_MAX}")


def check_labels(labels: Sequence[tuple[str, str]]) -> None:
    """Refuse labels that are too many or can't be kept.

    Raises:
        InvalidValue: they are.
    """
    check_batch("labels", labels, limits.LABELS_MAX)
    for name, value in labels:
        check_text("labels", name, limits.NAME_LENGTH_MAX)
        check_text("labels", value, limits.NAME_LENGTH_MAX)


def check_job(spec: JobSpec) -> None:
    """Refuse a job that is over a bound (I10).

    Raises:
        InvalidValue: a field is outside its bounds; the message names it.
        PayloadTooLarge: the payload is.
    """
    check_text("namespace", spec.namespace, limits.NAME_LENGTH_MAX)
    check_text("handler", spec.handler, limits.NAME_LENGTH_MAX)
    check_text("content_type", spec.content_type, limits.NAME_LENGTH_MAX)
    check_labels(spec.labels)
    if len(spec.payload) > limits.PAYLOAD_BYTES_MAX:
        raise PayloadTooLarge(f"payload: {len(spec.payload)} bytes; at most {limits.PAYLOAD_BYTES_MAX}")


def check_schedules(schedules: Sequence[NewSchedule]) -> None:
    """Refuse schedules that no store may write: too many at once, one name twice, a name that can't be kept.

    Raises:
        InvalidValue: a field is outside its bounds; the message names it.
        PayloadTooLarge: the payload of a job is.
    """
    check_batch("schedules", schedules, limits.REGISTER_BATCH_MAX)
    specs = [schedule.spec for schedule in schedules]
    names = Counter((spec.namespace, spec.name) for spec in specs)
    for namespace, name in names:
        check_text("name", name, limits.NAME_LENGTH_MAX)
        if names[namespace, name] > 1:
            raise InvalidValue(f"schedules: {name!r} is there twice in namespace {namespace!r}; choose one")
    # Each text and each job once, however many schedules share it.
    for namespace in {spec.namespace for spec in specs}:
        check_text("namespace", namespace, limits.NAME_LENGTH_MAX)
    for owner in {spec.owner for spec in specs}:
        check_text("owner", owner, limits.NAME_LENGTH_MAX)
    for trigger in {spec.trigger for spec in specs}:
        check_text("trigger", trigger, limits.TRIGGER_LENGTH_MAX)
    for job in {id(spec.job): spec.job for spec in specs}.values():
        check_job(job)
    for schedule in schedules:
        left = schedule.overdue
        if left and not (left.fires > 0 and left.first_us <= left.last_us):
            raise InvalidValue(f"schedules: what {schedule.spec.name!r} leaves is no range of fire times: {left}")


def check_settlements(settlements: Sequence[Settlement]) -> None:
    """Refuse settlements that no store may write: too many at once, or to a state that no attempt ends in.

    Raises:
        InvalidValue: they are.
    """
    check_batch("settlements", settlements, limits.REPORT_BATCH_MAX)
    for state in {settlement.state for settlement in settlements}:
        if not state.terminal and state not in _GOES_ON:
            raise InvalidValue(f"settlements: no attempt ends in the state {state.name.lower()}")


def seen_routes(rows: Iterable[tuple[Shard, int, RouteId, Instant]], before_us: Instant, limit: int) -> RouteBatch:
    """Return what a look at ready routes found.

    Args:
        rows: shard, priority, route and its first due time, ordered; at least `limit` of each shard and priority that
            has so many.
        before_us: routes whose first entry is due later are left out.
        limit: so many of each shard and priority are seen; then the look is cut.
    """
    routes = []
    seen: Counter[tuple[Shard, int]] = Counter()
    cut: list[RouteId] = []
    for shard, priority, route, due_us in rows:
        seen[shard, priority] += 1
        if seen[shard, priority] > limit:
            continue
        if due_us <= before_us:
            routes.append(ReadyRoute(shard, priority, route))
        if seen[shard, priority] == limit:
            cut.append(route)
    return RouteBatch(routes=tuple(routes), after=min(cut, default=None))
