"""No answer takes many steps, however rare the fire and however odd the zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luciole.model.timeline import Fold, Gap
from luciole.model.trigger import cron
from luciole.model.wall_trigger import WallTrigger
from tests.model.test_cron_oracle import FOLDS, GAPS, make, spans
from tests.model.trigger_oracle import Expression, expressions
from tests.model.work import lines_run

SECOND_US = 1_000_000
LINES_MAX = 2_000


def worst_of(trigger: WallTrigger, instant_us: int) -> int:
    """The lines of the dearest answer; what is built once and kept is built before."""
    until_us = instant_us + 50 * SECOND_US
    calls: tuple[Callable[[], object], ...] = (
        lambda: trigger.next_us(instant_us),
        lambda: trigger.previous_us(instant_us),
        lambda: trigger.count(instant_us, until_us),
    )
    for call in calls:
        call()
    return max(lines_run(call) for call in calls)


@given(expressions(), spans(), st.sampled_from(GAPS), st.sampled_from(FOLDS), st.integers(-20, 100))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_answer_takes_few_steps(
    expression: Expression, place: tuple[str, tuple[int, int]], gap: Gap, fold: Fold, anywhere: int
) -> None:
    trigger = make(expression, place[0], gap, fold)
    assert worst_of(trigger, place[1][0] * SECOND_US) < LINES_MAX
    assert worst_of(trigger, anywhere * 10**15) < LINES_MAX


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize(
    "expression",
    [
        "0 0 29 2 */7",  # From 2088 to 2128: 40 years, the longest pause that a calendar knows.
        "0 0 * 2 sun#5",
        "30 2 29 2 *",
        "30 2 30 3 */3",
    ],
)
def test_the_rarest_fires_take_few_steps(expression: str, gap: Gap) -> None:
    trigger = cron(expression, tz="Europe/Berlin", gap=gap)
    instant_us = round(datetime(2089, 1, 1, tzinfo=UTC).timestamp()) * SECOND_US
    assert worst_of(trigger, instant_us) < LINES_MAX
