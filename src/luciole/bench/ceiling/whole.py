"""The ceiling of executions from plan to outcome: the server alone, planning and settling one after the other."""

from luciole.bench.backends import Backend
from luciole.bench.burst.load import TRIGGERS
from luciole.bench.ceiling.lanes import measure_rows, one_after_the_other
from luciole.bench.ceiling.measure import measure_ceiling
from luciole.bench.ceiling.settings import settings_to_try
from luciole.bench.run import fresh_place
from luciole.runtime.clock import Clock

#: Enough to be fast, few enough to be soon done.
_ROWS = 10_000
_SHARDS = 32


async def measure_executions(backend: Backend, clock: Clock) -> float:
    """Return how many executions a second the server alone plans and settles."""
    async with fresh_place(backend) as place:
        settings = settings_to_try(backend.name, "short")
        tried = await measure_ceiling(place, settings, jobs=_ROWS, shards=_SHARDS, triggers=TRIGGERS, clock=clock)
    async with fresh_place(backend) as place:
        settle = await measure_rows(place, ("settle",), _ROWS, clock)
    return one_after_the_other(max(one.rate for one in tried), settle["settle"])
