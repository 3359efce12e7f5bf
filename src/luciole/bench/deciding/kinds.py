"""What kind of figure a metric is, and by how much it may become worse."""

from enum import Enum

from luciole.bench.deciding.sequential import THRESHOLD
from luciole.bench.result import MetricSpec

#: What is counted, not timed: nearly free of noise.
_COUNTED = {
    "bytes",
    "calls",
    "commands",
    "commits",
    "events",
    "fsyncs",
    "instructions",
    "opcodes",
    "round trips",
    "rows",
    "statements",
}

#: What is counted must not become more than this, as a share.
WORK_THRESHOLD = 0.01

#: The same where loops run by the clock, so that a longer run does more of it.
WORK_UNDER_LOAD_THRESHOLD = 0.03

#: A count for each job that changes by less is a chunk more or less, not work for each job.
WORK_FLOOR = 0.002


class Kind(Enum):
    """What a figure is made of; in this order it may be trusted."""

    WORK = "work"
    CPU = "cpu"
    TIME = "time"


def kind_of_unit(unit: str) -> Kind:
    """Return the kind of what is measured in a unit: `commits/job` is work, `us/job` CPU, all else time."""
    what, _, each = unit.partition("/")
    if what in _COUNTED and each not in {"", "s"}:
        return Kind.WORK
    return Kind.CPU if what == "us" and each else Kind.TIME


def kind_of(spec: MetricSpec) -> Kind:
    """Return the kind of a metric."""
    return kind_of_unit(spec.unit)


def threshold_of(kind: Kind, *, under_load: bool, asked: float = THRESHOLD) -> float:
    """Return the share by which a figure may become worse.

    Args:
        kind: of the figure.
        under_load: whether its profile does work by the clock.
        asked: what counts for all that is not counted.
    """
    if kind is not Kind.WORK:
        return asked
    return WORK_UNDER_LOAD_THRESHOLD if under_load else WORK_THRESHOLD
