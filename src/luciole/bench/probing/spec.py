"""What a probe is told, and what it found."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from luciole.bench.result import Check, Percentiles


class ProbeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the probes, as requested."""

    duration_s: float = 10  #: of each that runs for a time
    file_mib: int = 512  #: the file that is written over
    files: int = 100_000  #: of `meta-create`
    round_trips: int = 5_000  #: of `rtt`
    tool: str = "auto"  #: "fio", "built-in", or "auto": fio where it is


class Probed(NamedTuple):
    """What one probe found."""

    figures: Mapping[str, float]
    check: Check
    distributions: Mapping[str, Percentiles]
    tool: str  #: what measured it
