"""What users declare: ids, jobs, schedules by name."""

import asyncio

from luciole import limits
from luciole.errors import InvalidValue, LucioleError, PayloadTooLarge
from luciole.limits import SECOND_US
from luciole.model.job import JobSpec, Misfire, Overlap, Retry, RunIn
from luciole.model.schedule import NewSchedule, Policy, ScheduleSpec, ScheduleState
from luciole.model.sharding import shard_of_id
from luciole.testing.contract.harness import StoreHarness
from luciole.testing.contract.steps import (
    StoreContract,
    cursor_of,
    due,
    fire,
    lease_all,
    raises,
    register,
    scheduled,
    set_state,
    view_of,
)
from luciole.testing.factories import a_job, a_schedule

FULL_JOB = JobSpec(
    namespace="tenant",
    handler="a.b.c\u20ac",
    payload=bytes(range(256)),
    content_type="x/y",
    retry=Retry(limit=7, delay_us=3, factor=1.5, delay_max_us=9, jitter=0.25),
    timeout_us=5,
    at_most_once=True,
    losses_max=9,
    run_in=RunIn.PROCESS,
    labels=(("gpu", "a100"), ("zone", "\u00e9")),
    priority=1,
)


class TestIds(StoreContract):
    """Segments."""

    async def test_nobody_else_gets_an_id(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        segments = await asyncio.gather(*(store.take_ids(n) for store in (a, b) for n in (1, 7, 1_024)))
        ids = [number for segment in segments for number in range(segment.first, segment.first + segment.count)]
        assert [segment.count for segment in segments] == [1, 7, 1_024] * 2
        assert min(ids) >= 1
        assert len(ids) == len(set(ids))

    async def test_a_segment_out_of_bounds_is_refused(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        for count in (0, -1, limits.ID_SEGMENT_MAX + 1):
            with raises(InvalidValue):
                await a.take_ids(count)


class TestJobs(StoreContract):
    """Immutable versions."""

    async def test_equal_jobs_are_one_version(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        one, other, again = await a.intern_jobs([a_job("x"), FULL_JOB, a_job("x")])
        changed = a_job("x", payload=b"\x00")
        (new,) = await b.intern_jobs([changed])
        assert one == again
        assert len({one, other, new}) == 3
        assert await b.intern_jobs([FULL_JOB, changed, a_job("x")]) == (other, new, one)

    async def test_a_job_comes_back_as_it_was(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        (job_id,) = await a.intern_jobs([FULL_JOB])
        loaded = await b.load_jobs([job_id, job_id])
        assert {number: version.spec for number, version in loaded.items()} == {job_id: FULL_JOB}

    async def test_two_clients_that_race_agree_on_versions(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        jobs = [a_job(f"h{n}") for n in range(30)]
        of_a, of_b = await asyncio.gather(a.intern_jobs(jobs), b.intern_jobs([*reversed(jobs)]))
        assert of_a == (*reversed(of_b),)
        assert len(set(of_a)) == 30

    async def test_handlers_are_listed_with_their_latest_version(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        jobs = [a_job("b"), a_job("a"), a_job("b", priority=9), a_job("B"), a_job("a", namespace="other")]
        ids = await a.intern_jobs(jobs)
        views = await b.list_jobs(None, limit=10)
        found = [(view.namespace, view.handler, view.versions, view.job_id, view.options) for view in views]
        assert found == [
            ("default", "B", 1, ids[3], jobs[3].options_text()),
            ("default", "a", 1, ids[1], jobs[1].options_text()),
            ("default", "b", 2, ids[2], jobs[2].options_text()),
            ("other", "a", 1, ids[4], jobs[4].options_text()),
        ]
        assert [view.handler for view in await b.list_jobs("default", limit=2)] == ["B", "a"]
        assert [view.job_id for view in await b.list_jobs("other", limit=2)] == [ids[4]]

    async def test_jobs_over_their_bounds_are_refused_as_a_whole(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        bad: list[tuple[JobSpec, type[LucioleError]]] = [
            (a_job("h" * (limits.NAME_LENGTH_MAX + 1)), InvalidValue),
            (a_job("nul\x00"), InvalidValue),
            (a_job("half \udc00"), InvalidValue),
            (a_job(payload=b"\x00" * (limits.PAYLOAD_BYTES_MAX + 1)), PayloadTooLarge),
            (a_job(labels=(("a", "b"),) * (limits.LABELS_MAX + 1)), InvalidValue),
        ]
        for job, error in bad:
            with raises(error):
                await a.intern_jobs([a_job("good"), job])
        with raises(InvalidValue):
            await a.intern_jobs([a_job("good")] * (limits.REGISTER_BATCH_MAX + 1))
        assert await a.list_jobs(None, limit=10) == ()


class TestRegistration(StoreContract):
    """Schedules by name."""

    async def test_a_new_schedule_is_active_from_its_first_fire_time(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        before_us = await a.now_us()
        policy = Policy(
            misfire=Misfire.CATCH_UP, misfire_after_us=5 * SECOND_US, catch_up_limit=9, overlap=Overlap.ALLOW
        )
        spec = ScheduleSpec(
            namespace="tenant",
            name="nightly\u20ac",
            owner="app",
            job=FULL_JOB,
            trigger="cron 30 2 * * *",
            policy=policy,
        )
        schedule = NewSchedule(spec=spec, fire_us=before_us + 50, due_us=before_us + 53)
        segment = await a.take_ids(1)
        assert await a.put_schedules([schedule], first_id=segment.first) == (segment.first,)
        view = await b.get_schedule("tenant", "nightly\u20ac")
        assert view is not None
        assert (view.schedule_id, view.shard) == (segment.first, shard_of_id(segment.first, b.shards))
        assert (view.spec, view.state, view.reason, view.version) == (spec, ScheduleState.ACTIVE, None, 1)
        assert (view.fire_us, view.due_us) == (before_us + 50, before_us + 53)
        assert before_us <= view.created_us == view.updated_us <= await b.now_us()
        assert await b.get_schedule("default", "nightly\u20ac") is None
        (cursor,) = (await due(b)).values()
        assert (cursor.fire_us, cursor.due_us, cursor.revision) == (view.fire_us, view.due_us, view.revision)

    async def test_ids_go_by_position(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        now_us = await a.now_us()
        segment = await a.take_ids(10)
        await a.put_schedules([a_schedule("b", fire_us=now_us)], first_id=segment.first + 9)
        names = ["a", "b", "c"]
        ids = await a.put_schedules([a_schedule(name, fire_us=now_us) for name in names], first_id=segment.first)
        assert ids == (segment.first, segment.first + 9, segment.first + 2)

    async def test_the_same_again_changes_nothing(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        first, second = a_schedule("s0", fire_us=1_000), a_schedule("s1", fire_us=2_000)
        ids = await register(a, first, second)
        before = [await view_of(a, "s0"), await view_of(a, "s1")]
        await harness.advance(60 * SECOND_US)
        again = await register(b, a_schedule("s0", fire_us=9_000), a_schedule("s1", fire_us=9_000))
        assert again == ids
        assert [await view_of(a, "s0"), await view_of(a, "s1")] == before

    async def test_two_clients_that_race_agree_on_ids(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        schedules = [a_schedule(f"s{n}", fire_us=1_000) for n in range(30)]
        of_a, of_b = await asyncio.gather(register(a, *schedules), register(b, *reversed(schedules)))
        assert of_a == (*reversed(of_b),)
        assert len(await due(a)) == 30

    async def test_another_owner_s_name_is_left_alone(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        await register(a, a_schedule("mine", fire_us=1_000), a_schedule("yours", fire_us=1_000, owner="you"))
        before = await view_of(a, "yours")
        changed = [a_schedule(name, fire_us=5_000, trigger="every 5s") for name in ("mine", "yours", "new")]
        ids = await register(b, *changed)
        assert [number is None for number in ids] == [False, True, False]
        assert await view_of(a, "yours") == before
        assert (await view_of(a, "mine")).spec.trigger == "every 5s"

    async def test_without_replace_what_exists_is_left_alone(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        await register(a, a_schedule("old", fire_us=1_000))
        before = await view_of(a, "old")
        changed = [a_schedule(name, fire_us=5_000, trigger="every 5s") for name in ("old", "new")]
        segment = await a.take_ids(2)
        ids = await a.put_schedules(changed, first_id=segment.first, replace=False)
        assert ids == (None, segment.first + 1)
        assert await view_of(a, "old") == before

    async def test_a_schedule_without_a_fire_time_is_exhausted(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        await register(a, a_schedule(fire_us=None))
        view = await view_of(a)
        assert (view.state, view.fire_us, view.due_us) == (ScheduleState.EXHAUSTED, None, None)

    async def test_schedules_with_one_expression_and_one_job_are_apart(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        ids = await register(a, a_schedule("x", fire_us=1_000), a_schedule("y", fire_us=1_000))
        assert (await due(a)).keys() == set(ids)
        assert len(set(ids)) == 2

    async def test_namespaces_have_names_of_their_own(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        ids = await register(a, a_schedule(fire_us=1_000), a_schedule(fire_us=1_000, namespace="other"))
        assert len(set(ids)) == 2
        await register(a, a_schedule(fire_us=2_000, namespace="other", trigger="every 5s"))
        assert (await view_of(a)).fire_us == 1_000

    async def test_schedules_over_their_bounds_are_refused_as_a_whole(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        good = a_schedule("good", fire_us=1_000)
        bad: list[tuple[NewSchedule, type[LucioleError]]] = [
            (a_schedule("n" * (limits.NAME_LENGTH_MAX + 1), fire_us=0), InvalidValue),
            (a_schedule("nul\x00", fire_us=0), InvalidValue),
            (a_schedule("half \ud800", fire_us=0), InvalidValue),
            (a_schedule(owner="\x00", fire_us=0), InvalidValue),
            (a_schedule(trigger="t" * (limits.TRIGGER_LENGTH_MAX + 1), fire_us=0), InvalidValue),
            (a_schedule(job=a_job("\x00"), fire_us=0), InvalidValue),
            (a_schedule(job=a_job(payload=b"\x00" * (limits.PAYLOAD_BYTES_MAX + 1)), fire_us=0), PayloadTooLarge),
            (good, InvalidValue),
        ]
        for schedule, error in bad:
            with raises(error):
                await register(a, good, schedule)
        many = [a_schedule(f"s{n}", fire_us=0) for n in range(limits.REGISTER_BATCH_MAX + 1)]
        with raises(InvalidValue):
            await a.put_schedules(many, first_id=1)
        assert await due(a) == {}

    async def test_many_schedules_may_share_a_name_s_letters(self, harness: StoreHarness) -> None:
        """Goal: names are compared exactly, not folded by a collation."""
        a, _ = harness.clients
        names = ["a", "A", "\u00e1", "a ", " a", "a%", "a_", "e\u0301", "\u00e9"]
        ids = await register(a, *(a_schedule(name, fire_us=1_000) for name in names))
        assert len(set(ids)) == len(names)
        assert [(await view_of(a, name)).schedule_id for name in names] == [*ids]


class TestReschedule(StoreContract):
    """One instant for a selection."""

    async def test_a_selection_moves_to_one_instant(self, harness: StoreHarness) -> None:
        a, b = harness.clients
        at_us = await a.now_us() + 5 * SECOND_US
        far_us = at_us + 3_600 * SECOND_US
        names = ["run-1", "run-2", "run_3", "other", "run-paused"]
        await register(a, *(a_schedule(name, fire_us=far_us) for name in names))
        await register(a, a_schedule("run-4", fire_us=far_us, namespace="other"))
        await set_state(a, ScheduleState.PAUSED, "run-paused")
        before = await cursor_of(a, "run-1")
        assert await b.reschedule("default", "run-", at_us) == 2
        moved = await cursor_of(a, "run-1")
        assert (moved.fire_us, moved.due_us) == (at_us, at_us)
        assert moved.revision > before.revision
        assert (await cursor_of(a, "run_3")).fire_us == (await cursor_of(a, "other")).fire_us == far_us
        paused = await view_of(a, "run-paused")
        assert (paused.fire_us, paused.due_us, paused.state) == (far_us, None, ScheduleState.PAUSED)

    async def test_letters_of_patterns_are_letters(self, harness: StoreHarness) -> None:
        a, _ = harness.clients
        cursor = await scheduled(a, "plain", in_us=3_600 * SECOND_US)
        await scheduled(a, "p%_\\'", in_us=3_600 * SECOND_US)
        at_us = cursor.fire_us + 5
        assert await a.reschedule("default", "p%_\\'", at_us) == 1
        assert await a.reschedule("default", "P", at_us) == 0
        assert await a.reschedule("default", "", at_us + 2) == 2
        assert (await cursor_of(a, "plain")).fire_us == at_us + 2

    async def test_what_is_due_is_not_moved_away_from_its_outcome(self, harness: StoreHarness) -> None:
        """I4: the fire time that is due would have none."""
        a, b = harness.clients
        leases = await lease_all(a)
        overdue = await scheduled(a, "overdue")
        await scheduled(a, "later", in_us=3_600 * SECOND_US)
        await harness.advance(SECOND_US)
        at_us = await a.now_us() + 60 * SECOND_US
        assert await b.reschedule("default", "", at_us) == 1
        assert await cursor_of(a, "overdue") == overdue
        assert (await cursor_of(a, "later")).fire_us == at_us
        assert (await fire(a, leases, overdue)).key.fire_us == overdue.fire_us
