"""Whether what was asked of a load took effect: how long its handlers took, and how far ahead it was planned."""

from luciole import limits
from luciole.bench.backends import Place
from luciole.bench.check import ask, judge
from luciole.bench.result import Check
from luciole.bench.steady.spec import SteadySpec, read_handler

#: A timer of an event loop may be early by its resolution.
_EARLY_US = 2 * limits.MS_US


async def effective(place: Place, spec: SteadySpec) -> list[Check]:
    """Judge by what the store holds of each execution.

    Args:
        place: the store.
        spec: what was asked for.
    """
    least_us = read_handler(spec.handler).duration_ms * limits.MS_US - _EARLY_US
    found = await ask(place, ("handler_us_least",), {})
    took = judge("handler_us_least", "store", "> :least", found["handler_us_least"], {"least": max(-1, least_us)})
    return [took, *await planned_ahead(place, spec.plan_ahead_us)]


async def planned_ahead(place: Place, plan_ahead_us: int) -> list[Check]:
    """Judge how long before their due time executions of schedules were created.

    Args:
        place: the store.
        plan_ahead_us: as it was asked for.
    """
    questions = ("executions_planned_ahead", "executions_planned_too_far_ahead")
    found = await ask(place, questions, {"plan_ahead_us": plan_ahead_us})
    expected = ("> 0" if plan_ahead_us else "= 0", "= 0")
    return [judge(name, "store", expect, found[name], {}) for name, expect in zip(questions, expected, strict=True)]
