"""The rules: every verb of the contract, with arguments that meet in a small world and are often stale."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState, Origin
from luciole.model.ids import ExecutionKey, Shard
from luciole.model.job import EntryFlag, Misfire, Overlap
from luciole.model.outbox import AttemptOutcome, Delivery, Running, Settlement
from luciole.model.plan import DueBatch, LedgerRow, Plan, PlanOutcome
from luciole.model.schedule import NewSchedule, Policy, Reason, ScheduleSpec, ScheduleState
from luciole.runtime.extras import require
from luciole.store.reads import ExecutionFilter, ScheduleFilter
from luciole.store.spi import Store
from luciole.testing.agreement.side import NODE_TTL_US, REQUEST_KEYS, nodes
from luciole.testing.agreement.two import JOBS, TwoStores
from luciole.testing.contract.harness import SHARDS
from luciole.testing.factories import EXECUTOR_A, EXECUTOR_B, OUTCOMES, a_move, a_node, a_request, a_schedule

with require("testing"):
    from hypothesis import strategies as st
    from hypothesis.stateful import initialize, invariant, precondition, rule

ItemT = TypeVar("ItemT")

TTL_US = 60 * SECOND_US
NAMES = ("s0", "s1", "s2", "t0")
EXECUTORS = (EXECUTOR_A, EXECUTOR_B)

clients = st.integers(0, 1)
numbers = st.integers(0, 1_000)
shard_sets = st.sets(st.integers(0, SHARDS - 1), min_size=1).map(sorted)
offsets_us = st.integers(-5, 5).map(lambda seconds: seconds * SECOND_US)
end_states = st.sampled_from([*OUTCOMES])


def pick(items: Sequence[ItemT], number: int) -> ItemT:
    """Return one of the items; high numbers are the newest, which are the least stale."""
    return items[-1 - number % len(items)]


class LeaseRules(TwoStores):
    """Who is alive, who holds what, and what time it is."""

    @rule(seconds=st.sampled_from([1, 3, 5, 1, 3, 5, 31, 61, 301]))
    def advance(self, seconds: int) -> None:
        """Let time pass."""
        for side in self.sides:
            self.runner.run(side.harness.advance(seconds * SECOND_US))

    @rule(client=clients, node=clients)
    def beat(self, client: int, node: int) -> None:
        """A heartbeat; two at one moment may miss each other, so that it never races."""
        info = a_node(nodes()[node])
        self.both(client, lambda store, _: store.beat(info, node_ttl_us=NODE_TTL_US))

    @rule(client=clients, node=clients)
    def leave(self, client: int, node: int) -> None:
        """A node that leaves."""
        self.tell(client, lambda store, _: store.leave(nodes()[node]))

    @rule(client=clients, node=clients, shards=shard_sets)
    def acquire(self, client: int, node: int, shards: list[Shard]) -> None:
        """A node that takes what is free."""
        taken = self.both(client, lambda store, _: store.acquire_leases(nodes()[node], shards, ttl_us=TTL_US))
        self.leases += zip(*taken, strict=True)

    @precondition(lambda self: self.leases)
    @rule(client=clients, chosen=st.lists(numbers, min_size=1, max_size=4))
    def renew(self, client: int, chosen: list[int]) -> None:
        """A renewal, of lost leases too."""
        self.tell(client, lambda store, n: store.renew_leases(self._leases(chosen, n), ttl_us=TTL_US))

    @precondition(lambda self: self.leases)
    @rule(client=clients, chosen=st.lists(numbers, min_size=1, max_size=4))
    def release(self, client: int, chosen: list[int]) -> None:
        """A release, of lost leases too."""
        self.tell(client, lambda store, n: store.release_leases(self._leases(chosen, n)))

    def _leases(self, chosen: Iterable[int], side: int) -> list[Any]:
        pairs = {pick(self.leases, number)[0].shard: pick(self.leases, number) for number in chosen}
        return [pair[side] for pair in pairs.values()]

    def _all_leases(self, side: int) -> list[Any]:
        """The newest lease of each shard, which may be lost."""
        return [*{pair[side].shard: pair[side] for pair in self.leases}.values()]


class PlanRules(LeaseRules):
    """Cursors in, executions and entries out."""

    @initialize(fire=offsets_us)
    def begin_with_schedules(self, fire: int) -> None:
        """One schedule of each overlap policy, and a node that holds everything."""
        fire_us = self.now_us() + fire
        schedules = [
            a_schedule(name, fire_us=fire_us, overlap=overlap, job=JOBS[0], owner="o")
            for name, overlap in zip(NAMES, Overlap, strict=True)
        ]
        first = self.ids(len(NAMES))
        self.tell(0, lambda store, _: store.put_schedules(schedules, first_id=first))
        self.acquire(client=0, node=0, shards=[*range(SHARDS)])
        self.read_due(client=0)

    @rule(client=clients)
    def read_due(self, client: int) -> None:
        """A planner that looks."""

        async def call(store: Store, _: int) -> DueBatch:
            batch = await store.due_cursors(range(SHARDS), await store.now_us() + 60 * SECOND_US, limit=100)
            return replace(batch, cursors=tuple(sorted(batch.cursors, key=lambda cursor: cursor.schedule_id)))

        left, right = self.both(client, call)
        self.cursors += zip(left.cursors, right.cursors, strict=True)

    @precondition(lambda self: self.cursors and self.leases)
    @rule(
        client=clients,
        chosen=st.lists(st.integers(0, 5), min_size=1, max_size=3),
        stale=st.lists(numbers, max_size=1),
        looks=st.booleans(),
        fires=st.sampled_from([1, 1, 2, 3, 0]),
        is_last=st.sampled_from([False, False, False, True]),
        ready=st.booleans(),
        skips=st.integers(0, 2),
    )
    def plan(self, client: int, chosen: list[int], stale: list[int], *, looks: bool, **shape: Any) -> None:  # noqa: ANN401 - of moves
        """A planner that commits what it saw, just now or maybe long ago."""
        if looks:
            self.read_due(client)
        pairs = {pick(self.cursors, number)[0].schedule_id: pick(self.cursors, number) for number in chosen}

        def plan_of(side: int) -> Plan:
            leases = {lease.shard: lease for lease in (*self._all_leases(side), *self._leases(stale, side))}
            moves = tuple(_move(pair[side], **shape) for pair in pairs.values())
            return Plan(moves=moves, leases=tuple(leases.values()))

        async def call(store: Store, side: int) -> PlanOutcome:
            outcome = await store.commit_plan(plan_of(side))
            return replace(outcome, lost=tuple(sorted(outcome.lost)))

        self.tell(client, call)

    @precondition(lambda self: self.cursors and self.leases)
    @rule(client=clients, chosen=numbers)
    def park(self, client: int, chosen: int) -> None:
        """A planner that can't read a schedule."""
        cursor = pick(self.cursors, chosen)[0]
        parked = [(cursor.schedule_id, cursor.shard, "unreadable")]
        self.tell(client, lambda store, n: store.park_schedules(self._all_leases(n), parked))


