"""What a profile is: data, with a question and the border of its figures."""

from typing import Any, Literal

import msgspec

from luciole.bench.result import MetricSpec
from luciole.bench.verdict import Usage

Size = Literal["full", "ci", "smoke"]
SIZES: tuple[Size, ...] = ("full", "ci", "smoke")


def _with_shares(metrics: tuple[MetricSpec, ...]) -> tuple[MetricSpec, ...]:
    """Return metrics, and behind them the share of each throughput whose share is not among them already."""
    names = {one.name for one in metrics}
    shares = [
        MetricSpec(name=one.share, unit="ratio", direction="none", text=f"{one.name} by {one.ceiling}")
        for one in metrics
        if one.share and one.share not in names
    ]
    return (*metrics, *shares)


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One profile."""

    name: str
    question: str
    border: str  #: what its figures include, and what not
    backends: tuple[str, ...]
    phases: tuple[str, ...]
    parameters: dict[Size, dict[str, Any]]
    metrics: tuple[MetricSpec, ...]
    invariants: tuple[str, ...]
    limits_of_inference: tuple[str, ...]
    under_load: bool = False  #: loops run by the clock, so that counts for each job are not exact

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "metrics", _with_shares(self.metrics))

    def metric(self, name: str) -> MetricSpec:
        """Return one of its metrics.

        Raises:
            Usage: it has none of this name.
        """
        for one in self.metrics:
            if one.name == name:
                return one
        raise Usage(f"profile {self.name}: it has no metric {name!r}")
