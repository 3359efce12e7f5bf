"""What is seen of a drain from outside: what its parts used between two instants."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from luciole.bench.attribution.parts import Used, machine_busy_us, pids_of, used_by


class Meter:
    """Reads what parts have used; the processes of each are those that it has when this is made."""

    def __init__(self, parts: Mapping[str, int]) -> None:
        """Take the parts: from a name to the process that it starts with."""
        self._pids = {name: pids_of(pid) for name, pid in parts.items()}

    def read(self) -> "Reading":
        """Read them all."""
        return Reading({name: used_by(pids) for name, pids in self._pids.items()}, machine_busy_us())


class Reading(NamedTuple):
    """What all had used at an instant."""

    parts: dict[str, Used]
    machine_us: int

    def since(self, before: "Reading") -> dict[str, Used]:
        """Return what each part used since an earlier reading, and its memory now."""
        return {
            name: Used(
                max(0, used.cpu_us - before.parts[name].cpu_us),
                max(0, used.run_delay_us - before.parts[name].run_delay_us),
                used.rss_bytes,
            )
            for name, used in self.parts.items()
        }

    def others(self, before: "Reading", wall_us: int) -> float:
        """Return how many cores were used by processes that are none of the parts since an earlier reading."""
        own_us = sum(used.cpu_us for used in self.since(before).values())
        return max(0.0, (self.machine_us - before.machine_us - own_us) / wall_us)


def cores() -> int:
    """Return how many cores the bench and its parts may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