class RunRules(PlanRules):
    """Executions by request, deliveries and outcomes."""

    @rule(client=clients, jobs=st.lists(numbers, min_size=1, max_size=3), key=numbers, delay=st.integers(0, 2))
    def enqueue(self, client: int, jobs: list[int], key: int, delay: int) -> None:
        """Requests, some with a key that exists."""
        first, key_of = self.ids(len(jobs)), (*REQUEST_KEYS, None, None)
        job_ids = [pick(self.job_ids, number) for number in jobs]
        self.tell(
            client,
            lambda store, n: store.enqueue(
                [
                    a_request(
                        first + i,
                        pair[n],
                        (first + i) % SHARDS,
                        key=key_of[(key + i) % 4],
                        delay_us=delay * SECOND_US,
                        priority=jobs[i] % 10,
                        payload=b"\x00" if jobs[i] % 2 else None,
                        labels=(("a", "b"),) if jobs[i] % 3 else (),
                    )
                    for i, pair in enumerate(job_ids)
                ]
            ),
        )

    @precondition(lambda self: self.cursors)
    @rule(client=clients, chosen=st.integers(0, 5), key=numbers, age=st.integers(0, 2))
    def run_by_hand(self, client: int, chosen: int, key: int, age: int) -> None:
        """A run of a schedule by hand."""
        number, pair = self.ids(1), pick(self.cursors, chosen)
        fire_us = self.now_us() - age * SECOND_US
        self.tell(
            client,
            lambda store, n: store.trigger_schedule(
                a_request(
                    number,
                    pair[n].job_id,
                    pair[n].shard,
                    schedule_id=pair[n].schedule_id,
                    fire_us=fire_us,
                    origin=Origin.MANUAL,
                    key=(*REQUEST_KEYS, None, None, None, None)[key % 6],
                )
            ),
        )

    @precondition(lambda self: self.attempts)
    @rule(
        client=clients,
        ends=st.lists(st.tuples(numbers, end_states, st.sampled_from([0, 0, 0, -1, 1])), min_size=1, max_size=4),
        due=offsets_us,
    )
    def settle(self, client: int, ends: list[tuple[int, ExecutionState, int]], due: int) -> None:
        """Outcomes, some of them stale or said twice."""
        now_us = self.now_us()
        settlements = [self._settlement(*end, now_us=now_us, due_us=now_us + due) for end in ends]
        self.tell(client, lambda store, _: store.settle(settlements))

    @precondition(lambda self: self.attempts and self.leases)
    @rule(client=clients, chosen=st.lists(numbers, min_size=1, max_size=3), executor=clients)
    def deliver(self, client: int, chosen: list[int], executor: int) -> None:
        """Deliveries that must be recorded."""
        now_us = self.now_us()
        deliveries = [Delivery(key, self.attempts[key], EXECUTORS[executor], now_us) for key in self._keys(chosen)]
        self.tell(client, lambda store, n: store.record_deliveries(self._all_leases(n), deliveries))

    @precondition(lambda self: self.attempts)
    @rule(client=clients, chosen=st.lists(numbers, min_size=1, max_size=3), executor=clients, old=st.booleans())
    def run(self, client: int, chosen: list[int], executor: int, *, old: bool) -> None:
        """A heartbeat of attempts."""
        now_us = self.now_us()
        marks = [
            Running(key, self.attempts[key] - old, EXECUTORS[executor], now_us, None if old else "half")
            for key in self._keys(chosen)
        ]
        self.tell(client, lambda store, _: store.mark_running(marks))

    @precondition(lambda self: self.attempts)
    @rule(client=clients, chosen=st.lists(numbers, min_size=1, max_size=3))
    def cancel(self, client: int, chosen: list[int]) -> None:
        """Requests to end."""
        keys = self._keys(chosen)
        self.tell(client, lambda store, _: store.request_cancel(keys))

    @precondition(lambda self: self.attempts)
    @rule(client=clients, chosen=st.lists(numbers, min_size=1, max_size=3))
    def unpark(self, client: int, chosen: list[int]) -> None:
        """Repairs."""
        keys = self._keys(chosen)
        self.tell(client, lambda store, _: store.unpark(keys))

    @rule(client=clients, shard=st.integers(0, SHARDS - 1), limit=st.integers(1, 5), age=st.integers(-2, 2))
    def prune(self, client: int, shard: Shard, limit: int, age: int) -> None:
        """A step of retention from a shard's beginning; two at one moment may name the same, so that it never races."""
        before_us = self.now_us() - age * SECOND_US
        self.both(client, lambda store, _: store.prune(shard, before_us, after=None, limit=limit))

    @rule(client=clients, shard=st.integers(0, SHARDS - 1), limit=st.integers(1, 5), age=st.integers(-2, 2))
    def prune_schedules(self, client: int, shard: Shard, limit: int, age: int) -> None:
        """Schedules that are over, from a shard's beginning."""
        before_us = self.now_us() - age * SECOND_US
        self.both(client, lambda store, _: store.prune_schedules(shard, before_us, after=0, limit=limit))

    def _keys(self, chosen: Iterable[int]) -> list[ExecutionKey]:
        known = [*self.attempts]
        return [*dict.fromkeys(pick(known, number) for number in chosen)]

    def _settlement(self, chosen: int, state: ExecutionState, old: int, *, now_us: int, due_us: int) -> Settlement:
        (key,) = self._keys([chosen])
        outcome = OUTCOMES[state]
        return Settlement(
            key=key,
            attempt=self.attempts[key] + old,
            state=state,
            outcome=outcome,
            started_us=now_us - 1,
            finished_us=now_us,
            executor_id=EXECUTORS[chosen % 2],
            result=b"\x00\xff" if outcome is AttemptOutcome.SUCCEEDED else None,
            error=None if outcome is AttemptOutcome.SUCCEEDED else "no\x00",
            due_us=due_us if not state.terminal and chosen % 3 else None,
            counts_loss=outcome is AttemptOutcome.LOST,
            releases=key in self.entries and bool(self.entries[key].flags & EntryFlag.RELEASES),
        )


