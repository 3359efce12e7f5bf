"""Stage stamps: when each execution passed each stage of its path; made only while somebody measures."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Protocol

from luciole.model.ids import ExecutionKey


class Stage(IntEnum):
    """The stages of one execution, in order."""

    DECIDE = 0  #: the planner chose to fire it
    COMMIT = 1  #: its creation returned as durable
    DELIVER = 2  #: handed to a session
    START = 3  #: the handler began, as reported
    REPORT = 4  #: its outcome reached the node
    SETTLE = 5  #: its outcome returned as durable


class Probe(Protocol):
    """Takes stamps; parts that are given none pay one comparison a batch."""

    def stamp(self, stage: Stage, keys: Iterable[ExecutionKey], at_us: int) -> None:
        """Note that these executions passed a stage.

        Args:
            stage: the stage.
            keys: whose.
            at_us: when, by the store's clock as the node knows it.
        """
        ...


class StageStamps:
    """Keeps the first stamp of each execution at each stage, in memory, until it is read."""

    def __init__(self) -> None:
        self.stamps: dict[Stage, dict[ExecutionKey, int]] = {stage: {} for stage in Stage}

    def stamp(self, stage: Stage, keys: Iterable[ExecutionKey], at_us: int) -> None:
        """Note that these executions passed a stage at this instant."""
        kept = self.stamps[stage]
        for key in keys:
            kept.setdefault(key, at_us)
