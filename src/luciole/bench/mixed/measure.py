"""The mixed profile as a run: the steady load, with requests beside it."""

from collections.abc import Callable

import msgspec

from luciole import limits
from luciole.bench.arrivals import Arrived, arrived_as_asked, asked, rate_missed
from luciole.bench.backends import Backend, Place
from luciole.bench.check import Values, judge
from luciole.bench.processes import Message, Process
from luciole.bench.result import Check, Percentiles, Repeat, Result
from luciole.bench.steady.measure import steady_repeat
from luciole.bench.steady.spec import SteadySpec
from luciole.model.instant import Instant
from luciole.runtime.clock import Clock

#: Requests that come so much later than they should say that the generator was starved.
_LATE_MAX_US = limits.SECOND_US


class MixedMeasure:
    """Each repeat on a fresh store with fresh processes."""

    def __init__(
        self,
        load: SteadySpec,
        backend: Backend,
        *,
        request_rate: int,
        seed: int,
        repeats: int,
        clock: Clock,
        progress: Callable[[str], None],
    ) -> None:
        self._load = load
        self._backend = backend
        self._rate = request_rate
        self._seed = seed
        self._repeats = repeats
        self._clock = clock
        self._progress = progress

    async def __call__(self, result: Result) -> None:
        """Fill in repeats."""
        for index in range(self._repeats):
            beside = RequestsBeside(self._rate, self._seed + index)
            repeat = await steady_repeat(index, self._load, self._backend, self._clock, self._progress, beside=beside)
            result.repeats.append(repeat)


class RequestsBeside:
    """Requests while the schedules fire.

    Args:
        rate: requests a second.
        seed: of their instants and kinds.
    """

    kind = "mixed"

    def __init__(self, rate: int, seed: int) -> None:
        self._rate = rate
        self._seed = seed
        self._told: Message = {}
        self._span_us = 0

    async def run(self, place: Place, start_us: Instant, end_us: Instant) -> None:
        """Let another process make them."""
        self._span_us = end_us - start_us
        async with await Process.start("luciole.bench.mixed.requests", {"LUCIOLE_DSN": place.dsn}) as process:
            self._told = await process.ask("make", rate=self._rate, start_us=start_us, end_us=end_us, seed=self._seed)

    def values(self) -> Values:
        """Return how many of each kind were accepted."""
        made = {kind: int(self._told[kind]) for kind in ("plain", "retried", "cancelled")}
        return {**made, "requests": sum(made.values())}

    def checks(self) -> list[Check]:
        """Judge whether each cancellation that came in time took effect at once, and the requests came as asked for."""
        ended = int(self._told["cancelled_at_once"])
        return [
            judge("cancels_in_time_that_took_effect_at_once", "report", "= :cancelled", ended, self.values()),
            *arrived_as_asked(*self._arrived()),
        ]

    def _arrived(self) -> tuple[Arrived, Arrived]:
        """Return the requests that left, and those that were asked for."""
        wanted = asked(self._rate, self._span_us, self._seed, draws=True)
        return msgspec.convert(self._told["arrived"], Arrived), wanted

    def fill(self, repeat: Repeat) -> None:
        """Add what the requests took; a starved generator makes the run invalid."""
        late = msgspec.convert(self._told["late"], Percentiles)
        repeat.distributions["request_time"] = msgspec.convert(self._told["taken"], Percentiles)
        repeat.distributions["generator_lag"] = late
        repeat.figures["requests"] = float(self.values()["requests"])
        repeat.figures["cancelled"] = float(self.values()["cancelled"])
        repeat.distributions["cancel_time"] = msgspec.convert(self._told["cancel_time"], Percentiles)
        repeat.invalid += rate_missed(*self._arrived())
        if late.p99 > _LATE_MAX_US:
            repeat.invalid.append(
                f"the generator lagged: 1 % of its requests came {late.p99 / limits.SECOND_US:.1f} s late"
            )
