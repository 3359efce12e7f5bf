"""Each instant of a thread belongs to one stage."""

import asyncio
from pathlib import Path

from luciole.bench.attribution.threads import (
    IDLE,
    STEPS,
    VERBS,
    Look,
    ThreadLog,
    last_end_us,
    looks_path,
    read_looks,
    thread_stages,
)
from luciole.runtime.clock import SystemClock

NUMBERS = {name: number for number, name in enumerate((*STEPS, *VERBS), 1)}


def look(at_us: int, name: str = "", *, cpu: int, delay: int = 0, ends: bool = False, flights: int = 0) -> Look:
    return Look(at_us, cpu, delay, NUMBERS.get(name, 0) * (-1 if ends else 1), flights)


def test_computing_goes_first_then_the_wait_for_a_core_then_the_verb_of_the_fixed_order() -> None:
    looks = [
        look(0, "ready_entries", cpu=0),
        look(100, "settle", cpu=10, delay=20),
        look(200, "settle", cpu=40, delay=20, ends=True),
        look(300, "ready_entries", cpu=40, delay=20, ends=True, flights=3),
        look(400, cpu=50, delay=20),
        look(500, cpu=60, delay=20),
    ]
    told = thread_stages(looks, 0, 500, rest=IDLE)
    assert told is not None
    assert (told.cpu_us, told.delay_us) == (60, 20)
    assert told.in_flight == {"ready_entries": 0.6, "settle": 0.2}
    assert told.exclusive_us == {
        "compute": 60,
        "wait_core": 20,
        "settle": 70,
        "ready_entries": 70 + 100,
        "wait_executors": 90,
        "idle": 90,
    }


def test_a_thread_that_rests_once_all_is_done_waits_for_the_bench_to_see_it() -> None:
    ends = [look(at_us, "settle", cpu=0, ends=at_us > 0) for at_us in (0, 40)]
    looks = [
        *ends,
        look(45, cpu=5, flights=1),
        look(60, cpu=5),
        look(100, cpu=5),
        look(130, "settle", cpu=5, ends=True),
    ]
    done_us = last_end_us(looks, "settle", 100)
    told = thread_stages(looks, 0, 100, rest=IDLE, done_us=done_us)
    assert told is not None
    assert done_us == 40
    assert {name: us for name, us in told.exclusive_us.items() if us} == {
        "settle": 40,
        "compute": 5,
        "wait_executors": 15,
        "seen_later": 40,
    }


def test_what_is_computed_in_a_step_is_that_steps() -> None:
    looks = [look(0, "encode", cpu=0), look(50, "gc", cpu=50), look(60, "gc", cpu=60, ends=True), look(100, cpu=90)]
    told = thread_stages(looks, 0, 100, rest=IDLE)
    assert told is not None
    assert {name: us for name, us in told.exclusive_us.items() if us} == {"encode": 80, "gc": 10, "idle": 10}


def test_of_what_lies_around_an_end_its_part_counts_and_all_adds_up() -> None:
    looks = [look(n * 7, VERBS[n % 2], cpu=n * 3, delay=n, ends=n % 4 > 1) for n in range(50)]
    told = thread_stages(looks, 10, 301, rest=IDLE)
    assert told is not None
    assert told.cpu_us == round(291 * 3 / 7)
    assert sum(told.exclusive_us.values()) == 291


def test_clocks_that_disagree_give_no_stage_less_than_nothing() -> None:
    told = thread_stages([look(0, cpu=0), look(100, cpu=105, delay=10)], 0, 100, rest=IDLE)
    assert told is not None
    assert told.exclusive_us == {"compute": 100, "wait_core": 0, "idle": 0}


def test_looks_that_do_not_reach_over_the_window_explain_nothing() -> None:
    looks = [look(10, cpu=0), look(90, cpu=0)]
    assert thread_stages([], 0, 10, rest=IDLE) is None
    assert thread_stages(looks, 0, 50, rest=IDLE) is None
    assert thread_stages(looks, 50, 100, rest=IDLE) is None
    assert list(read_looks(Path("nowhere"))) == []


async def test_a_thread_keeps_what_it_did_and_a_look_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    flights = 2
    log = ThreadLog(looks_path(tmp_path, 1), SystemClock(), lambda: flights)
    answered = asyncio.Event()

    async def settle() -> str:
        await answered.wait()
        return "settled"

    call = asyncio.ensure_future(log.verb("settle", settle)())
    await asyncio.sleep(0)
    encoded = log.step("encode", lambda: sum(range(200_000)))()
    answered.set()
    assert (await call, encoded) == ("settled", 19_999_900_000)
    log.close()
    with looks_path(tmp_path, 1).open("ab") as file:
        file.write(b"cut off")
    looks = list(read_looks(looks_path(tmp_path, 1)))
    told = thread_stages(looks, looks[0].at_us, looks[-1].at_us, rest=IDLE)
    assert told is not None
    assert [one.event for one in looks] == [0, 4, 3, -3, -4, 0]
    assert {one.flights for one in looks} == {2}
    assert told.exclusive_us["encode"] > 0


async def test_garbage_that_another_thread_collects_is_no_stage_of_this_one(tmp_path: Path) -> None:
    log = ThreadLog(looks_path(tmp_path, 1), SystemClock(), lambda: 0)
    log.collected("start", {})
    log.collected("stop", {})
    for phase in ("start", "stop"):
        await asyncio.to_thread(log.collected, phase, {})  # Its clock of computed time is its own.
    log.close()
    looks = list(read_looks(looks_path(tmp_path, 1)))
    assert [one.event for one in looks] == [0, NUMBERS["gc"], -NUMBERS["gc"], 0]
    assert [one.cpu_us for one in looks] == sorted(one.cpu_us for one in looks)
