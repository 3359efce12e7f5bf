"""Schedules: declared, paused, resumed, edited, deleted, triggered and explained."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, starmap
from types import NoneType

from luciole import limits
from luciole.errors import AlreadyExists, Conflict, IllegalState, InvalidValue, LucioleError, NotFound
from luciole.model.duration import Duration, duration_us
from luciole.model.execution import Enqueued, EnqueueRequest, Origin
from luciole.model.ids import ScheduleId
from luciole.model.instant import Instant, iso
from luciole.model.job import JobSpec, Misfire, Overlap
from luciole.model.plan import LedgerRow
from luciole.model.schedule import (
    NewSchedule,
    Overdue,
    Policy,
    Reason,
    ScheduleSpec,
    ScheduleState,
    ScheduleView,
    pack_policy,
    unpack_policy,
)
from luciole.model.trigger import Trigger, jitter_us, trigger_from_spec
from luciole.service.checking import read_choice
from luciole.service.jobs import entry_flags
from luciole.store.reads import Page, ScheduleFilter
from luciole.store.spi import Store

#: Transactions of one declaration that are under way at once: one is written while the next is made ready (I10).
_BATCHES_AT_ONCE = 2

#: States in which the cursor names a fire time that still has no outcome.
_WITH_CURSOR = frozenset({ScheduleState.ACTIVE, ScheduleState.PAUSED, ScheduleState.PARKED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One schedule as an app declares it, checked."""

    name: str
    job: JobSpec
    trigger: Trigger
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What became of declarations."""

    ids: tuple[ScheduleId, ...]  #: in the order of the declarations
    created: int
    changed: int
    unchanged: int


def read_policy(
    *,
    misfire: str = Misfire.FIRE_ONCE,
    misfire_after: Duration | None = None,
    catch_up: int | None = None,
    overlap: str | None = None,
) -> Policy:
    """Return the policy that a user's words describe.

    Args:
        misfire: "fire_once", "skip" or "catch_up".
        misfire_after: from which lateness a fire counts as missed; default 60 s.
        catch_up: how many missed fires run; exactly with misfire "catch_up".
        overlap: "allow", "forbid", "queue_one" or "replace"; default "forbid".

    Raises:
        InvalidValue: a wrong word, or words that contradict each other.
    """
    chosen = read_choice(Misfire, misfire, field="misfire")
    if type(catch_up) not in {int, NoneType}:
        raise InvalidValue(f"catch_up: a {type(catch_up).__name__} is no number of fires")
    if (chosen is Misfire.CATCH_UP) != (catch_up is not None):
        raise InvalidValue("misfire: 'catch_up' goes with catch_up=N, the most fires to run late, and only with it")
    return Policy(
        misfire=chosen,
        misfire_after_us=limits.MINUTE_US
        if misfire_after is None
        else duration_us(misfire_after, field="misfire_after"),
        catch_up_limit=catch_up or 0,
        overlap=Overlap.FORBID if overlap is None else read_choice(Overlap, overlap, field="overlap"),
    )


async def declare(
    store: Store, declarations: Sequence[Declaration], *, namespace: str = "default", owner: str = ""
) -> Declared:
    """Bring the schedules of one owner to what its code says; those it no longer names stay.

    New ones start from now. Changed ones are recomputed from now: fire times that the old definition left
    unplanned get a ledger row. Unchanged ones are not touched. Costs one read a page of the owner's schedules
    and one transaction a thousand that are new or changed.

    Raises:
        AlreadyExists: a name belongs to another owner; both are named, and what was written before it stays.
    """
    _refuse_twins(declarations)
    known = await _known(store, namespace, owner) if declarations else {}
    reading = _Reading(namespace, owner, await store.now_us())
    fresh: list[tuple[ScheduleSpec, Trigger, ScheduleView | None]] = []
    spots: list[int] = []
    ids = [0] * len(declarations)
    for spot, one in enumerate(declarations):
        spec = reading.spec(one)
        view = known.get(one.name)
        if view is not None and view.spec == spec and view.state is not ScheduleState.DELETED:
            ids[spot] = view.schedule_id
            continue
        fresh.append((spec, one.trigger, view))
        spots.append(spot)
    # Each is made ready when its turn comes, while the store writes those before it.
    for spot, schedule_id in zip(spots, await _put(store, starmap(reading.new, fresh), len(fresh)), strict=True):
        ids[spot] = schedule_id
    created = sum(declarations[spot].name not in known for spot in spots)
    return Declared(
        ids=tuple(ids), created=created, changed=len(fresh) - created, unchanged=len(declarations) - len(fresh)
    )


async def find_schedule(store: Store, namespace: str, name: str) -> ScheduleView:
    """Return a schedule.

    Raises:
        NotFound: there is none of this name; near names are listed.
    """
    view = await store.get_schedule(namespace, name)
    if view is None or view.state is ScheduleState.DELETED:
        near = await store.list_schedules(ScheduleFilter(namespace=namespace, name_prefix=name[:3], limit=5))
        names = ", ".join(row.spec.name for row in near.rows)
        raise NotFound(
            f"schedule {name!r}: there is none in namespace {namespace!r}" + (f"; near: {names}" * bool(names))
        )
    return view


async def list_schedules(store: Store, query: ScheduleFilter) -> Page[ScheduleView]:
    """Return a page of schedules, ordered by namespace and name."""
    return await store.list_schedules(query)


async def pause(store: Store, namespace: str, name: str, *, reason: str = "") -> ScheduleView:
    """Stop a schedule until it is resumed; safe to repeat.

    What is due and not started stays; planned fires of the future are withdrawn.

    Raises:
        NotFound: there is none.
        IllegalState: it is parked or exhausted: there is nothing to pause.
    """

    async def step(view: ScheduleView) -> bool:
        if view.state is ScheduleState.PAUSED:
            return True
        if view.state is not ScheduleState.ACTIVE:
            raise IllegalState(f"schedule {name!r}: it is {view.state}, only an active one can be paused")
        return await store.set_schedule_state(
            view.schedule_id,
            ScheduleState.PAUSED,
            reason=reason or None,
            fire_us=None,
            due_us=None,
            revision=view.revision,
        )

    return await _compare_and_set(store, namespace, name, step)


async def resume(store: Store, namespace: str, name: str) -> ScheduleView:
    """Let a paused or parked schedule fire again, from now on; safe to repeat.

    The fire times of the pause become one ledger row.

    Raises:
        NotFound: there is none.
        InvalidTrigger: it was parked because its trigger can't be read, and still can't.
        IllegalState: its trigger is exhausted.
    """

    async def step(view: ScheduleView) -> bool:
        if view.state is ScheduleState.ACTIVE:
            return True
        if view.state is ScheduleState.EXHAUSTED:
            raise IllegalState(f"schedule {name!r}: its trigger has no further fire time; declare it with another")
        trigger = trigger_from_spec(view.spec.trigger)
        now_us = await store.now_us()
        fire_us = trigger.next_us(now_us)
        return await store.set_schedule_state(
            view.schedule_id,
            ScheduleState.ACTIVE,  # Without a fire time the store makes it exhausted.
            reason=None,
            fire_us=fire_us,
            due_us=_due_us(trigger, view.schedule_id, fire_us),
            revision=view.revision,
            ledger=_missed(trigger, view.fire_us, now_us),
        )

    return await _compare_and_set(store, namespace, name, step)


async def delete(store: Store, namespace: str, name: str) -> ScheduleView:
    """Delete a schedule: it never fires again; its executions, and then its row, stay until retention prunes them.

    Fire times that were due and not planned get a ledger row.

    Raises:
        NotFound: there is none.
    """

    async def step(view: ScheduleView) -> bool:
        overdue = _overdue(view, None, await store.now_us())
        reason = Reason.PAUSED if view.state is ScheduleState.PAUSED else Reason.DISABLED
        return await store.set_schedule_state(
            view.schedule_id,
            ScheduleState.DELETED,
            reason=None,
            fire_us=None,
            due_us=None,
            revision=view.revision,
            ledger=(LedgerRow(*overdue, reason),) if overdue else (),  # I4: nobody will plan them any more.
        )

    view = await find_schedule(store, namespace, name)
    await _compare_and_set(store, namespace, name, step, reread=False)
    return replace(view, state=ScheduleState.DELETED)


async def edit(
    store: Store, namespace: str, name: str, *, trigger: Trigger | None = None, policy: Policy | None = None
) -> ScheduleView:
    """Give a schedule another trigger or policy, recomputed from now.

    The app that declared it restores its own at the next start.

    Raises:
        NotFound: there is none.
    """
    view = await find_schedule(store, namespace, name)
    chosen = trigger_from_spec(view.spec.trigger) if trigger is None else trigger
    spec = replace(view.spec, trigger=chosen.to_spec(), policy=policy or view.spec.policy)
    reading = _Reading(namespace, view.spec.owner, await store.now_us())
    await _put(store, iter([reading.new(spec, chosen, view)]), 1)
    return await find_schedule(store, namespace, name)


async def trigger_by_hand(
    store: Store, namespace: str, name: str, *, request_id: int, payload: bytes | None = None, key: str | None = None
) -> Enqueued:
    """Run a schedule's job now, beside its own fire times; its overlap policy holds.

    Args:
        store: where the schedule lives.
        namespace: of the schedule.
        name: of the schedule.
        request_id: from an id segment.
        payload: instead of the schedule's own arguments.
        key: the same key is the same execution.

    Raises:
        NotFound: there is none.
        IllegalState: an execution of it is open, and its overlap policy forbids another.
    """
    view = await find_schedule(store, namespace, name)
    (job_id,) = await store.intern_jobs([view.spec.job])
    request = EnqueueRequest(
        namespace=namespace,
        request_id=request_id,
        shard=view.shard,
        job_id=job_id,
        payload=payload,
        content_type=view.spec.job.content_type,
        priority=view.spec.job.priority,
        flags=entry_flags(view.spec.job),
        key=key,
        labels=view.spec.job.labels,
        origin=Origin.MANUAL,
        schedule_id=view.schedule_id,
    )
    enqueued = await store.trigger_schedule(request)
    if enqueued is None:
        raise IllegalState(
            f"schedule {name!r}: an execution of it is open and its overlap policy is "
            f"{view.spec.policy.overlap.value!r}; wait for it, cancel it, or change overlap="
        )
    return enqueued


def _refuse_twins(declarations: Sequence[Declaration]) -> None:
    seen: set[str] = set()
    for one in declarations:
        if one.name in seen:
            raise AlreadyExists(f"schedule {one.name!r}: it is declared twice; give one of them another name")
        seen.add(one.name)


async def _known(store: Store, namespace: str, owner: str) -> dict[str, ScheduleView]:
    known: dict[str, ScheduleView] = {}
    query = ScheduleFilter(namespace=namespace, owner=owner, states=frozenset(ScheduleState))
    while True:
        page = await store.list_schedules(query)
        known |= {view.spec.name: view for view in page.rows}
        if page.next is None:
            return known
        query = replace(query, page=page.next)


class _Reading:
    """What declarations come to at one instant, worked out once for each trigger that they share."""

    def __init__(self, namespace: str, owner: str, now_us: Instant) -> None:
        self._namespace = namespace
        self._owner = owner
        self._now_us = now_us
        self._texts: dict[int, str] = {}  #: by the trigger's identity: its declaration keeps it
        self._fires_us: dict[int, Instant | None] = {}

    def spec(self, one: Declaration) -> ScheduleSpec:
        """Return what is to be stored of a declaration."""
        text = self._texts.get(id(one.trigger))
        if text is None:
            text = self._texts[id(one.trigger)] = one.trigger.to_spec()
        policy = unpack_policy(pack_policy(one.policy, one.job))  # As precise as it is stored, to compare equal later.
        return ScheduleSpec(
            namespace=self._namespace, name=one.name, owner=self._owner, job=one.job, trigger=text, policy=policy
        )

    def new(self, spec: ScheduleSpec, trigger: Trigger, known: ScheduleView | None) -> NewSchedule:
        """Return a schedule ready to be stored in place of the one that is known."""
        key = id(trigger)
        if key not in self._fires_us:
            self._fires_us[key] = trigger.next_us(self._now_us)
        fire_us = self._fires_us[key]
        due_us = _due_us(trigger, known.schedule_id if known else 0, fire_us)
        # I4: what was due and not planned has its outcome when the trigger that named it goes.
        return NewSchedule(spec=spec, fire_us=fire_us, due_us=due_us, overdue=_overdue(known, spec, self._now_us))


def _due_us(trigger: Trigger, schedule_id: ScheduleId, fire_us: Instant | None) -> Instant | None:
    return None if fire_us is None else fire_us + jitter_us(trigger.jitter_us, schedule_id, fire_us)


async def _put(store: Store, fresh: Iterator[NewSchedule], count: int) -> list[ScheduleId]:
    """Store schedules, a batch to a transaction; return their ids, in order."""
    ids = [0] * count
    if not count:
        return ids
    first_id = (await store.take_ids(count)).first
    starts = deque(range(0, count, limits.REGISTER_BATCH_MAX))  #: empty after a failure: nothing more is begun

    async def lane() -> None:
        while starts:
            start = starts.popleft()
            batch = list(islice(fresh, limits.REGISTER_BATCH_MAX))
            try:
                found = await store.put_schedules(batch, first_id=first_id + start)
            except BaseException:
                starts.clear()
                raise
            taken = next((new.spec for new, one in zip(batch, found, strict=True) if one is None), None)
            if taken is not None:
                starts.clear()
                raise await _taken(store, taken)
            ids[start : start + len(batch)] = (one for one in found if one is not None)

    # All lanes have ended before a failure is told: nothing is written after it.
    ended = await asyncio.gather(*(lane() for _ in range(_BATCHES_AT_ONCE)), return_exceptions=True)
    for failure in filter(None, ended):
        raise failure
    return ids


async def _taken(store: Store, spec: ScheduleSpec) -> LucioleError:
    view = await store.get_schedule(spec.namespace, spec.name)
    if view is None:
        return Conflict(f"schedule {spec.name!r}: it changed while it was being declared; try again")
    return AlreadyExists(
        f"schedule {spec.name!r}: it belongs to app {view.spec.owner!r}, and app {spec.owner!r} declares it too; "
        "give one of them another name, or the apps namespaces of their own"
    )


def _overdue(view: ScheduleView | None, spec: ScheduleSpec | None, now_us: Instant) -> Overdue | None:
    """Return the fire times that a trigger leaves unplanned when another, or none, replaces it.

    With the same trigger the cursor stays, and the misfire policy decides what becomes of them.
    """
    if view is None or view.state not in _WITH_CURSOR or (spec and view.spec.trigger == spec.trigger):
        return None
    try:
        trigger = trigger_from_spec(view.spec.trigger)
    except LucioleError:
        return None  # Nobody can tell its fire times any more (I7); the new definition repairs it.
    return _between(trigger, view.fire_us, now_us)


def _between(trigger: Trigger, first_us: Instant | None, now_us: Instant) -> Overdue | None:
    if first_us is None or first_us > now_us:
        return None
    fires = trigger.count(first_us - 1, now_us)
    last_us = trigger.previous_us(now_us + 1)
    return Overdue(first_us, last_us, fires) if fires and last_us is not None else None


def _missed(trigger: Trigger, first_us: Instant | None, now_us: Instant) -> tuple[LedgerRow, ...]:
    overdue = _between(trigger, first_us, now_us)
    return (LedgerRow(*overdue, Reason.PAUSED),) if overdue else ()


async def _compare_and_set(
    store: Store,
    namespace: str,
    name: str,
    step: Callable[[ScheduleView], Awaitable[bool]],
    *,
    reread: bool = True,
) -> ScheduleView:
    """Repeat a step until no planner came between its read and its write."""
    for _ in range(limits.CONFLICT_TRIES_MAX):
        view = await find_schedule(store, namespace, name)
        if await step(view):
            return await find_schedule(store, namespace, name) if reread else view
    raise Conflict(f"schedule {name!r}: it changes faster than it can be read ({iso(await store.now_us())}); try again")
