"""A load that is merely steady is planned in few commits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from luciole import limits
from luciole.engine.planner import Planner
from luciole.model.instant import Instant
from luciole.model.lease import Lease
from luciole.model.plan import DueBatch, Plan, PlanOutcome
from luciole.model.schedule import Cursor, Policy, pack_policy
from luciole.model.stride import DueGroup, GroupBatch, Share, Stride, StrideOutcome
from luciole.model.trigger import every
from luciole.runtime.telemetry import Telemetry
from luciole.store.capabilities import Capabilities
from luciole.store.spi import Store
from luciole.testing.clock import FakeClock
from luciole.testing.factories import a_job

AT_US = 1_800_000_000 * limits.SECOND_US
LEASES = tuple(Lease(shard=shard, holder="node", fence=1, expires_us=AT_US * 2) for shard in range(4))
POLICY = pack_policy(Policy(), a_job())


class Passing:
    """A clock on which each look takes a millisecond."""

    def __init__(self) -> None:
        self._now_us = AT_US

    def now_us(self) -> Instant:
        self._now_us += limits.MS_US
        return self._now_us

    def until_us(self, at_us: Instant) -> int:
        return at_us - self.now_us()


class Trickling:
    """Has some cursors due in each shard, and the next one by the time that they were read."""

    def __init__(self, *, cut: bool, took_us: int = 0, clock: Passing | None = None) -> None:
        self.capabilities = Capabilities(
            name="trickling", durable=False, spans_shards=True, shared=True, remote_hints=False,
            transactional_enqueue=(), plan_connections=4, plan_batch_max=1_000,
        )  # fmt: skip
        self.commits: list[int] = []
        self.groups = 0
        self._cut = cut
        self._took_us = took_us
        self._clock = clock

    async def due_cursors(self, shards: Sequence[int], before_us: Instant, *, limit: int) -> DueBatch:
        del limit
        cursors = tuple(Cursor(shard, shard + 1, 1, AT_US, AT_US, 1, 1, POLICY) for shard in shards)
        return DueBatch(cursors=cursors, next_due_us=before_us - 1 if self._cut else before_us + 1)

    async def due_groups(self, shards: Sequence[int], before_us: Instant, *, limit: int) -> GroupBatch:
        del shards, before_us, limit
        self.groups += 1
        return GroupBatch(groups={}, shares=(), more=False)

    async def load_triggers(self, ids: Sequence[int]) -> dict[int, str]:
        return dict.fromkeys(ids, every("60s").to_spec())

    async def commit_plan(self, plan: Plan) -> PlanOutcome:
        self.commits.append(len(plan.moves))
        for _ in range(self._took_us // limits.MS_US):
            assert self._clock
            self._clock.now_us()
        return PlanOutcome(entries=(), created=len(plan.moves), skipped=0)


class Herding(Trickling):
    """Has a herd of cursors in each shard that are all alike."""

    def __init__(self, cursors: int) -> None:
        super().__init__(cut=True)
        self.asked: list[int] = []
        self.due = dict.fromkeys((lease.shard for lease in LEASES), cursors)

    async def due_groups(self, shards: Sequence[int], before_us: Instant, *, limit: int) -> GroupBatch:
        del before_us
        self.asked.append(limit)
        shares = tuple(Share(shard, min(limit, self.due[shard]), AT_US, limit) for shard in shards if self.due[shard])
        groups = {DueGroup(1, AT_US, AT_US, POLICY): sum(share.cursors for share in shares)} if shares else {}
        return GroupBatch(groups=groups, shares=shares, more=any(self.due[shard] > limit for shard in shards))

    async def commit_stride(self, stride: Stride) -> StrideOutcome:
        for share in stride.shares:
            self.due[share.shard] -= share.cursors
        self.commits.append(stride.cursors(frozenset()))
        return StrideOutcome(entries=(), created=stride.cursors(frozenset()))


class Held:
    def trusted(self) -> tuple[Lease, ...]:
        return LEASES

    def forget(self, shards: object) -> None:
        raise AssertionError(shards)


def planner(store: Trickling, clock: Passing) -> Planner:
    return Planner(
        store=cast("Store", store),
        leases=Held(),
        store_clock=cast("Any", clock),
        telemetry=Telemetry(FakeClock()),
        begin=lambda: None,
        deliver=lambda *_: None,
        room=lambda _: 1_000,
        recover=lambda _: None,
        progress=lambda: None,
    )


async def test_what_becomes_due_while_it_is_read_does_not_make_a_burst_of_a_steady_load() -> None:
    """Goal: one commit for all shards, not a stride for each lane.

    Method: the next cursor is due by the time that the first were read, but the read was not cut.
    """
    clock, store = Passing(), Trickling(cut=False)
    pause_us = await planner(store, clock).tick()
    assert (store.commits, store.groups) == ([len(LEASES)], 0)
    assert pause_us >= limits.PLAN_PAUSE_MIN_US


async def test_a_read_that_was_cut_is_a_burst() -> None:
    clock, store = Passing(), Trickling(cut=True)
    await planner(store, clock).tick()
    assert store.groups > 0


@pytest.mark.parametrize(("room", "share"), [(5_000, 1_000), (650, 650), (0, 1_000), (1, 100)])
async def test_a_herd_is_looked_at_in_shares_as_large_as_fit_once_it_is_known_as_one(room: int, share: int) -> None:
    """Goal: a shard that is due at one instant is sorted a few times, not once for each small share of it.

    Method: two lanes of two shards. A first look is at a quarter of what a pass may read; from then on a commit takes
    as much as it can, or as there is room for in memory, where that is more than at first.
    """
    clock, store = Passing(), Herding(1_900)
    store.capabilities = replace(store.capabilities, plan_connections=2)
    await replace(planner(store, clock), due_max=400, room=lambda _: room).tick()
    assert sorted(store.asked)[:2] == [100, 100]
    assert set(sorted(store.asked)[2:]) == {share}
    assert max(store.commits) <= store.capabilities.plan_batch_max


async def test_a_long_pass_is_followed_by_a_pause_as_long_up_to_a_bound() -> None:
    for took_us in (20 * limits.MS_US, limits.SECOND_US):
        clock = Passing()
        pause_us = await planner(Trickling(cut=False, took_us=took_us, clock=clock), clock).tick()
        assert min(took_us, limits.PLAN_PAUSE_LOADED_US) <= pause_us <= limits.PLAN_PAUSE_LOADED_US
