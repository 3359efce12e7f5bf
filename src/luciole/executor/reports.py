"""Reports that no node has confirmed yet: kept, sent, sent again, given to another node."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from luciole import limits
from luciole.model.ids import ExecutionKey
from luciole.model.outbox import Report
from luciole.wire.messages import Held


@dataclass(slots=True)
class _Kept:
    report: Report
    node: str | None  #: who is to confirm it; None while no node is there
    sent_us: int | None = None  #: monotonic; None while it waits to be sent


class ReportBook:
    """Every report, from its attempt's end until a node says that it is durable (I9)."""

    def __init__(self) -> None:
        self._kept: dict[tuple[ExecutionKey, int], _Kept] = {}
        self._queues: dict[str, deque[_Kept]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, token: tuple[ExecutionKey, int]) -> bool:
        return token in self._kept

    def add(self, report: Report, home: str | None) -> str | None:
        """Keep a report, to be sent to its attempt's node, else to any; return to which."""
        kept = _Kept(report, None)
        self._kept[report.key, report.attempt] = kept
        return self._assign(kept, home)

    def open(self, node: str) -> None:
        """Note that a node is there; reports that had nobody go to it."""
        self._queues[node] = deque()
        for kept in self._kept.values():
            if kept.node is None:
                self._assign(kept, node)

    def close(self, node: str) -> None:
        """Note that a node is gone; its reports go to another one, sent or not."""
        self._queues.pop(node, None)
        for kept in self._kept.values():
            if kept.node == node:
                self._assign(kept, None)

    def take(self, node: str, count_max: int, now_us: int) -> list[Report]:
        """Return the next reports to send to a node: bounded in count and in bytes, unless one alone is over."""
        queue = self._queues.get(node)
        taken: list[Report] = []
        room = limits.SEND_BYTES_MAX
        while queue and len(taken) < count_max:
            kept = queue[0]
            room -= len(kept.report.result or b"")
            if taken and room < 0:
                break
            queue.popleft()
            kept.sent_us = now_us
            taken.append(kept.report)
        return taken

    def confirm(self, key: ExecutionKey, token: int) -> bool:
        """Forget a report; False when it is not here."""
        return self._kept.pop((key, token), None) is not None

    def repeat(self, node: str, before_us: int) -> bool:
        """Queue again what was sent to a node before a moment and never confirmed; whether there was any."""
        queue = self._queues.get(node)
        if queue is None:
            return False
        late = [
            kept
            for kept in self._kept.values()
            if kept.node == node and kept.sent_us is not None and kept.sent_us < before_us
        ]
        for kept in late:
            kept.sent_us = None
        queue.extend(late)
        return bool(late)

    def held(self) -> Iterable[Held]:
        """Yield the attempts of all kept reports, for a heartbeat."""
        for key, token in self._kept:
            yield Held(key, token, self._kept[key, token].report.started_us)

    def _assign(self, kept: _Kept, wanted: str | None) -> str | None:
        node = wanted if wanted in self._queues else next(iter(self._queues), None)
        kept.node = node
        kept.sent_us = None
        if node is not None:
            self._queues[node].append(kept)
        return node
