"""Flapping: in the middle of a burst shards change hands, and one scheduler is killed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from luciole import limits
from luciole.bench.burst.owners import Owners
from luciole.bench.processes import Process, ask_all
from luciole.bench.verdict import InvalidRun
from luciole.model.ids import Shard
from luciole.model.instant import Instant
from luciole.runtime.clock import Clock
from luciole.store.spi import Store

#: What happens once so much of the burst is durable: half of a living scheduler's shards move, or one is killed.
_MOVE, _KILL = "move", "kill"
_STEPS = ((0.05, _MOVE), (0.15, _KILL), (0.35, _MOVE), (0.5, _MOVE), (0.65, _MOVE))

_LOOK_US = 2 * limits.MS_US
_END_LOOK_US = 10 * limits.MS_US
_DRAIN_MAX_US = 2 * limits.MINUTE_US


@dataclass(slots=True, kw_only=True)
class Flapping:
    """Watches a burst whose plan loops run, and disturbs it when asked."""

    store: Store
    owners: Owners
    processes: Sequence[Process]
    held: dict[int, set[Shard]]  #: the shards of each scheduler, by its number
    clock: Clock
    take_overs: int = 0  #: shards that changed hands
    kills: int = 0
    _created: dict[int, int] = field(default_factory=dict)
    _had: dict[int, set[Shard]] = field(default_factory=dict)  #: the shards that each scheduler ever held

    def __post_init__(self) -> None:
        self._had = {number: set(shards) for number, shards in self.held.items()}

    async def disturb(self, jobs: int, at_us: Instant) -> None:
        """Do every step in its moment, as long as the burst lasts.

        Raises:
            InvalidRun: it had ended before both a take-over and the kill had come, or came to a standstill.
        """
        end_us = self._end_us(at_us)
        for share, step in _STEPS:
            while await self._seen() < share * jobs:
                await self._pause(_LOOK_US, end_us)
            if not await self._due(at_us):
                if self.take_overs and self.kills:
                    return
                raise InvalidRun("the burst had ended before it was disturbed: take more jobs, or smaller chunks")
            await (self._kill() if step == _KILL else self._move())

    async def ended(self, at_us: Instant) -> None:
        """Wait until nothing that is due at the instant is still to be planned.

        Raises:
            InvalidRun: that does not happen.
        """
        end_us = self._end_us(at_us)
        while await self._due(at_us):
            await self._pause(_END_LOOK_US, end_us)

    async def _due(self, at_us: Instant) -> bool:
        """Whether anything that is due at the instant is still to be planned."""
        batch = await self.store.due_cursors(range(self.store.shards), at_us, limit=1)
        return bool(batch.cursors)

    def _end_us(self, at_us: Instant) -> int:
        """Return when to give up, by the monotonic clock."""
        return self.clock.monotonic_us() + max(0, at_us - self.clock.now_us()) + _DRAIN_MAX_US

    async def _seen(self) -> int:
        """Return how many executions the schedulers have had from their commits, the killed one included."""
        alive = sorted(self.held)
        answers = await ask_all([self.processes[number] for number in alive], "progress")
        self._created |= {number: answer["created"] for number, answer in zip(alive, answers, strict=True)}
        return sum(self._created.values())

    async def _pause(self, pause_us: int, end_us: int) -> None:
        if self.clock.monotonic_us() > end_us:
            raise InvalidRun("the burst came to a standstill")
        await self.clock.sleep(pause_us)

    async def _kill(self) -> None:
        """Kill the scheduler that has done most, as a crash would, and give its shards to the others."""
        victim = max(self.held, key=lambda number: self._created[number])
        self.processes[victim].kill()
        self.kills += 1
        orphans = sorted(self.held.pop(victim))
        for at, number in enumerate(sorted(self.held)):
            await self._hand_over(orphans[at :: len(self.held)], number)

    async def _move(self) -> None:
        """Hand half of the largest holder's shards to the smallest one; the old holder is not told."""
        order = sorted(self.held, key=lambda number: (len(self.held[number]), number))
        # A shard never comes back: a refusal that is on its way would take the new lease for the old one.
        moved = sorted(self.held[order[-1]] - self._had[order[0]])[::2]
        self.held[order[-1]] -= set(moved)
        await self._hand_over(moved, order[0])

    async def _hand_over(self, shards: Iterable[Shard], number: int) -> None:
        leases = await self.owners.take_over(self.owners.join(), shards)
        taken = {lease.shard for lease in leases}
        self.held[number] |= taken
        self._had[number] |= taken
        self.take_overs += len(leases)
        await self.processes[number].ask("grant", leases=msgspec.to_builtins(leases))
