"""Two verbs at one moment: a store must answer as if one had come after the other."""

from typing import Any, cast

from luciole.limits import SECOND_US
from luciole.model.execution import ExecutionState
from luciole.model.job import Overlap
from luciole.runtime.extras import require
from luciole.testing.agreement.machine import NAMES, StoreAgreement, numbers, pick
from luciole.testing.agreement.side import Call, Side
from luciole.testing.contract.harness import SHARDS, MemoryHarness

with require("testing"):
    from hypothesis import strategies as st
    from hypothesis.stateful import rule

#: Verbs that want to change one schedule or what is open of it.
RIVALS = ("plan", "run", "settle", "cancel", "edit")


class StoreSerializes(StoreAgreement):
    """The agreement machine with races.

    On the right, two verbs are interleaved as badly as the store allows. On the left (always the memory store) they
    run one after the other, once in each order; one of the two must be what the right did, in both answers and in
    all that can be seen.
    """

    make_left = MemoryHarness.make

    def __init__(self) -> None:
        super().__init__()
        self.races = 0  #: that came to their end
        self._held: Call | None = None

    @rule(chosen=st.integers(0, 3), first=st.sampled_from(RIVALS), second=st.sampled_from(RIVALS), number=numbers)
    def race_for_one_schedule(self, chosen: int, first: str, second: str, number: int) -> None:
        """Two verbs that both know how one schedule stands, and both want to change it."""
        self.acquire(client=0, node=0, shards=[*range(SHARDS)])
        self.read_due(client=0)
        if len(self.cursors) <= chosen:
            return
        schedule_id = pick(self.cursors, chosen)[0].schedule_id
        mine = [n for n, key in enumerate(reversed([*self.attempts])) if key.schedule_id == schedule_id]
        self._held = None
        for rival in (first, second):
            newest = mine[number % len(mine)] if mine else 0
            self._rival(rival, chosen, newest, number)

    def _rival(self, rival: str, chosen: int, newest: int, number: int) -> None:
        if rival == "plan":
            self.plan(0, [chosen], [], looks=False, fires=1 + number % 2, is_last=False, ready=False, skips=0)
        elif rival == "run" or not self.attempts:
            self.run_by_hand(0, chosen, key=5, age=0)
        elif rival == "settle":
            state = pick((ExecutionState.RETRY_WAIT, ExecutionState.PARKED, ExecutionState.SUCCEEDED), number)
            self.settle(0, [(newest, state, 0)], due=0)
        elif rival == "cancel":
            self.cancel(0, [newest])
        else:
            name = NAMES[pick(self.cursors, chosen)[0].schedule_id % len(NAMES) - 1]
            overlap, trigger = pick([*Overlap], number), pick(["t0", "t1"], number)
            self.register(0, [name], (number, overlap, trigger, "o"), 2 * SECOND_US, replaces=True)

    def tell(self, client: int, call: Call) -> None:
        """Let every two calls race, at one moment that is the second's; what they are told may be stale by then."""
        if not self.leases:  # It has not begun.
            super().tell(client, call)
        elif self._held is None:
            self._held = call
        else:
            first, self._held = self._held, None
            self.runner.run(self._race(first, call))

    async def _race(self, first: Call, second: Call) -> None:
        left, right = self.sides
        forks = [await _fork(left), await _fork(left)]
        one, other = forks
        expected = [[await one.ask(0, first), await one.ask(1, second)]]
        expected.append([*reversed([await other.ask(1, second), await other.ask(0, first)])])
        answers = await right.harness.interleave(right.ask(0, first), right.ask(1, second))
        found = right.plain(answers), await right.picture()
        possible = [
            (fork.plain(tuple(answered)), await fork.picture()) for fork, answered in zip(forks, expected, strict=True)
        ]
        assert found in possible, "neither order explains the race:" + "".join(
            f"\n{order}: {_difference(found, one)}"
            for order, one in zip(("in order", "reversed"), possible, strict=True)
        )
        winner = forks[possible.index(found)]
        for side in (left, *forks):
            if side is not winner:
                await side.harness.close()
        self.sides = (winner, right)
        self.races += 1
        await self.look()


async def _fork(side: Side) -> Side:
    harness = await cast("MemoryHarness", side.harness).fork()
    return Side(harness=harness, number=side.number, jobs=side.jobs, triggers=side.triggers)


def _difference(found: tuple[Any, dict[str, Any]], expected: tuple[Any, dict[str, Any]]) -> str:
    lines = [] if found[0] == expected[0] else [f"answers\n   found {found[0]}\nexpected {expected[0]}"]
    names = [name for name, seen in expected[1].items() if found[1][name] != seen]
    lines += [f"{name}\n   found {found[1][name]}\nexpected {expected[1][name]}" for name in names]
    return "\n".join(lines)
