"""From any thread to one event loop: many items, one wake-up."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")


class Inbox(Generic[ItemT]):
    """Hands items to a loop in batches: whatever has gathered until it looks is one batch.

    Args:
        loop: where `take` is called.
        take: gets every batch, in the order of `put`.
    """

    __slots__ = ("_items", "_loop", "_take", "_woken")

    def __init__(self, loop: asyncio.AbstractEventLoop, take: Callable[[list[ItemT]], None]) -> None:
        self._loop = loop
        self._take = take
        self._items: deque[ItemT] = deque()
        self._woken = False

    def put(self, item: ItemT) -> None:
        """Add one item, from any thread."""
        self._items.append(item)
        self._wake()

    def put_all(self, items: Iterable[ItemT]) -> None:
        """Add some items, from any thread."""
        self._items.extend(items)
        self._wake()

    def _wake(self) -> None:
        # The item is there before the mark is read, and the mark is taken off before the items are: so an item that
        # finds the mark set is still seen by the look that took it off.
        if not self._woken and not self._loop.is_closed():
            self._woken = True
            self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        self._woken = False
        items = self._items
        batch = [items.popleft() for _ in range(len(items))]
        if batch:
            self._take(batch)
