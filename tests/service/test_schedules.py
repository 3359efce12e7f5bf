"""Schedules: what is recorded when they are edited, paused and resumed, and what overlap allows by hand."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from luciole import limits
from luciole.errors import AlreadyExists, IllegalState, NotFound, StoreUnavailable
from luciole.model.execution import ExecutionState, Origin
from luciole.model.ids import ExecutionKey, ScheduleId
from luciole.model.instant import Instant
from luciole.model.job import JobSpec
from luciole.model.outbox import AttemptOutcome, Settlement
from luciole.model.schedule import NewSchedule, Policy, Reason, ScheduleState
from luciole.model.trigger import every
from luciole.service import executions, schedules
from luciole.service.schedules import Declaration
from luciole.store.memory import MemoryState, MemoryStore
from luciole.store.reads import ScheduleFilter

START_US = 1_800_000_000 * limits.SECOND_US
MINUTE = limits.MINUTE_US
JOB = JobSpec(handler="report", payload=b'{"region":"eu"}')


@dataclass
class HandClock:
    """A clock that stands where it is put."""

    at_us: Instant = START_US
    waits: list[int] = field(default_factory=list)

    def now_us(self) -> Instant:
        return self.at_us

    def monotonic_us(self) -> int:
        return self.at_us

    async def sleep(self, duration_us: int) -> None:
        self.waits.append(duration_us)

    async def wait(self, event: asyncio.Event, timeout_us: int) -> bool:
        self.waits.append(timeout_us)
        return event.is_set()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def store(clock: HandClock) -> AsyncIterator[MemoryStore]:
    opened = MemoryStore(MemoryState(), clock)
    await opened.open()
    yield opened
    await opened.close()


def one(name: str = "often", interval: str = "1m", job: JobSpec = JOB, policy: Policy | None = None) -> Declaration:
    return Declaration(name=name, job=job, trigger=every(interval), policy=policy or Policy())


async def ledger(store: MemoryStore, name: str = "often") -> list[tuple[int, int, int, Reason]]:
    view = await schedules.find_schedule(store, "default", name)
    rows = await store.list_ledger(view.schedule_id, view.shard, limit=10)
    return [((r.first_us - START_US) // MINUTE, (r.last_us - START_US) // MINUTE, r.fires, r.reason) for r in rows]


async def test_a_new_schedule_starts_from_now(store: MemoryStore) -> None:
    await schedules.declare(store, [one()])
    view = await schedules.find_schedule(store, "default", "often")
    assert view.fire_us == START_US + MINUTE


async def test_an_edit_recomputes_from_now_and_records_what_was_left(store: MemoryStore, clock: HandClock) -> None:
    await schedules.declare(store, [one()])
    clock.at_us += 60 * MINUTE + limits.SECOND_US  # Nobody planned for an hour.
    done = await schedules.declare(store, [one(interval="7m")])
    view = await schedules.find_schedule(store, "default", "often")
    assert done.changed == 1
    assert view.fire_us is not None
    assert view.fire_us > clock.at_us
    assert await ledger(store) == [(1, 60, 60, Reason.DISABLED)]  # I4: each of them has its outcome.


@pytest.mark.parametrize(
    ("state", "reason"), [(ScheduleState.PAUSED, Reason.PAUSED), (ScheduleState.PARKED, Reason.DISABLED)]
)
async def test_an_edit_of_what_stood_still_counts_every_fire_time_that_it_leaves(
    store: MemoryStore, clock: HandClock, state: ScheduleState, reason: Reason
) -> None:
    await schedules.declare(store, [one()])
    view = await schedules.find_schedule(store, "default", "often")
    await store.set_schedule_state(
        view.schedule_id, state, reason="a test", fire_us=None, due_us=None, revision=view.revision
    )
    clock.at_us += 60 * MINUTE + limits.SECOND_US
    await schedules.declare(store, [one(interval="7m")])
    assert await ledger(store) == [(1, 60, 60, reason)]  # I4: each of them has its outcome.


@pytest.mark.parametrize("paused", [False, True])
async def test_a_deletion_records_what_it_leaves(store: MemoryStore, clock: HandClock, *, paused: bool) -> None:
    await schedules.declare(store, [one()])
    if paused:
        await schedules.pause(store, "default", "often")
    view = await schedules.find_schedule(store, "default", "often")
    clock.at_us += 60 * MINUTE + limits.SECOND_US
    await schedules.delete(store, "default", "often")
    (row,) = await store.list_ledger(view.schedule_id, view.shard, limit=10)
    # I4: each of them has its outcome.
    assert (row.fires, row.reason) == (60, Reason.PAUSED if paused else Reason.DISABLED)


async def test_another_payload_leaves_the_overdue_fire_to_the_misfire_policy(
    store: MemoryStore, clock: HandClock
) -> None:
    await schedules.declare(store, [one()])
    clock.at_us += 60 * MINUTE
    await schedules.declare(store, [one(job=JobSpec(handler="report", payload=b'{"region":"us"}'))])
    view = await schedules.find_schedule(store, "default", "often")
    assert (view.fire_us, view.version) == (START_US + MINUTE, 2)
    assert await ledger(store) == []


async def test_an_unchanged_schedule_is_not_touched(store: MemoryStore, clock: HandClock) -> None:
    policy = Policy(misfire_after_us=1_234_567)  # Finer than it is stored.
    await schedules.declare(store, [one(policy=policy)])
    before = await schedules.find_schedule(store, "default", "often")
    clock.at_us += 60 * MINUTE
    done = await schedules.declare(store, [one(policy=policy)])
    assert (done.unchanged, done.changed) == (1, 0)
    assert await schedules.find_schedule(store, "default", "often") == before


async def test_thousands_are_declared_in_pages(store: MemoryStore) -> None:
    many = [one(name=f"s-{n:05}") for n in range(2_500)]
    first = await schedules.declare(store, many)
    again = await schedules.declare(store, [*many, one(name="late")])
    assert (first.created, again.created, again.unchanged) == (2_500, 1, 2_500)
    assert again.ids[:2_500] == first.ids


async def test_after_a_failure_no_further_page_is_begun(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    async def fail(page: Sequence[NewSchedule], *, first_id: int) -> tuple[ScheduleId | None, ...]:
        begun.append((page[0].spec.name, first_id))
        raise StoreUnavailable("the store went away")

    monkeypatch.setattr(store, "put_schedules", fail)
    with pytest.raises(StoreUnavailable):
        await schedules.declare(store, [one(name=f"s-{n:05}") for n in range(3 * limits.REGISTER_BATCH_MAX)])
    assert [name for name, _ in begun] == ["s-00000"]


async def test_a_name_twice_is_refused_before_anything_is_written(store: MemoryStore) -> None:
    with pytest.raises(AlreadyExists, match="declared twice"):
        await schedules.declare(store, [one(), one()])
    assert (await schedules.list_schedules(store, ScheduleFilter())).rows == ()


async def test_a_pause_becomes_one_ledger_row_when_it_ends(store: MemoryStore, clock: HandClock) -> None:
    await schedules.declare(store, [one()])
    await schedules.pause(store, "default", "often", reason="too loud")
    clock.at_us += 10 * MINUTE
    view = await schedules.resume(store, "default", "often")
    assert (view.state, view.fire_us) == (ScheduleState.ACTIVE, START_US + 11 * MINUTE)
    assert await ledger(store) == [(1, 10, 10, Reason.PAUSED)]  # I4: each of them has its outcome.


async def test_a_pause_that_missed_nothing_leaves_no_row(store: MemoryStore) -> None:
    await schedules.declare(store, [one()])
    await schedules.pause(store, "default", "often")
    await schedules.resume(store, "default", "often")
    await schedules.resume(store, "default", "often")
    assert await ledger(store) == []


async def test_a_declaration_leaves_a_paused_schedule_paused(store: MemoryStore) -> None:
    await schedules.declare(store, [one()])
    await schedules.pause(store, "default", "often")
    await schedules.declare(store, [one(interval="2m")])
    assert (await schedules.find_schedule(store, "default", "often")).state is ScheduleState.PAUSED


async def test_an_edit_during_a_pause_records_the_pause_so_far(store: MemoryStore, clock: HandClock) -> None:
    await schedules.declare(store, [one()])
    await schedules.pause(store, "default", "often")
    clock.at_us += 10 * MINUTE
    await schedules.declare(store, [one(interval="7m")])
    assert await ledger(store) == [(1, 10, 10, Reason.PAUSED)]  # I4: each fire time of the pause, once.
    clock.at_us += 10 * MINUTE
    view = await schedules.resume(store, "default", "often")
    assert view.state is ScheduleState.ACTIVE
    assert sum(fires for _, _, fires, _ in await ledger(store)) in {11, 12}


async def test_a_deleted_schedule_can_be_declared_anew(store: MemoryStore, clock: HandClock) -> None:
    await schedules.declare(store, [one()])
    await schedules.delete(store, "default", "often")
    with pytest.raises(NotFound):
        await schedules.delete(store, "default", "often")
    clock.at_us += 10 * MINUTE
    await schedules.declare(store, [one()])
    view = await schedules.find_schedule(store, "default", "often")
    assert (view.state, view.fire_us) == (ScheduleState.ACTIVE, START_US + 11 * MINUTE)


async def test_a_wrong_name_is_answered_with_near_ones(store: MemoryStore) -> None:
    await schedules.declare(store, [one(name="nightly-eu")])
    with pytest.raises(NotFound, match="near: nightly-eu"):
        await schedules.pause(store, "default", "nightly")


async def test_an_edit_by_hand_keeps_owner_and_job(store: MemoryStore) -> None:
    await schedules.declare(store, [one()], owner="shop")
    view = await schedules.edit(store, "default", "often", trigger=every("5m"))
    assert (view.spec.owner, view.spec.job, view.fire_us) == ("shop", JOB, START_US + 5 * MINUTE)


async def test_a_run_by_hand_obeys_the_overlap_policy(store: MemoryStore) -> None:
    await schedules.declare(store, [one()])
    done = await schedules.trigger_by_hand(store, "default", "often", request_id=7)
    view = await executions.find_execution(store, done.key)
    assert (view.origin, view.payload, view.key.part) == (Origin.MANUAL, JOB.payload, -7)
    with pytest.raises(IllegalState, match="'forbid'"):
        await schedules.trigger_by_hand(store, "default", "often", request_id=8)


async def settle(store: MemoryStore, key: ExecutionKey, state: ExecutionState) -> None:
    await store.settle(
        [
            Settlement(
                key=key,
                attempt=1,
                state=state,
                outcome=AttemptOutcome.FAILED,
                started_us=START_US,
                finished_us=START_US,
                executor_id="e" * 16,
                error="boom",
            )
        ]
    )


async def test_a_retry_by_hand_is_a_new_execution_that_names_the_old(store: MemoryStore) -> None:
    await schedules.declare(store, [one()])
    done = await schedules.trigger_by_hand(store, "default", "often", request_id=7)
    with pytest.raises(IllegalState, match="has not ended"):
        await executions.retry(store, done.key, request_id=8)
    await settle(store, done.key, ExecutionState.FAILED)
    again = await executions.retry(store, done.key, request_id=8)
    view = await executions.find_execution(store, again.key)
    assert (view.origin, view.replay_of, view.payload) == (Origin.REPLAY, done.key, JOB.payload)
    assert view.key.fire_us == done.key.fire_us
    assert (await executions.find_execution(store, done.key)).state is ExecutionState.FAILED  # I5: it stays.


async def test_a_retry_of_a_parked_execution_unparks_it(store: MemoryStore) -> None:
    await schedules.declare(store, [one()])
    done = await schedules.trigger_by_hand(store, "default", "often", request_id=7)
    await settle(store, done.key, ExecutionState.PARKED)
    assert (await executions.retry(store, done.key, request_id=8)).key == done.key
    assert (await executions.find_execution(store, done.key)).state is ExecutionState.READY