class CatalogRules(RunRules):
    """What users declare and look at."""

    @rule(
        client=clients,
        names=st.sets(st.sampled_from(NAMES), min_size=1).map(sorted),
        shape=st.tuples(numbers, st.sampled_from([*Overlap]), st.sampled_from(["t0", "t1"]), st.sampled_from("oop")),
        fire=st.one_of(st.none(), offsets_us),
        replaces=st.booleans(),
    )
    def register(
        self, client: int, names: list[str], shape: tuple[int, Overlap, str, str], fire: int | None, *, replaces: bool
    ) -> None:
        """New schedules, and edits of those that exist."""
        job, overlap, trigger, owner = shape
        first, now_us = self.ids(len(names)), self.now_us()
        fire_us = None if fire is None else now_us + fire
        schedules = [
            NewSchedule(
                spec=ScheduleSpec(
                    name=name,
                    owner=owner,
                    job=pick(JOBS, job),
                    trigger=trigger,
                    policy=Policy(misfire=Misfire.SKIP, overlap=overlap),
                ),
                fire_us=fire_us,
                due_us=None if fire_us is None else fire_us + job % 2,
            )
            for name in names
        ]
        self.tell(client, lambda store, _: store.put_schedules(schedules, first_id=first, replace=replaces))

    @rule(client=clients, name=st.sampled_from(NAMES))
    def view(self, client: int, name: str) -> None:
        """A look at one schedule."""
        pair = self.both(client, lambda store, _: store.get_schedule("default", name))
        if pair[0] is not None:
            self.views.append(pair)

    @precondition(lambda self: self.views)
    @rule(
        client=clients,
        chosen=st.integers(0, 3),
        state=st.sampled_from([*ScheduleState]),
        fire=st.one_of(st.none(), offsets_us),
        fires=st.integers(0, 2),
    )
    def set_state(self, client: int, chosen: int, state: ScheduleState, fire: int | None, fires: int) -> None:
        """A pause, a resume, a deletion, by whoever has looked, maybe long ago."""
        pair, now_us = pick(self.views, chosen), self.now_us()
        fire_us = None if fire is None else now_us + fire
        ledger = [LedgerRow(now_us - 9 + n, now_us - 9 + n, 1, Reason.PAUSED) for n in range(fires)]
        self.tell(
            client,
            lambda store, n: store.set_schedule_state(
                pair[n].schedule_id,
                state,
                reason=state.value,
                fire_us=fire_us,
                due_us=fire_us,
                revision=pair[n].revision,
                ledger=ledger,
            ),
        )

    @rule(client=clients, prefix=st.sampled_from(["s", "t", "", "x"]), offset=offsets_us)
    def reschedule(self, client: int, prefix: str, offset: int) -> None:
        """One instant for a selection."""
        at_us = self.now_us() + offset
        self.tell(client, lambda store, _: store.reschedule("default", prefix, at_us))

    @rule(client=clients, states=st.sets(st.sampled_from([*ExecutionState])), limit=st.integers(1, 4))
    def walk(self, client: int, states: set[ExecutionState], limit: int) -> None:
        """Listings, page by page."""
        for schedule_id in (None, 0, 1):
            page: str | None = None
            while True:
                query = ExecutionFilter(schedule_id=schedule_id, states=frozenset(states), limit=limit, page=page)
                page = self._list(client, query)
                if page is None:
                    break
        names = ScheduleFilter(name_prefix="s", limit=limit)
        self.tell(client, lambda store, _: store.list_schedules(names))

    def _list(self, client: int, query: ExecutionFilter) -> str | None:
        return cast("str | None", self.both(client, lambda store, _: store.list_executions(query))[0].next)


class StoreAgreement(CatalogRules):
    """The whole machine; a subclass says what `make_left` and `make_right` are."""

    @invariant()
    def all_that_can_be_seen_is_equal(self) -> None:
        """Compare the two stores."""
        self.check()


def _move(cursor: Any, *, fires: int, is_last: bool, ready: bool, skips: int) -> Any:  # noqa: ANN401 - values of the model
    """Return a step of some skipped fire times and some fires, a second apart."""
    start_us = cursor.fire_us
    times = [start_us + n * SECOND_US for n in range(skips + fires)]
    ledger = [LedgerRow(at_us, at_us, 1, Reason.MISFIRE) for at_us in times[:skips]]
    next_us = None if is_last else start_us + max(1, len(times)) * SECOND_US
    return a_move(cursor, fires=times[skips:], next_fire_us=next_us, ledger=ledger, ready=ready)
