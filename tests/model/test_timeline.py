"""Timelines over zones that no one has seen yet: changes that crowd, gaps in folds, offsets with seconds."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luciole.model.cron import CronWalls, cron_walls
from luciole.model.timeline import FIRST_S, LAST_S, Fold, Gap, Timeline
from luciole.model.zones import ZoneRules

HOUR_S = 3_600
DAY_S = 86_400
START_S = 100 * DAY_S
END_S = START_S + 3 * DAY_S

WALLS = ("* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 0 * * *", "15,45 1-4 * * *", "50 23 * * *")


@st.composite
def zones(draw: st.DrawFn) -> ZoneRules:
    """A zone with up to four changes within a day, in minutes."""
    pauses = draw(st.lists(st.integers(1, 600), max_size=4))
    offsets = draw(st.lists(st.integers(-180, 180), min_size=len(pauses) + 1, max_size=len(pauses) + 1))
    changes, at_s = [], START_S + DAY_S
    for pause in pauses:
        at_s += pause * 60
        changes.append(at_s)
    return ZoneRules(name="Made/Up", changes_s=tuple(changes), offsets_s=tuple(o * 60 for o in offsets), rule=None)


def minute_of(wall_s: int, walls: CronWalls) -> bool:
    return walls.next(wall_s) == wall_s


def oracle(rules: ZoneRules, walls: CronWalls, gap: Gap, fold: Fold) -> list[int]:
    """The fires in [START_S, END_S), found by running the zone's clock through every minute."""
    shown: dict[int, list[int]] = {}
    jumps: list[tuple[int, int, int]] = []
    before_s = rules.offsets_s[0]
    for at_s in range(START_S - DAY_S, END_S + DAY_S, 60):
        offset_s = rules.offsets_s[bisect_right(rules.changes_s, at_s)]
        if offset_s > before_s:
            jumps.append((at_s, at_s + before_s, at_s + offset_s))
        shown.setdefault(at_s + offset_s, []).append(at_s)
        before_s = offset_s
    fires: set[int] = set()
    for wall_s, times in shown.items():
        if minute_of(wall_s, walls):
            fires.update({"first": times[:1], "second": times[-1:], "both": times}[fold])
    for at_s, low, high in jumps if gap != "skip" else []:
        lost = [wall_s for wall_s in range(low, high, 60) if wall_s not in shown and minute_of(wall_s, walls)]
        fires.update(at_s if gap == "after" else at_s + wall_s - low for wall_s in lost)
    return sorted(at_s for at_s in fires if START_S <= at_s < END_S)


def check(rules: ZoneRules, expression: str, gap: Gap, fold: Fold) -> None:
    line, walls = Timeline(rules=rules, gap=gap, fold=fold), cron_walls(expression)
    wanted = oracle(rules, walls, gap, fold)
    found, at_s = [], START_S
    while (at_s := line.next(walls, at_s)) < END_S:
        found.append(at_s)
        at_s += 1
    assert found == wanted
    back, at_s = [], END_S - 1
    while (at_s := line.previous(walls, at_s)) >= START_S:
        back.append(at_s)
        at_s -= 1
    assert back[::-1] == wanted
    assert line.count(walls, START_S, END_S) == len(wanted)


RANDOM = (
    zones(),
    st.sampled_from(WALLS),
    st.sampled_from(["after", "shift", "skip"]),
    st.sampled_from(["first", "second", "both"]),
)


@given(*RANDOM)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_few_changes_may_crowd(rules: ZoneRules, expression: str, gap: Gap, fold: Fold) -> None:
    check(rules, expression, gap, fold)


@pytest.mark.parametrize("gap", ["after", "shift", "skip"])
@pytest.mark.parametrize("fold", ["first", "second", "both"])
@pytest.mark.parametrize("expression", ["*/7 * * * *", "15,45 1-4 * * *", "30 2 * * *"])
@pytest.mark.parametrize(
    ("pause_m", "offsets_m"),
    [
        (30, (0, 60, 0)),  # Half of what the gap leaves out is shown after all, when the clocks go back.
        (30, (60, 0, 60)),  # A fold whose second half falls into a gap.
        (90, (0, 60, 120)),  # Two gaps in a row.
        (20, (60, 0, -60)),  # A wall time that comes three times.
        (600, (0, 24 * 60, 0)),  # A day left out, and most of it shown after all.
    ],
)
def test_what_one_change_drops_another_may_bring(
    pause_m: int, offsets_m: tuple[int, ...], expression: str, gap: Gap, fold: Fold
) -> None:
    first_s = START_S + DAY_S + 2 * HOUR_S
    rules = ZoneRules(
        name="Made/Up",
        changes_s=(first_s, first_s + 60 * pause_m),
        offsets_s=tuple(60 * offset for offset in offsets_m),
        rule=None,
    )
    check(rules, expression, gap, fold)


@pytest.mark.slow
@given(*RANDOM)
@settings(max_examples=800, deadline=None)
def test_changes_may_crowd(rules: ZoneRules, expression: str, gap: Gap, fold: Fold) -> None:
    check(rules, expression, gap, fold)


@pytest.mark.parametrize("gap", ["after", "shift", "skip"])
@pytest.mark.parametrize("fold", ["first", "second", "both"])
def test_time_has_two_ends(gap: Gap, fold: Fold) -> None:
    rules = ZoneRules(name="Made/Up", changes_s=(0,), offsets_s=(HOUR_S, 0), rule=None)
    line, walls = Timeline(rules=rules, gap=gap, fold=fold), cron_walls("0 0 1 1 *")
    assert line.next(walls, LAST_S) > LAST_S
    assert line.previous(walls, FIRST_S) < FIRST_S
    assert line.next(walls, FIRST_S) < FIRST_S + 366 * DAY_S
    assert line.previous(walls, LAST_S) > LAST_S - 366 * DAY_S
