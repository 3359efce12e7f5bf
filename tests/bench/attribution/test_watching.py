"""What a process observes of itself: its steps, its stalls, its collector."""

import gc

from luciole.bench.attribution.watching import Watching
from luciole.bench.spans import Span, in_flight
from luciole.limits import MS_US
from luciole.runtime.clock import SystemClock


async def test_a_blocked_loop_is_seen_as_a_stall() -> None:
    clock = SystemClock()
    watching = Watching(clock)
    watching.begin()
    blocked_us = clock.monotonic_us()
    while clock.monotonic_us() < blocked_us + 100 * MS_US:
        pass  # As a handler does that forgets to await.
    told = await watching.end([], (), begun_us=blocked_us, ended_us=clock.monotonic_us())
    assert told.stall_max_us >= 80 * MS_US
    assert told.main_thread_us > 0


async def test_a_collection_is_a_stage_of_its_own() -> None:
    clock = SystemClock()
    watching = Watching(clock)
    watching.begin()
    begun_us = clock.monotonic_us()
    gc.collect()
    told = await watching.end([], (), begun_us=begun_us, ended_us=clock.monotonic_us())
    assert told.gc_pauses == 1
    assert told.stages_us["gc"] > 0


async def test_a_step_inside_a_call_has_the_time_before_the_call() -> None:
    clock = SystemClock()
    watching = Watching(clock)
    watching.begin()
    watching.log.steps = [Span("statement", 20, 60, None), Span("commit", 60, 90, None)]
    told = await watching.end([Span("settle", 10, 100, None)], ("settle",), begun_us=0, ended_us=100)
    stages = {name: us for name, us in told.stages_us.items() if us}
    assert stages == {"statement": 40, "commit": 30, "settle": 20, "unexplained": 10}


def test_calls_beside_each_other_count_as_so_many_in_flight() -> None:
    spans = [Span("settle", 0, 100, None), Span("settle", 50, 150, None), Span("lock", 0, 25, None)]
    assert in_flight(spans, 0, 100) == {"settle": 1.5, "lock": 0.25}
