"""Where the time of a client's thread went: each instant has one stage, whatever was under way beside it."""

import asyncio
from pathlib import Path

import pytest

from luciole.bench import lock
from luciole.bench.attribution.callers import CallerLog, told_of
from luciole.bench.attribution.ceilings import UNEXPLAINED
from luciole.bench.attribution.threads import IDLE
from luciole.bench.backends import Place
from luciole.bench.cli.options import watch_of
from luciole.bench.result import Result, read_result
from luciole.bench.spans import Span
from luciole.bench.stores import open_fresh
from luciole.bench.verdict import Usage
from luciole.runtime.clock import SystemClock
from tests.bench.test_cli import call

CLIENT, VERB, DRIVER, GC, AS_BEFORE, COLLECTED = 0, 1, 2, 3, -1, -2


def stages(looks: list[tuple[int, int, int, int]], spans: list[Span], *, rest: str = UNEXPLAINED) -> dict[str, int]:
    window = told_of("w", 1, looks, spans, looks[0][0], looks[-1][0], rest=rest)
    return {name: us for name, us in window.told.stages_us.items() if us}


def test_what_the_thread_computes_belongs_to_whoever_spoke_last() -> None:
    looks = [(0, 0, 0, CLIENT), (10, 10, 0, VERB), (30, 30, 0, DRIVER), (100, 70, 0, VERB), (105, 75, 0, CLIENT)]
    spans = [Span("enqueue", 10, 105, None), Span("statement", 30, 100, None)]
    assert stages(looks, spans) == {"client": 10, "verb": 25, "driver": 40, "statement": 30}


def test_a_wait_for_a_core_is_told_apart_from_a_wait_for_the_store() -> None:
    looks = [(0, 0, 0, VERB), (100, 10, 50, CLIENT)]
    assert stages(looks, [Span("load", 0, 100, None)]) == {"verb": 10, "wait_core": 50, "load": 40}


def test_steps_of_another_thread_share_the_time_in_which_this_one_is_blocked() -> None:
    looks = [(0, 0, 0, VERB), (100, 20, 0, CLIENT)]
    spans = [Span("enqueue", 0, 100, None), Span("statement", 10, 30, None), Span("commit", 30, 80, None)]
    assert stages(looks, spans) == {"verb": 20, "statement": 16, "commit": 40, "enqueue": 24}


def test_what_is_blocked_with_nothing_under_way_is_unexplained_or_where_nothing_has_to_be_idle() -> None:
    looks = [(0, 0, 0, CLIENT), (100, 40, 0, CLIENT)]
    assert stages(looks, []) == {"client": 40, UNEXPLAINED: 60}
    assert stages(looks, [], rest=IDLE) == {"client": 40, IDLE: 60}


def test_a_collection_is_nobodys_and_who_spoke_before_it_goes_on() -> None:
    looks = [(0, 0, 0, VERB), (10, 10, 0, GC), (30, 30, 0, COLLECTED), (50, 50, 0, CLIENT)]
    assert stages(looks, []) == {"verb": 30, "gc": 20}


def test_a_store_is_watched_from_the_begin_of_a_window_to_its_end(tmp_path: Path) -> None:
    async def look() -> CallerLog:
        log = CallerLog(SystemClock())
        plain = await open_fresh(Place(dsn=f"sqlite:///{tmp_path / 'watched.db'}"), shards=4, steps=log)
        store = log.around(plain)
        with log.window("ids", 20):
            for _ in range(20):
                await store.take_ids(1)
        await plain.close()
        log.close()
        return log

    (window,) = asyncio.run(look()).windows
    assert (window.jobs, window.commits) == (20, 20)
    assert {"commit", "statement", "take_ids"} <= window.told.stages_us.keys()
    assert sum(window.told.stages_us.values()) == window.told.ended_us - window.told.begun_us


@pytest.fixture
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")


def explained(tmp_path: Path, *words: str) -> Result:
    code, lines = call("run", *words, "--size", "smoke", "--repeats", "1", "--out", str(tmp_path))
    assert code in {0, 6}, lines  # A share over its ceiling, on a machine that others use.
    return read_result(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "windows"),
    [
        ("register", ["single", "bulk", "again"]),
        ("enqueue", ["one by one", "with a key", "bulk", "open loop"]),
        ("store", ["enqueue_0_by_1", "enqueue_0_by_8", "enqueue_0_by_64", "settle_0", "load_0"]),
    ],
)
def test_each_window_is_explained_and_ends_with_a_sentence(
    tmp_path: Path, profile: str, windows: list[str], own_lock: None
) -> None:
    """Goal: where the time went is known to 95 %, without a figure that was watched.

    Method: one repeat counts, one more is watched; its stages add up to each window.
    """
    del own_lock
    result = explained(tmp_path, profile)
    assert len(result.repeats) == 1
    told = result.repeats[0].attribution
    assert [window.window for window in told[: len(windows)]] == windows
    assert all(sum(stage.exclusive_us for stage in window.stages) == window.wall_us for window in told)
    assert all(window.sentence and window.resources for window in told)
    assert all(window.explained >= 0.95 for window in told), [(one.window, one.explained) for one in told]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "kind"),
    [
        ("register", "cpu"),
        ("store", "cpu"),
        ("enqueue", "wall"),
        ("drain --jobs 8000", "cpu"),  # Long enough for some looks at the sessions.
        ("steady --schedules 120 --duration 3s", "wall"),
    ],
)
def test_waits_and_flame_graphs_are_there_where_they_are_asked_for(
    tmp_path: Path, profile: str, kind: str, own_lock: None
) -> None:
    del own_lock
    asked = ("--backend", "postgres", "--sample-waits", f"--profile-{kind}")
    result = explained(tmp_path, *profile.split(), *asked)
    told = result.repeats[0].attribution
    assert any(window.waits for window in told)
    assert not any("--sample-waits" in text for window in told for text in window.missing)
    assert {flame.kind for flame in result.flames} == {kind}
    assert all(flame.samples == sum(flame.stacks.values()) > 0 for flame in result.flames)
    assert len(result.repeats) == 1


def test_sessions_of_a_store_that_has_none_can_not_be_sampled() -> None:
    with pytest.raises(Usage, match="--sample-waits: only a server"):
        watch_of({"sample_waits": True, "backend": "sqlite", "profile_cpu": False, "profile_wall": False})
