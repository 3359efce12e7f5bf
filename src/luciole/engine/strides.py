"""The planner's long steps: in a burst, groups of like cursors are decided once and moved by the store."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from luciole import limits
from luciole.engine.commits import Commits
from luciole.engine.triggers import TriggerShelf
from luciole.model.ids import Shard
from luciole.model.instant import Instant
from luciole.model.planning import plan_steps
from luciole.model.stride import GroupBatch, Share, Step, Stride
from luciole.runtime.steps import Steps
from luciole.store.spi import Store


class Strode(NamedTuple):
    """What one round of strides came to."""

    left: bool  #: some of the most overdue cursors have to be planned one by one
    more: bool  #: there was more due than the round looked at
    gain: bool  #: another round is worth it
    next_us: Instant | None  #: when the next of the moved schedules is due


@dataclass(slots=True, kw_only=True)
class Strider:
    """Plans what is due in groups, as far as its cursors are alike."""

    store: Store
    commits: Commits
    triggers: TriggerShelf
    room: Callable[[Shard], int]
    steps: Steps | None = None

    async def round(self, shards: Sequence[Shard], *, plan_ahead_us: int, limit: int, batch: int) -> Strode:
        """Move the most overdue cursors of some shards, at most `limit` in all, `batch` a commit."""
        now_us = self.commits.store_clock.now_us()
        horizon_us = now_us + plan_ahead_us
        telemetry = self.commits.telemetry
        share = max(1, min(limit // len(shards), batch))
        due = await telemetry.timed("due_groups", self.store.due_groups(shards, horizon_us, limit=share))
        counted = sum(due.groups.values())
        if counted < limits.STRIDE_GAIN_MIN * len(due.groups) or not counted:
            return Strode(left=True, more=True, gain=False, next_us=None)
        triggers = await self.triggers.load(self.store, telemetry, {group.trigger_id for group in due.groups})
        begun_us = 0 if self.steps is None else self.steps.begin()
        steps = plan_steps(
            due.groups,
            now_us=now_us,
            horizon_us=horizon_us,
            triggers=triggers,
            next_fire=self.triggers.memo.next_us,
        )
        if self.steps is not None:
            self.steps.end("decide", begun_us)
        created = 0
        for shares in _chunks(due, batch) if steps else ():
            created += await self._commit(shares, steps)
        next_us = min((step.next_due_us for step in steps if step.next_due_us is not None), default=None)
        return Strode(left=created < counted, more=due.more, gain=2 * created > counted, next_us=next_us)

    async def _commit(self, shares: Sequence[Share], steps: tuple[Step, ...]) -> int:
        held = {lease.shard: lease for lease in self.commits.leases.trusted()}
        shares = [share for share in shares if share.shard in held]  # I3: its new holder plans the rest.
        if not shares:
            return 0
        stride = Stride(
            steps=steps,
            shares=tuple(shares),
            ready=frozenset(share.shard for share in shares if share.cursors > self.room(share.shard)),
            leases=tuple(held[share.shard] for share in shares),
        )
        outcome = await self.commits.run(
            "commit_stride", [share.shard for share in shares], self.store.commit_stride(stride)
        )
        if outcome.left:
            self.commits.telemetry.count("strides_left", outcome.left)
        return outcome.created


def _chunks(due: GroupBatch, batch: int) -> Iterator[list[Share]]:
    """Deal the shares to chunks of at most `batch` cursors; each share has at most so many itself."""
    chunk: list[Share] = []
    for share in due.shares:
        if chunk and sum(other.cursors for other in chunk) + share.cursors > batch:
            yield chunk
            chunk = []
        chunk.append(share)
    if chunk:
        yield chunk
