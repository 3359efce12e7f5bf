"""The memo of next fires: a burst asks the same question once for each schedule of the same trigger."""

from luciole import limits
from luciole.model.fires import Trigger
from luciole.model.instant import Instant


class NextFireMemo:
    """Remembers the next fire of (trigger, instant), up to a bound.

    Two generations: what was asked since the younger began, and what the one before it knew. When the younger is
    full it becomes the older, so that forgetting costs nothing per entry and never drops what was just asked.
    """

    __slots__ = ("_half", "_older", "_younger")

    def __init__(self, *, entries_max: int = limits.NEXT_FIRES_KEPT) -> None:
        self._half = entries_max // 2
        self._younger: dict[tuple[str, Instant], Instant | None] = {}
        self._older: dict[tuple[str, Instant], Instant | None] = {}

    def __len__(self) -> int:
        return len(self._younger) + len(self._older)

    def next_us(self, trigger: Trigger, after_us: Instant) -> Instant | None:
        """Give `trigger.next_us(after_us)`, computed at most once while it is remembered."""
        key = trigger.to_spec(), after_us
        try:
            return self._younger[key]
        except KeyError:
            pass
        fire_us = self._older[key] if key in self._older else trigger.next_us(after_us)
        if len(self._younger) >= self._half:
            self._older, self._younger = self._younger, {}
        self._younger[key] = fire_us
        return fire_us
