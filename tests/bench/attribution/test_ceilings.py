"""What limits a window is named only with proof, and the sentence says what the figures say."""

import pytest

from luciole.bench.attribution.ceilings import attribute, resource
from luciole.bench.attribution.document import Attribution, Resource, Sign, Stage

SECOND_US = 1_000_000
QUEUE = Sign(kind="queue", text="3.0 stood in line")
STAGE = Sign(kind="stage", text="commits take 90% of the time")


def of(name: str, busy_us: int, *signs: Sign, servers: float = 1, passive: bool = False) -> Resource:
    return resource(name, jobs=1_000, wall_us=SECOND_US, servers=servers, busy_us=busy_us, signs=signs, passive=passive)


def found(*resources: Resource, stages: tuple[Stage, ...] = ()) -> Attribution:
    return attribute("drain", jobs=1_000, wall_us=SECOND_US, stages=stages, resources=resources)


def test_a_ceiling_is_the_rate_at_which_the_demand_fills_the_resource() -> None:
    cores = of("the cores", 1_500_000, servers=2)
    assert (cores.demand_us, cores.used) == (1_500, 0.75)
    assert cores.ceiling_rate == pytest.approx(1_333.3)


def test_a_full_resource_with_two_kinds_of_signs_is_the_limit_and_the_next_one_says_what_there_is_to_win() -> None:
    told = found(of("the cores", 800_000, servers=2), of("the log", 950_000, STAGE))
    assert (told.verdict, told.now, told.next, told.gain) == ("bottleneck", "the log", "the cores", 2.38)
    assert told.sentence == (
        "Limit now: the log (commits take 90% of the time; in use for 95% of the window). "
        "Limit next: the cores, full at 2,500 jobs/s; up to there is a gain of 2.4 x."
    )


def test_of_ceilings_that_are_alike_the_one_with_more_kinds_of_signs_is_named() -> None:
    told = found(of("the cores", 1_980_000, servers=2), of("the log", 960_000, STAGE, QUEUE))
    assert (told.verdict, told.now, told.next, told.gain) == ("bottleneck", "the log", "the cores", 1.0)
    told = found(of("the cores", 1_980_000, servers=2), of("the log", 900_000, STAGE, QUEUE))
    assert (told.verdict, told.sentence[:33]) == ("unproven", "Probably limited by the cores (99")


def test_one_sign_is_no_proof() -> None:
    told = found(of("the log", 950_000))
    assert told.verdict == "unproven"
    assert "needs two independent signs" in told.sentence


def test_two_signs_of_one_kind_are_one() -> None:
    assert found(of("the log", 750_000, STAGE, STAGE)).verdict == "unproven"


def test_under_70_percent_of_the_lowest_ceiling_nothing_is_full_and_the_path_is_named() -> None:
    stages = (Stage(name="statement", exclusive_us=800_000), Stage(name="commit", exclusive_us=200_000))
    told = found(of("the log", 690_000, STAGE, QUEUE), stages=stages)
    assert (told.verdict, told.now) == ("serialised", None)
    assert told.sentence == (
        "Serialised: nothing is full. The nearest limit, the log, would bear 1,449 jobs/s, 1.4 x what was reached; "
        "the time goes to statement (80%), commit (20%), one after the other."
    )


def test_what_is_only_held_limits_nothing_until_somebody_stands_in_line_for_it() -> None:
    cores = of("the cores", 1_800_000, STAGE, servers=2)
    assert found(of("the connections", 990_000, passive=True), cores).now == "the cores"
    assert found(of("the connections", 990_000, QUEUE, passive=True), cores).now == "the connections"


def test_what_no_stage_explains_is_said() -> None:
    stages = (Stage(name="commit", exclusive_us=940_000), Stage(name="unexplained", exclusive_us=60_000))
    assert found(stages=stages).explained == 0.94


def test_without_anything_observed_nothing_is_claimed() -> None:
    assert found(of("the log", 0)).verdict == "unknown"
