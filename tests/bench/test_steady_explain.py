"""A steady load says what it leaves free; a handler that blocks its loop is the limit that is named."""

from pathlib import Path

import pytest

from luciole.bench import lock
from luciole.bench.attribution.heart import Beat, blocked_us
from luciole.bench.attribution.threads import Look
from luciole.bench.result import read_result
from luciole.bench.steady.explain import Load
from luciole.bench.steady.ledger import Start
from luciole.bench.steady.sampler import Sample
from luciole.limits import MS_US, SECOND_US
from tests.bench.test_cli import call

AT_US = 1_800_000_000 * SECOND_US


def sample(second: int, *, node_us: int = 0, executor_us: int = 0) -> Sample:
    return Sample(
        at_us=second * SECOND_US,
        cpu_us={"node": node_us * second, "executor": executor_us * second, "database": 0},
        rss_bytes={"node": 1, "executor": 1, "database": 1},
        disk_writes=second * 100,
        disk_reads=0,
        wal_bytes=second * 1_000,
        open_entries=second,
        oldest_us=0,
        table_bytes=0,
        dead_rows=0,
    )


def load(
    *,
    late_us: int = 0,
    node_us: int = 100_000,
    beats: dict[str, list[Beat]] | None = None,
    looks: dict[str, list[Look]] | None = None,
) -> Load:
    return Load(
        start_us=AT_US,
        end_us=AT_US + 10 * SECOND_US,
        starts=[
            Start(0, n, AT_US, 0, 1, AT_US + n * 10 * MS_US, AT_US + n * 10 * MS_US + late_us * n // 1_000)
            for n in range(1_000)
        ],
        samples=[sample(second, node_us=node_us) for second in range(11)],
        beats=beats or {},
        looks=looks or {},
        cores=2,
        wall_clock_us=AT_US,
    )


def test_a_load_that_leaves_room_says_how_much_and_where_it_ends() -> None:
    told = load().explain()
    assert told is not None
    assert (told.verdict, told.next, told.gain) == ("headroom", "the interpreter of node", 10.0)
    assert told.sentence == (
        "Nothing is full at this load: the interpreter of node comes first, at 1,000 jobs/s, 10.0 x what was asked for."
    )


def test_a_loop_that_answers_nobody_is_the_limit() -> None:
    beats = [Beat(AT_US + n * SECOND_US, n * 950 * MS_US, 4 * SECOND_US) for n in range(11)]
    told = load(late_us=5 * SECOND_US, beats={"executor": beats}).explain()
    assert told is not None
    assert (told.verdict, told.now) == ("bottleneck", "the loop of executor's handlers")
    assert "it answered nobody for up to 4.0 s: a handler blocks it" in told.sentence


def test_silence_after_the_last_beat_is_lateness() -> None:
    beats = [Beat(0, 0, 0), Beat(1_000_000, 400_000, 10_000)]
    assert blocked_us(beats, 0, 1_000_000) == 400_000
    assert blocked_us(beats, 0, 3_200_000) == 400_000 + 2_000_000
    assert blocked_us([], 0, 1_000_000) == 0


def test_the_lines_of_a_window_are_there() -> None:
    lines = {one.name: one for one in load().series()}
    assert lines["starts"].values[:2] == [100.0, 100.0]
    assert lines["CPU of node"].values == [0.1] * 10
    assert lines["write-ahead log"].values == [1_000.0] * 10
    assert lines["disk, each 5 s"].values == [100.0] * 6
    assert "disk, each 30 s" not in lines  # The window is shorter.


def looks(cpu_us: int, *, flights: int = 0, last_s: int = 11) -> list[Look]:
    """A thread that computes so much in each second, from a second before the window on."""
    return [Look(n * SECOND_US, n * cpu_us, 0, 0, flights) for n in range(-1, last_s + 1)]


def test_a_thread_that_rests_while_starts_are_punctual_has_nothing_to_do() -> None:
    told = load(looks={"node": looks(300_000)}).explain()
    assert told is not None
    assert {stage.name: stage.exclusive_us for stage in told.stages} == {"compute": 3_000_000, "idle": 7_000_000}
    assert told.explained == 1.0
    assert not told.missing


def test_a_thread_that_rests_while_starts_come_late_is_not_explained() -> None:
    told = load(late_us=5 * SECOND_US, looks={"node": looks(300_000)}).explain()
    assert told is not None
    assert told.explained == 0.3


def test_of_several_nodes_the_one_that_computes_the_most_is_shown() -> None:
    told = load(looks={"node_1": looks(100_000), "node_2": looks(200_000, flights=1)}).explain()
    assert told is not None
    assert {stage.name: stage.exclusive_us for stage in told.stages} == {
        "compute": 2_000_000,
        "wait_executors": 8_000_000,
    }
    assert told.missing == ["stages of the other nodes: those of node_2 are shown, which computed the most"]


def test_a_node_that_computes_most_of_the_time_has_a_second_sign() -> None:
    told = load(late_us=5 * SECOND_US, node_us=900_000, looks={"node": looks(900_000)}).explain()
    assert told is not None
    assert (told.verdict, told.now) == ("bottleneck", "the interpreter of node")
    assert "stages in which it computes take 90% of the time" in told.sentence


def test_looks_that_end_before_the_window_make_no_stages() -> None:
    told = load(looks={"node": looks(300_000, last_s=9)}).explain()
    assert told is not None
    assert told.stages == []
    assert told.missing == ["stages: no node kept where the time of its thread went, or not to the window's end"]


@pytest.mark.slow
def test_a_handler_that_blocks_its_loop_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")
    options = ("--size", "smoke", "--schedules", "600", "--duration-s", "6", "--handler", "block:130ms")
    code, lines = call("run", "steady", *options, "--out", str(tmp_path))
    assert code in {0, 7}, lines  # What was blocked came late, and all of it came.
    told = read_result(tmp_path).repeats[0].attribution[0]
    assert told.now == "the loop of executor's handlers", told.sentence
    assert {sign.kind for sign in told.resources[0].signs} >= {"stage", "gauge"}
