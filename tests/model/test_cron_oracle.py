"""Random expressions in all zones, against an oracle that tries every wall time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from itertools import pairwise

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from luciole.errors import InvalidTrigger
from luciole.model.timeline import Fold, Gap
from luciole.model.trigger import cron
from luciole.model.wall_trigger import WallTrigger
from tests.model.trigger_oracle import EPOCH, SECOND, ZONES, Expression, changes, expressions

SECOND_US = 1_000_000
DAY_S = 86_400
SPACED_FROM_S = (datetime(2020, 1, 1, tzinfo=UTC) - EPOCH) // SECOND

GAPS: list[Gap] = ["after", "shift", "skip"]
FOLDS: list[Fold] = ["first", "second", "both"]


@st.composite
def spans(draw: st.DrawFn, days: int = 3) -> tuple[str, tuple[int, int]]:
    """A zone and a few days of its life, most often around a change of its offset."""
    name = draw(st.sampled_from(ZONES))
    year = draw(st.one_of(st.integers(1970, 2040), st.integers(1840, 2150)))
    start_s = (datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // SECOND
    near = changes(name, year, year)
    middle_s = start_s + draw(st.integers(0, 365 * DAY_S))
    if draw(st.booleans()) and near:
        middle_s = draw(st.sampled_from(near))
    return name, (middle_s - days * DAY_S // 2, middle_s + days * DAY_S // 2)


def make(expression: Expression, name: str, gap: Gap, fold: Fold) -> WallTrigger:
    try:
        return cron(expression.text, tz=name, gap=gap, fold=fold, seconds="first" if expression.seconds else None)
    except InvalidTrigger:
        # It never fires, says the refusal; the oracle looks at one turn of weekdays and leap years.
        walls = [] if gap == "skip" else list(expression.walls(date(2000, 1, 1), date(2027, 12, 31)))
    assert walls == []
    return reject()


def walk(trigger: WallTrigger, span: tuple[int, int]) -> Iterator[int]:
    """The fires in a span by next, in seconds."""
    fire_us = trigger.next_us(span[0] * SECOND_US - 1)
    while fire_us is not None and fire_us < span[1] * SECOND_US:
        yield fire_us // SECOND_US
        fire_us = trigger.next_us(fire_us)


def walk_back(trigger: WallTrigger, span: tuple[int, int]) -> Iterator[int]:
    """The fires in a span by previous, in seconds."""
    fire_us = trigger.previous_us(span[1] * SECOND_US)
    while fire_us is not None and fire_us >= span[0] * SECOND_US:
        yield fire_us // SECOND_US
        fire_us = trigger.previous_us(fire_us)


def check(expression: Expression, place: tuple[str, tuple[int, int]], gap: Gap, fold: Fold) -> None:
    """The same fires by the oracle, walked forward, walked back, and counted."""
    name, span = place
    trigger = make(expression, name, gap, fold)
    wanted = expression.fires(name, span, gap, fold)
    assert list(walk(trigger, span)) == wanted
    assert list(walk_back(trigger, span))[::-1] == wanted
    assert trigger.count(span[0] * SECOND_US - 1, span[1] * SECOND_US - 1) == len(wanted)
    if span[0] > SPACED_FROM_S:
        spacing_s = trigger.least_spacing_us // SECOND_US
        assert all(later - earlier >= spacing_s for earlier, later in pairwise(wanted))


RANDOM = (expressions(), spans(), st.sampled_from(GAPS), st.sampled_from(FOLDS))


@given(*RANDOM)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_a_few_random_expressions_fire_as_the_oracle_says(
    expression: Expression, place: tuple[str, tuple[int, int]], gap: Gap, fold: Fold
) -> None:
    check(expression, place, gap, fold)


@pytest.mark.slow
@given(*RANDOM)
@settings(max_examples=2_000, deadline=None)
def test_random_expressions_fire_as_the_oracle_says(
    expression: Expression, place: tuple[str, tuple[int, int]], gap: Gap, fold: Fold
) -> None:
    check(expression, place, gap, fold)
