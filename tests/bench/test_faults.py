"""Faults exist only when they are asked for, and each makes one thing wrong."""

import pytest

from luciole.bench import faults
from luciole.bench.burst.load import NAMESPACE, PREFIX
from luciole.bench.faults import VARIABLE, FaultyStore, OversleepingClock, around, asked, slow_step
from luciole.bench.verdict import Usage
from luciole.model.ids import ExecutionKey, IdSegment
from luciole.model.lease import Lease
from luciole.model.outbox import Entry, Settled, Settlement
from luciole.model.plan import Plan, PlanOutcome
from luciole.runtime.clock import SystemClock
from luciole.store.spi import Store
from luciole.testing.factories import an_entry

DUE_US = 1_000_000


def entries(count: int) -> tuple[Entry, ...]:
    keys = [ExecutionKey(shard=0, schedule_id=number, fire_us=DUE_US, part=0) for number in range(1, count + 1)]
    return tuple(an_entry(key=key, due_us=DUE_US) for key in keys)


class Recorder:
    """A store that accepts everything and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.leases: list[tuple[Lease, ...]] = []
        self.rescheduled: list[tuple[str, str, int]] = []

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        self.asked.append("commit_plan")
        self.leases.append(plan.leases)
        return PlanOutcome(entries=entries(3), created=3, skipped=0)

    async def settle(self, settlements: list[Settlement]) -> tuple[Settled, ...]:
        del settlements
        return ()

    async def now_us(self) -> int:
        self.asked.append("now_us")
        return 0

    async def take_ids(self, count: int) -> IdSegment:
        self.asked.append("take_ids")
        return IdSegment(first=1, count=count)

    async def reschedule(self, namespace: str, name_prefix: str, at_us: int) -> int:
        self.rescheduled.append((namespace, name_prefix, at_us))
        return 1

    async def close(self) -> None:
        self.asked.append("close")


def a_store(monkeypatch: pytest.MonkeyPatch, fault: str) -> tuple[Recorder, Store]:
    monkeypatch.setenv(VARIABLE, fault)
    recorder = Recorder()
    return recorder, around(recorder)  # type: ignore[arg-type] # it has the verbs that these tests call


PLAN = Plan(moves=(), leases=())


def test_without_a_fault_nothing_stands_between_product_and_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    recorder = Recorder()
    passed: object = around(recorder)  # type: ignore[arg-type] # only its identity matters
    assert passed is recorder
    assert type(faults.clock()) is SystemClock

    def step() -> int:
        return 1

    assert slow_step(faults.SLOW_STEP, step) is step


def test_a_fault_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "everything")
    with pytest.raises(Usage, match="'everything' is no fault; there are slow-step"):
        asked()


@pytest.mark.parametrize(("fault", "verb"), [("statement-per-job", "now_us"), ("commit-per-job", "take_ids")])
async def test_work_for_each_job_is_done_once_for_each(monkeypatch: pytest.MonkeyPatch, fault: str, verb: str) -> None:
    recorder, store = a_store(monkeypatch, fault)
    await store.commit_plan(PLAN)
    assert recorder.asked == ["commit_plan", verb, verb, verb]


@pytest.mark.parametrize(("fault", "count"), [("doubled-dispatch", 4), ("dropped-job", 2)])
async def test_one_entry_too_many_or_too_few_is_handed_out_once_and_not_in_the_warm_up(
    monkeypatch: pytest.MonkeyPatch, fault: str, count: int
) -> None:
    _, store = a_store(monkeypatch, fault)
    counts = [len((await store.commit_plan(PLAN)).entries)]
    await store.settle([])
    counts += [len((await store.commit_plan(PLAN)).entries) for _ in range(2)]
    assert counts == [3, count, 3]


async def test_a_cursor_is_put_back_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, store = a_store(monkeypatch, "unmoved-cursor")
    await store.commit_plan(PLAN)
    assert recorder.rescheduled == []
    await store.close()
    assert recorder.rescheduled == [(NAMESPACE, f"{PREFIX}0000000", DUE_US)]
    assert recorder.asked[-1] == "close"


async def test_an_outdated_fence_passes_as_if_nobody_guarded_it(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, store = a_store(monkeypatch, "stale-fence-accepted")
    for fence in (5, 4):
        await store.commit_plan(Plan(moves=(), leases=(Lease(shard=0, holder="a" * 16, fence=fence, expires_us=1),)))
    assert [leases[0].fence for leases in recorder.leases] == [5, 5]


def test_a_look_fails_only_when_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    faults.fail_look()
    monkeypatch.setenv(VARIABLE, "lost-sampler")
    with pytest.raises(OSError, match="on purpose"):
        faults.fail_look()


def test_a_starved_clock_and_a_slow_step_are_had_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "starved-generator")
    assert isinstance(faults.clock(), OversleepingClock)
    monkeypatch.setenv(VARIABLE, "slow-step")

    def step() -> int:
        return 1

    assert slow_step("encode_4k_us", step) is step
    slow = slow_step(faults.SLOW_STEP, step)
    assert slow is not step
    assert slow() == 1


async def test_all_else_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, store = a_store(monkeypatch, "slow-step")
    assert isinstance(store, FaultyStore)
    assert (await store.commit_plan(PLAN)).created == 3
    assert recorder.asked == ["commit_plan"]
