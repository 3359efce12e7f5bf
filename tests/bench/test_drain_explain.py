"""The limit of a drain is the one that was planted."""

from luciole.bench.attribution.document import Attribution
from luciole.bench.attribution.parts import Used
from luciole.bench.attribution.threads import STEPS, VERBS, Look
from luciole.bench.drain.explain import DATABASE, EXECUTOR, NODE, explain_drain

WALL_US = 1_000_000


def explained(
    *, node_us: int, executor_us: int, delay_us: int = 0, flights: int = 0, verb: str = "", looked: bool = True
) -> Attribution:
    number = (*STEPS, *VERBS).index(verb) + 1 if verb else 0
    looks = [Look(0, 0, 0, number, flights), Look(WALL_US, node_us, 0, -number, 0)]
    return explain_drain(
        jobs=10_000,
        begun_us=0,
        ended_us=WALL_US,
        looks=looks if looked else [],
        used={
            NODE: Used(node_us, 0, 1),
            EXECUTOR: Used(executor_us, delay_us, 1),
            DATABASE: Used(100_000, 0, 1),
        },
        cores=2,
        others=0.0,
    )


def test_a_node_that_computes_all_the_time_has_filled_its_interpreter() -> None:
    found = explained(node_us=900_000, executor_us=200_000)
    assert (found.verdict, found.now, found.next) == ("bottleneck", "the interpreter of the node", "the 2 cores")
    assert found.sentence == (
        "Limit now: the interpreter of the node (stages in which it computes take 90% of the time; in use for 90% of "
        "the window). Limit next: the 2 cores, full at 16,667 jobs/s; up to there is a gain of 1.5 x."
    )


def test_an_executor_that_the_node_waits_for_is_the_limit() -> None:
    found = explained(node_us=200_000, executor_us=950_000, flights=5)
    assert (found.verdict, found.now) == ("bottleneck", "the interpreter of the executor")
    assert found.explained == 1.0


def test_cores_that_are_all_used_and_waited_for_are_the_limit() -> None:
    found = explained(node_us=900_000, executor_us=900_000, delay_us=1_500_000)
    assert (found.verdict, found.now) == ("bottleneck", "the 2 cores")


def test_a_ceiling_with_one_sign_is_unproven() -> None:
    found = explained(node_us=300_000, executor_us=850_000, verb="settle")
    assert (found.verdict, found.now) == ("unproven", "the interpreter of the executor")


def test_a_node_that_waits_for_the_database_in_turn_is_serialised() -> None:
    found = explained(node_us=200_000, executor_us=200_000, verb="settle")
    assert found.verdict == "serialised"
    assert "nothing is full" in found.sentence
    assert "the time goes to settle (80%), compute (20%)" in found.sentence


def test_a_node_that_rests_while_work_is_due_is_not_explained() -> None:
    assert explained(node_us=300_000, executor_us=300_000).explained == 0.3


def test_a_node_that_has_settled_all_is_explained_until_the_bench_has_seen_it() -> None:
    settle = (*STEPS, *VERBS).index("settle") + 1
    looks = [Look(0, 0, 0, settle, 0), Look(900, 100, 0, -settle, 0), Look(1_000, 100, 0, 0, 0)]
    used = {NODE: Used(100, 0, 1), EXECUTOR: Used(100, 0, 1)}
    found = explain_drain(jobs=10, begun_us=0, ended_us=1_000, looks=looks, used=used, cores=2, others=0.0)
    assert {stage.name: stage.exclusive_us for stage in found.stages} == {
        "compute": 100,
        "settle": 800,
        "seen_later": 100,
    }


def test_a_node_that_left_no_looks_has_ceilings_and_no_stages() -> None:
    found = explained(node_us=900_000, executor_us=100_000, looked=False)
    assert (found.stages, found.explained) == ([], 0.0)
    assert "stages: the looks at the node's thread do not reach over the window" in found.missing
