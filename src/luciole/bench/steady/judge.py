"""The objective of the steady profile: what was punctual, what was missed, and which clause a run failed; pure."""

from collections.abc import Iterable

import msgspec

from luciole import limits
from luciole.bench.percentiles import Distribution
from luciole.bench.steady.ledger import Start
from luciole.bench.steady.spec import SteadySpec
from luciole.model.instant import Instant

#: A spread start is on time up to this much after its due time.
ON_TIME_US = limits.SECOND_US

#: The share of spread starts that must be on time.
ON_TIME_MIN = 0.999

#: Of all starts of an aligned load, 99 % must come within this.
ALIGNED_P99_US = 5 * limits.SECOND_US

#: Percentiles over time are those of pieces of a window: of this length, or longer when there would be too many.
_PIECE_US = 10 * limits.SECOND_US
_PIECES_MAX = 120


class Punctuality(msgspec.Struct, frozen=True, kw_only=True):
    """How the first attempts of a window started."""

    starts: int
    on_time: int  #: within a second of their due time
    in_cycle: int  #: within a period of it
    lag: Distribution
    lag_by_time: dict[Instant, Distribution]  #: the same by a piece of the window, from its beginning

    @property
    def on_time_share(self) -> float:
        """The share that was on time; of none, none."""
        return self.on_time / self.starts if self.starts else 0.0


def punctuality(starts: Iterable[Start], *, since_us: Instant, until_us: Instant, period_us: int) -> Punctuality:
    """Count the first attempts that were due in a window."""
    piece_max_us = max(_PIECE_US, -(-(until_us - since_us) // _PIECES_MAX))
    lag = Distribution()
    by_time: dict[Instant, Distribution] = {}
    count = on_time = in_cycle = 0
    for start in starts:
        if start.attempt != 1 or not since_us <= start.due_us < until_us:
            continue
        late_us = start.started_us - start.due_us
        lag.add(late_us)
        piece_us = start.due_us - (start.due_us - since_us) % piece_max_us
        if piece_us not in by_time:
            by_time[piece_us] = Distribution()
        by_time[piece_us].add(late_us)
        count += 1
        on_time += late_us <= ON_TIME_US
        in_cycle += late_us < period_us
    return Punctuality(starts=count, on_time=on_time, in_cycle=in_cycle, lag=lag, lag_by_time=by_time)


def unmet(spec: SteadySpec, found: Punctuality, *, missed: int) -> list[str]:
    """Return the clauses of the objective that a run failed; none: it met it.

    Args:
        spec: the load.
        found: of the starts that count.
        missed: fire times of the window that brought no execution.
    """
    clauses = []
    if missed:
        clauses.append(f"missed: {missed:,} fire times brought no execution; none may be missed")
    if spec.phase == "spread" and found.on_time_share < ON_TIME_MIN:
        clauses.append(
            f"on time: {found.on_time_share:.3%} of {found.starts:,} starts came within "
            f"{ON_TIME_US // limits.MS_US} ms; {ON_TIME_MIN:.1%} must"
        )
    if spec.phase == "aligned":
        p99_us = found.lag.percentiles().p99 if found.starts else 0
        if found.in_cycle < found.starts:
            clauses.append(f"cycle: {found.starts - found.in_cycle:,} starts came after their cycle; none may")
        if p99_us > ALIGNED_P99_US:
            clauses.append(
                f"p99: {p99_us / limits.SECOND_US:.2f} s; at most {ALIGNED_P99_US / limits.SECOND_US:g} s may pass"
            )
    return clauses
